"""A number as a person writes it in a question, read by its relation: `80 kg`, `12.5 %`, `1995-06`, 3.4, a date.

A value's kind is never guessed: the relation beside it says that a number is meant, and in which unit it is kept.
"""

from __future__ import annotations

import datetime
import numbers
import re
from typing import Any

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.values import NUMBER_PATTERN, looks_like_number, parse_number
from hynt.graph.fact import DATE_UNIT, Number
from hynt.graph.units.conversion import convert, display_of, kept, lookup
from hynt.graph.units.dates import UnreadableDate, parse_iso_date
from hynt.graph.vocabulary import Relation

_QUANTITY = re.compile(rf"({NUMBER_PATTERN})(?:\s*(\D.*))?", re.DOTALL)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
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
        return _converted(relation, float(written), repr(written), "", where)
    if not isinstance(written, str):
        raise UsageError(f"{written!r:.40} is no number.", where=where, advice=_advice(relation))
    return _date(written, where) if relation.unit == DATE_UNIT else _quantity(relation, written, where)


def fits(relation: Relation, written: Any) -> bool:
    """Whether what is written can be a value of this relation."""
    try:
        number_for(relation, written, "")
    except UsageError:
        return False
    return True


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


def _plain(written: str) -> str:
    """Without what hynt itself puts into numbers for people: commas between thousands, and a real minus sign."""
    text = written.strip().replace("−", "-", 1)
    return _GROUPED.sub(lambda found: found[0].replace(",", ""), text, count=1)


def _date(written: str, where: str) -> Number:
    try:
        return Number(parse_iso_date(written.strip())[0], written.strip(), DATE_UNIT)
    except UnreadableDate as problem:
        raise UsageError.of(problem, where) from None


def _quantity(relation: Relation, written: str, where: str) -> Number:
    found = _QUANTITY.fullmatch(_plain(written))
    if found is None:
        name = relation.label or relation.name
        raise UsageError(
            f"{name!r} holds numbers, and {written[:60]!r} is none.", where=where, advice=_advice(relation)
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
        raise UsageError(f"a number in {unit!r} is no value of {name!r}.", where=where, advice=_advice(relation))
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
