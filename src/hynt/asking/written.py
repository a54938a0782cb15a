"""Questions as they were written, in columns: names, numbers with units, or whatever a program gave. No torch here.

A number is read by its relation: `80 kg`, `12.5 %`, `1995-06`, 3.4, a date. A value's kind is never guessed: the
relation beside it says that a number is meant, and in which unit it is kept.
"""

from __future__ import annotations

import datetime
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.values import NUMBER_PATTERN, VAGUE, looks_like_number, parse_number, read_written_date, unit_behind
from hynt.graph.fact import DATE_UNIT, Number, number
from hynt.graph.fact_table import RELATION, position_name, relation_position
from hynt.graph.sentences import BLANK
from hynt.graph.units.conversion import convert, display_of, kept, lookup
from hynt.graph.units.dates import UnreadableDate, parse_iso_date
from hynt.graph.vocabulary import Flags, Floats, Ids, Relation, offsets_of

_QUANTITY = re.compile(rf"({NUMBER_PATTERN})(?:\s*(\D.*))?", re.DOTALL)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
_MONTH = re.compile(r"[+-]?[0-9]{4,6}-[0-9]{2}(?:-[0-9]{2})?")
_NO_UNIT = ("", "1")


def number_for(relation: Relation, written: Any, where: str) -> Number:
    """The number in the relation's unit; a `UsageError` at `where` says what is wrong with anything else."""
    name = relation.label or relation.name
    if isinstance(written, Number):
        return _converted(relation, written.value, written.literal, written.unit, where)
    if isinstance(written, datetime.date):  # a datetime is one too
        if relation.unit != DATE_UNIT:
            raise UsageError(f"{name!r} holds no dates.", where=where, advice=_advice(relation))
        return Number(parse_iso_date(written.isoformat())[0], written.isoformat(), DATE_UNIT)
    if isinstance(written, numbers.Real) and not isinstance(written, bool):
        try:
            plain = number(written)  # type: ignore[arg-type]
        except DataError as problem:
            raise UsageError.of(problem, where) from None
        return _converted(relation, plain.value, plain.literal, "", where)
    if not isinstance(written, str):
        raise UsageError(f"{written!r:.40} is not a number.", where=where, advice=_advice(relation))
    return _date(written, where) if relation.unit == DATE_UNIT else _quantity(relation, written, where)


def is_written_number(written: Any) -> bool:
    """Whether it has the form of a number, a quantity or a date: asked only where no relation says what is meant."""
    if not isinstance(written, str):
        return True
    written = _plain(written)
    if looks_like_number(written):
        return True
    try:
        parse_iso_date(written)
    except UnreadableDate:
        found = _QUANTITY.fullmatch(written)
        return found is not None and found[2] is not None and lookup(found[2].strip()) is not None
    return True


def number_with_unit(written: str) -> Number | None:
    """The number of `80 kg`, the date of `1995-06`, and None for any other text. Where nobody knows the relation, only
    a unit, or a month, says that a number is meant: `7` may be the name of something.
    """
    if _MONTH.fullmatch(written.strip()):
        try:
            return _date(written, "")
        except UsageError:
            return None
    found = _QUANTITY.fullmatch(_plain(written))
    if found is None or found[2] is None:
        return None
    unit = lookup(found[2].strip())
    return None if unit is None else Number(parse_number(found[1]), found[1], unit.symbol)


def says_unit(written: Number | str) -> bool:
    """Whether a number, or a text that holds one, says the unit that it is in."""
    if isinstance(written, Number):
        return bool(written.unit)
    found = _QUANTITY.fullmatch(_plain(written))
    return found is not None and found[2] is not None


def _plain(written: str) -> str:
    """Without what is put into numbers for people: commas between thousands, a real minus sign, `$` before money."""
    return _GROUPED.sub(lambda found: found[0].replace(",", ""), unit_behind(written), count=1)


def _date(written: str, where: str) -> Number:
    try:
        return Number(parse_iso_date(written.strip())[0], written.strip(), DATE_UNIT)
    except UnreadableDate as problem:
        try:
            return read_written_date(written.strip())  # 28.01.1922 and its like, as tables have them
        except RecordProblem as found:
            raise UsageError.of(found if found.reason == VAGUE else problem, where) from None


def _quantity(relation: Relation, written: str, where: str) -> Number:
    found = _QUANTITY.fullmatch(_plain(written))
    if found is None:
        name = relation.label or relation.name
        raise UsageError(
            f"{name!r} holds numbers, and {written[:60]!r} is not a number.", where=where, advice=_advice(relation)
        )
    try:
        value = parse_number(found[1])
    except RecordProblem as problem:
        raise UsageError.of(problem, where) from None
    return _converted(relation, value, found[1], (found[2] or "").strip(), where)


def _converted(relation: Relation, value: float, literal: str, unit: str, where: str) -> Number:
    """In the relation's unit: a number without a unit is in it already."""
    if value != value or value in (float("inf"), float("-inf")):
        raise UsageError(f"{value} is not a finite number.", where=where, advice=_advice(relation))
    if unit in (*_NO_UNIT, relation.unit):
        return Number(value, literal, relation.unit)
    name = relation.label or relation.name
    if unit == display_of(relation.unit) or (unit == "%" and display_of(relation.unit) == "percent"):
        converted = kept(value, relation.unit)
        return Number(converted, repr(converted), relation.unit)
    known = lookup(unit)
    if relation.unit in _NO_UNIT and known is not None and known.si_unit != "1":
        raise UsageError(f"{name!r} has no unit, but {unit!r} was given.", where=where, advice=_advice(relation))
    if DATE_UNIT in (unit, relation.unit):
        raise UsageError(f"a number in {unit!r} is not a value of {name!r}.", where=where, advice=_advice(relation))
    try:
        converted = convert(value, unit, relation.unit or "1")
        return Number(converted, repr(converted), relation.unit)
    except DataError as problem:
        raise UsageError.of(problem, where) from None


def _advice(relation: Relation) -> str:
    name = relation.label or relation.name
    if relation.unit == DATE_UNIT:
        return f"Write a value of {name!r} as a date: 1995, 1995-06 or 1995-06-30."
    also = f", such as {display_of(relation.unit)}" if display_of(relation.unit) else ""
    unit = "" if relation.unit in _NO_UNIT else f", in {relation.unit} or with a unit of the same kind{also}"
    return f"Write a value of {name!r} as a number, such as 80{unit}."


@dataclass(frozen=True, eq=False)
class WrittenParts:
    """`n` parts of questions. Each is a text, a number, something else that a program gave, or missing."""

    texts: Sequence[str | None]  # the different texts, and None
    text: Ids  # (n,) which of them each part is; None for what is no text
    number: Floats  # (n,) filler 0 where there is none
    has_number: Flags  # (n,)
    literal: pa.Array  # (n,) as the number was written; null where there is none
    units: Sequence[str]  # the different units; "" for none
    unit: Ids  # (n,) which of them each number has
    other: Mapping[int, Any]  # what is neither text nor number

    @classmethod
    def of(cls, values: Sequence[Any]) -> WrittenParts:
        """From Python values; None is missing."""
        numbers = [(at, one) for at, one in enumerate(values) if isinstance(one, Number)]
        texts, text = _coded([one if isinstance(one, str) else None for one in values])
        number, has_number = np.zeros(len(values)), np.zeros(len(values), dtype=np.bool_)
        units, unit, literals = [""], np.zeros(len(values), dtype=np.int64), pa.nulls(len(values), pa.string())
        if numbers:
            places = [at for at, _ in numbers]
            number[places], has_number[places] = [one.value for _, one in numbers], True
            units, unit = _coded([one.unit if isinstance(one, Number) else "" for one in values])
            literals = pa.array([one.literal if isinstance(one, Number) else None for one in values], pa.string())
        other = {at: one for at, one in enumerate(values) if one is not None and not isinstance(one, str | Number)}
        return cls(texts, text, number, has_number, literals, units, unit, other)

    @classmethod
    def of_columns(cls, text: pa.Array, number: pa.Array, literal: pa.Array, unit: pa.Array) -> WrittenParts:
        """From columns of a file, with null for what is not there."""
        texts, names = text.dictionary_encode(), pc.fill_null(unit, "").dictionary_encode()
        known = texts.dictionary.to_pylist()
        return cls(
            [*known, None],
            texts.indices.fill_null(len(known)).to_numpy(zero_copy_only=False).astype(np.int64),
            number.fill_null(0.0).to_numpy(zero_copy_only=False),
            number.is_valid().to_numpy(zero_copy_only=False),
            pc.coalesce(literal, number.cast(pa.string())),
            names.dictionary.to_pylist(),
            names.indices.to_numpy(zero_copy_only=False).astype(np.int64),
            {},
        )

    def __len__(self) -> int:
        return len(self.text)

    @cached_property
    def is_blank(self) -> Flags:
        """(n,) whether each part is the blank, `?`."""
        return self.of_text([text == BLANK for text in self.texts])

    @cached_property
    def is_other(self) -> Flags:
        """(n,) whether each part is neither text nor a number."""
        found = np.zeros(len(self), dtype=np.bool_)
        found[list(self.other)] = True
        return found

    @cached_property
    def is_missing(self) -> Flags:
        """(n,) whether nothing is written, or only spaces are."""
        empty = self.of_text([text is None or not text.strip() for text in self.texts])
        return empty & ~self.has_number & ~self.is_other

    @cached_property
    def has_both(self) -> Flags:
        """(n,) whether there is a text and a number."""
        return self.has_number & self.of_text([text is not None for text in self.texts])

    def of_text(self, flags: Sequence[bool]) -> Flags:
        """(n,) what is said of each different text, for each part."""
        found: Flags = np.array(flags, dtype=np.bool_)[self.text]
        return found

    def cell(self, at: int) -> Any:
        """One part as a program would give it."""
        if not self.has_number[at]:
            return self.other.get(at, self.texts[int(self.text[at])])
        value, literal = float(self.number[at]), self.literal[at].as_py()
        return Number(value, repr(value) if literal is None else literal, self.units[int(self.unit[at])])


@dataclass(frozen=True, eq=False)
class WrittenQuestions:
    """`n` questions. Their pairs are the relation and tail of each, and then all qualifiers, question by question."""

    head: WrittenParts  # (n,)
    relation: WrittenParts  # (p,) of the pairs
    value: WrittenParts  # (p,)
    count: Ids  # (n,) how many qualifiers each has

    @classmethod
    def of(cls, questions: Sequence[tuple[Any, Any, Any, Sequence[tuple[Any, Any]]]]) -> WrittenQuestions:
        """From facts, or the parts of each question, with pairs for qualifiers."""
        pairs = [pair for question in questions for pair in question[3]]
        return cls(
            WrittenParts.of([question[0] for question in questions]),
            WrittenParts.of([*(question[1] for question in questions), *(pair[0] for pair in pairs)]),
            WrittenParts.of([*(question[2] for question in questions), *(pair[1] for pair in pairs)]),
            np.array([len(question[3]) for question in questions], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.count)

    @cached_property
    def offsets(self) -> Ids:
        """(n + 1,) where the qualifiers of each question start among the pairs."""
        return offsets_of(self.count) + len(self)

    @cached_property
    def owner(self) -> Ids:
        """(p,) the question of each pair."""
        questions = np.arange(len(self), dtype=np.int64)
        return np.concatenate([questions, np.repeat(questions, self.count)])

    @cached_property
    def place(self) -> Ids:
        """(p,) the position of each pair's relation; its value stands right after it."""
        found = np.full(len(self.owner), RELATION, dtype=np.int64)
        pairs = np.arange(len(self), len(found), dtype=np.int64)
        found[pairs] = relation_position(pairs - self.offsets[self.owner[pairs]])
        return found

    def parts(self, question: int) -> tuple[Any, Any, Any, list[tuple[Any, Any]]]:
        """One question as a program would give it."""
        slots = [question, *range(int(self.offsets[question]), int(self.offsets[question + 1]))]
        for slot in slots:
            if self.value.has_both[slot]:
                what = position_name(int(self.place[slot]) + 1)
                raise UsageError(
                    f"the {what} has an entity and a number.",
                    where=what,
                    advice="Give one of the two, and leave the other null.",
                )
        (relation, tail), *pairs = [(self.relation.cell(slot), self.value.cell(slot)) for slot in slots]
        return self.head.cell(question), relation, tail, pairs


def _coded(values: Sequence[Any]) -> tuple[list[Any], Ids]:
    """The different values, and (n,) which of them each one is."""
    known: dict[Any, int] = {}
    codes = np.fromiter((known.setdefault(one, len(known)) for one in values), np.int64, len(values))
    return list(known), codes
