"""Written questions to questions in columns, however few or many: one question is a batch of one. No torch here.

Most questions of a large file name ids or labels that one entity alone carries, and give numbers in the graph's own
units: whole columns of these are resolved at once. Only what needs a closer look (a shared name, another unit, a date
as text, anything wrong) is looked at part by part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hynt.asking.columns import AskedFacts
from hynt.asking.refusals import in_reach, out_of_reach
from hynt.asking.written import WrittenParts, WrittenQuestions, is_written_number, number_for
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import UsageError
from hynt.graph.fact import Number
from hynt.graph.fact_table import (
    ENTITY_KIND,
    HEAD,
    NUMBER_KIND,
    RELATION,
    RELATION_KIND,
    FactTable,
    position_name,
    qualifier_of,
)
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import NameLookup, entity_position
from hynt.graph.sentences import BLANK
from hynt.graph.vocabulary import Flags, Ids, offsets_of

_FILLER = 1.0
"""The number in a blank that nobody reads; above zero, so that a log scale can take it."""

HOW = "Give head, relation and tail, with '?' for the one component that is asked."


@dataclass(frozen=True, eq=False)
class EncodedQuestions:
    """What became of some written questions: each is asked or refused."""

    asked: AskedFacts
    row: Ids  # (n,) which of the written questions each asked one is, ascending
    refused: dict[int, UsageError]  # which of the written questions, and why


class QuestionEncoder:
    """For the questions to one graph."""

    def __init__(self, graph: KnowledgeGraph, names: NameLookup) -> None:
        self.graph, self.names = graph, names
        self.is_number = graph.vocabulary.relation_is_number
        self._of_unit: dict[str, Ids | None] = {}

    def encode(
        self, written: WrittenQuestions, scaling: NumberScaling | None = None, *, explain: bool = True
    ) -> EncodedQuestions:
        """With a scaling, relations that a number is far out of reach of are not tried beside it. With `explain` a
        refused name comes with the nearest names, which takes a while.
        """
        return _Encoding(self, written, explain).encoded(scaling)

    def relations_of_unit(self, unit: str) -> Ids | None:
        """The relations that a number in a unit can belong to; None where there are none, or where it would have to be
        converted for one of them.
        """
        if unit not in self._of_unit:
            found = self.relations_of(Number(1.0, "1", unit))
            plain = all(unit in ("", "1", self.graph.relations[one].unit) for one in found)
            self._of_unit[unit] = np.array(list(found), dtype=np.int64) if found and plain else None
        return self._of_unit[unit]

    def relations_of(self, written: Any) -> dict[int, Number]:
        """The relations that what is written can be a value of, and the number that it is there."""
        found = {}
        for at in np.flatnonzero(self.is_number).tolist():
            try:
                found[at] = number_for(self.graph.relations[at], written, "")
            except UsageError:
                continue
        return found


class _Encoding:
    """Of one batch. What is refused first stays refused for that, as if each question were read from the start."""

    def __init__(self, encoder: QuestionEncoder, written: WrittenQuestions, explain: bool) -> None:
        self.encoder, self.written, self.explain = encoder, written, explain
        self.graph, self.names, self.is_number = encoder.graph, encoder.names, encoder.is_number
        self.refused: dict[int, UsageError] = {}
        self.stands = np.ones(len(written), dtype=np.bool_)  # (n,) not refused yet
        self.is_hidden = written.relation.is_blank  # (p,)
        self.entity = np.zeros(len(written.owner), dtype=np.int64)  # (p,)
        self.number = written.value.number.copy()  # (p,)
        self.read: dict[int, Number] = {}  # pairs whose number is not the written one
        self.converted: dict[int, list[Number]] = {}  # of pairs tried, the number in the unit of each relation
        self.settled: dict[tuple[str, int, int | None], int] = {}  # names that several carry

    def encoded(self, scaling: NumberScaling | None) -> EncodedQuestions:
        self._refuse_shapes()
        tried = self._tried()
        self.relation = self._relations(tried)
        self._values(tried)
        heads = self._pairs(~self.written.head.is_blank, np.arange(len(self.written)))
        head, odd = self._found(self.written.head, heads)
        for at in odd.tolist():
            relation = None if self.is_hidden[at] else int(self.relation[at])
            head[at] = self._looked_up(self.written.head, at, at, HEAD, relation)
        position, beside = self._blanks()
        rows = self._rows(tried, position, scaling)
        kept = np.flatnonzero(self.stands).astype(np.int64)
        kind = np.where(self.is_number[beside] & (position != HEAD), NUMBER_KIND, ENTITY_KIND)
        kind = np.where(position % 2 == 1, RELATION_KIND, kind).astype(np.int64)
        is_tried = np.zeros(len(self.written), dtype=np.bool_)
        is_tried[self.written.owner[list(tried)]] = True
        asked = AskedFacts(
            self._table(kept, head),
            np.arange(len(kept) + 1, dtype=np.int64),
            position[kept],
            kind[kept],
            np.where(kind == RELATION_KIND, 0, beside)[kept],
            is_tried[kept],
        )
        return EncodedQuestions(asked if rows is None else rows.put_into(asked, kept), kept, self.refused)

    # ------------------------------------------------------------------ refusing

    def _refuse(self, question: int, problem: UsageError) -> None:
        self.refused[question] = problem
        self.stands[question] = False

    def _pairs(self, chosen: Flags, owner: Ids) -> Ids:
        """The pairs, or heads, among the chosen ones whose questions stand."""
        return np.flatnonzero(chosen & self.stands[owner]).astype(np.int64)

    def _refuse_shapes(self) -> None:
        """Questions with no blank or several, with a part missing, or with one that is two things."""
        written, count = self.written, len(self.written)

        def total(of_pairs: Flags) -> Ids:
            return np.bincount(written.owner[of_pairs], minlength=count).astype(np.int64)

        blanks = written.head.is_blank + total(written.relation.is_blank) + total(written.value.is_blank)
        wrong = written.relation.is_missing | written.value.is_missing | written.value.has_both
        for question in np.flatnonzero((blanks != 1) | written.head.is_missing | (total(wrong) > 0)).tolist():
            self._refuse(question, _shape_problem(written, question))

    def _looked_up(self, column: WrittenParts, at: int, question: int, place: int, relation: int | None) -> int:
        """An entity that has to be looked at by itself; refused where it is none, or nobody knows which."""
        written = column.cell(at)
        if not self.stands[question]:
            return 0
        if not isinstance(written, str):
            problem = UsageError(
                f"the {position_name(place)} is {written!r:.40}, and an entity is wanted there.",
                advice="Give an entity's id or name.",
            )
            self._refuse(question, problem.at(position_name(place)))
            return 0
        key = (written, min(place, RELATION + 2), relation)
        if key not in self.settled:
            try:
                self._refuse_unknown("entity", written, self.names.entities_called(written))
                self.settled[key] = self.names.entity(written, entity_position(place), relation)
            except UsageError as problem:
                self._refuse(question, problem.at(position_name(place)))
                return 0
        return self.settled[key]

    def _refuse_unknown(self, what: str, name: str, found: list[int]) -> None:
        """In a few words, where nobody reads more: a file may hold a million unknown names."""
        if not found and not self.explain:
            raise UsageError(f"the graph has no {what} called {name[:80]!r}.")

    # ------------------------------------------------------------------ resolving

    def _tried(self) -> dict[int, Ids]:
        """For pairs whose relation is hidden beside a number: the relations that it can belong to."""
        written, value = self.written, self.written.value
        found: dict[int, Ids] = {}
        hidden = self._pairs(self.is_hidden, written.owner)
        codes = set(np.unique(value.text[hidden]).tolist())
        is_number = value.of_text([code in codes and self._is_number_text(one) for code, one in enumerate(value.texts)])
        hidden = hidden[(value.has_number | value.is_other | is_number)[hidden]]
        is_plain = (value.has_number & np.isfinite(value.number))[hidden].tolist()
        for pair, unit, plain in zip(hidden.tolist(), value.unit[hidden].tolist(), is_plain, strict=True):
            known = self.encoder.relations_of_unit(value.units[unit]) if plain else None
            if known is not None:
                found[pair] = known
                continue
            cell, place = value.cell(pair), position_name(int(written.place[pair]) + 1)
            numbers = self.encoder.relations_of(cell)
            if numbers:
                found[pair], self.converted[pair] = np.array(list(numbers), dtype=np.int64), list(numbers.values())
                continue
            problem = UsageError(
                f"no relation of this graph holds numbers such as {cell!r:.60}.",
                where=place,
                advice="Give an entity, or a number in a unit that the graph has.",
            )
            self._refuse(int(written.owner[pair]), problem)
        return found

    def _is_number_text(self, text: str | None) -> bool:
        """Whether a text beside a hidden relation means a number: not where it is just how an entity is called."""
        if text is None or not is_written_number(text):
            return False
        found = self.names.entities_called(text)
        exact = text in self.graph.vocabulary.entity_ids or any(self.graph.entity_labels[one] == text for one in found)
        return not exact

    def _relations(self, tried: dict[int, Ids]) -> Ids:
        """(p,) the relation of each pair; one of the right kind where it is hidden."""
        written, column = self.written, self.written.relation
        called = [[] if text is None or text == BLANK else self.names.relations_called(text) for text in column.texts]
        relation = np.array([one[0] if one else 0 for one in called], dtype=np.int64)[column.text]
        settled = column.of_text([len(one) == 1 for one in called])
        for pair in self._pairs(~settled & ~self.is_hidden, written.owner).tolist():
            name, place = column.cell(pair), position_name(int(written.place[pair]))
            question = int(written.owner[pair])
            if not self.stands[question]:
                continue
            try:
                if not isinstance(name, str):
                    raise UsageError(
                        f"the relation is {name!r:.40}, which is not text.", advice="Give a relation's id or name."
                    )
                self._refuse_unknown("relation", name, called[int(column.text[pair])])
                relation[pair] = self.names.relation(name)
            except UsageError as problem:
                self._refuse(question, problem.at(place))
        for pair in self._pairs(self.is_hidden, written.owner).tolist() if self.is_number.all() else ():
            if pair not in tried:
                where = position_name(int(written.place[pair]))
                refusal = UsageError("no relation of this graph holds entities.", where=where, advice="Give a number.")
                self._refuse(int(written.owner[pair]), refusal)
        if self.is_hidden.any():
            relation[self.is_hidden] = int(np.argmin(self.is_number))
            relation[list(tried)] = int(np.argmax(self.is_number))
        return relation

    def _values(self, tried: dict[int, Ids]) -> None:
        """The tails and the values of qualifiers: entities, and numbers in the units of their relations."""
        written, value = self.written, self.written.value
        is_number = self.is_number[self.relation]
        is_open = ~value.is_blank
        is_open[list(tried)] = False
        names, odd = self._found(value, self._pairs(is_open & ~is_number, written.owner))
        self.entity = np.where(is_number | value.is_blank, 0, names)
        numbers = self._pairs(is_open & is_number, written.owner)
        fine = value.has_number[numbers] & np.isfinite(value.number[numbers]) & self._in_own_unit(numbers)
        for pair in np.sort(np.concatenate([odd, numbers[~fine]])).tolist():
            question, place, relation = int(written.owner[pair]), int(written.place[pair]) + 1, int(self.relation[pair])
            if not is_number[pair]:
                beside = None if self.is_hidden[pair] else relation
                self.entity[pair] = self._looked_up(value, pair, question, place, beside)
            elif self.stands[question]:
                try:
                    self.read[pair] = number_for(self.graph.relations[relation], value.cell(pair), position_name(place))
                except UsageError as problem:
                    self._refuse(question, problem)
        self.number[list(self.read)] = [one.value for one in self.read.values()]
        self.number = np.where(is_number, np.where(value.is_blank, _FILLER, self.number), 0.0)

    def _found(self, column: WrittenParts, places: Ids) -> tuple[Ids, Ids]:
        """(column,) the entities at these places, where just one is called so; and the places where that is not so."""
        codes = np.unique(column.text[places])
        found, is_one = np.zeros(len(column.texts), dtype=np.int64), np.zeros(len(column.texts), dtype=np.bool_)
        for code in codes.tolist():
            text = column.texts[code]
            called = [] if text is None else self.names.entities_called(text)
            if len(called) == 1:
                found[code], is_one[code] = called[0], True
        return found[column.text], places[~is_one[column.text[places]] | column.has_number[places]]

    def _in_own_unit(self, pairs: Ids) -> Flags:
        """(k,) whether numbers need no conversion: without a unit, a number is in that of its relation."""
        value, width = self.written.value, len(self.is_number)
        both, which = np.unique(value.unit[pairs] * width + self.relation[pairs], return_inverse=True)
        units = [(value.units[one // width], self.graph.relations[one % width].unit) for one in both.tolist()]
        return np.array([unit in ("", "1", own) for unit, own in units], dtype=np.bool_)[which]

    # ------------------------------------------------------------------ putting together

    def _blanks(self) -> tuple[Ids, Ids]:
        """(n,) the position of each blank, and (n,) the relation beside it."""
        written = self.written
        position, beside = np.full(len(written), HEAD, dtype=np.int64), self.relation[: len(written)].copy()
        for is_blank, shift in ((self.is_hidden, 0), (written.value.is_blank, 1)):
            pairs = np.flatnonzero(is_blank)
            position[written.owner[pairs]] = written.place[pairs] + shift
            beside[written.owner[pairs]] = self.relation[pairs]
        return position, beside

    def _table(self, kept: Ids, head: Ids) -> FactTable:
        """The questions that stand, with fillers in their blanks."""
        written = self.written
        pairs = np.flatnonzero(self.stands[written.owner] & (written.place > RELATION)).astype(np.int64)
        offsets = offsets_of(written.count[kept])
        filler = self.is_number[self.relation] & written.value.is_blank
        places = np.arange(len(self.relation))
        places[list(self.read)] = len(places) + np.arange(len(self.read))
        places[filler] = len(places) + len(self.read)
        spelt = pa.array([*(one.literal for one in self.read.values()), repr(_FILLER)], pa.string())
        literal = pa.concat_arrays([written.value.literal, spelt]).take(
            pa.array(places, mask=~self.is_number[self.relation])
        )

        def column(chosen: Ids) -> tuple[Any, Any, Any, pa.Array]:
            relation, entity = self.relation[chosen].astype(np.int32), self.entity[chosen].astype(np.int32)
            return relation, entity, self.number[chosen], literal.take(pa.array(chosen))

        return FactTable(head[kept].astype(np.int32), *column(kept), offsets, *column(pairs))

    def _rows(self, tried: dict[int, Ids], position: Ids, scaling: NumberScaling | None) -> _TriedRows | None:
        """A row for each relation that is tried beside a number; None where that is nobody's question."""
        owner = self.written.owner
        pairs = [pair for pair in tried if self.stands[owner[pair]]]
        if not pairs:
            return None
        which = np.repeat(pairs, [len(tried[pair]) for pair in pairs])
        relation = np.concatenate([tried[pair] for pair in pairs])
        converted = [one for pair in pairs for one in self.converted.get(pair, ())]
        is_converted = np.isin(which, list(self.converted))
        value, places = self.written.value.number[which], which.copy()
        value[is_converted] = [one.value for one in converted]
        places[is_converted] = len(owner) + np.arange(len(converted))
        spelt = pa.array([one.literal for one in converted], pa.string())
        literal = pa.concat_arrays([self.written.value.literal, spelt]).take(pa.array(places))
        rows = _TriedRows(owner[which], relation, value, literal)
        if scaling is None:
            return rows
        near = np.flatnonzero(in_reach(scaling, relation, value))
        for question in np.setdiff1d(rows.question, rows.question[near]).tolist():
            self._refuse(question, out_of_reach(position_name(int(position[question]))))
        return _TriedRows(rows.question[near], relation[near], value[near], literal.take(pa.array(near)))


@dataclass(frozen=True, eq=False)
class _TriedRows:
    """Relations that are tried beside numbers."""

    question: Ids  # (r,)
    relation: Ids  # (r,)
    value: Any  # (r,) float64 the number on the relation's scale
    literal: pa.Array  # (r,)

    def put_into(self, base: AskedFacts, kept: Ids) -> AskedFacts:
        """The questions `kept` (n,), which have a row each, with a row for each relation instead."""
        order = np.argsort(self.question, kind="stable")
        size = np.where(base.is_tried, np.searchsorted(self.question[order], kept, "right"), 1)
        size -= np.where(base.is_tried, np.searchsorted(self.question[order], kept), 0)
        owner = np.repeat(np.arange(len(kept), dtype=np.int64), size)
        table, position = base.table.take(owner), base.position[owner]
        rows = np.flatnonzero(base.is_tried[owner])
        is_main = position[rows] == RELATION
        main, slots = rows[is_main], table.offsets[rows[~is_main]] + qualifier_of(position[rows[~is_main]])
        first, second = order[is_main], order[~is_main]
        literals = (
            _replaced(table.tail_literal, main, self.literal, first),
            _replaced(table.qualifier_literal, slots, self.literal, second),
        )
        table = replace(table, tail_literal=literals[0], qualifier_literal=literals[1])
        table.relation[main], table.tail_number[main] = self.relation[first], self.value[first]
        table.qualifier_relation[slots], table.qualifier_number[slots] = self.relation[second], self.value[second]
        return replace(base, table=table, rows=offsets_of(size))


def _replaced(column: pa.Array, places: Ids, by: pa.Array, chosen: Ids) -> pa.Array:
    index = np.arange(len(column))
    index[places] = len(column) + chosen
    return pa.concat_arrays([column, by]).take(pa.array(index))


def _shape_problem(written: WrittenQuestions, question: int) -> UsageError:
    """What is wrong with a question before any name is looked at."""
    try:
        head, relation, tail, pairs = written.parts(question)
    except UsageError as problem:
        return problem
    parts = [head, relation, tail, *(part for pair in pairs for part in pair)]
    if all(part is None or part == "" for part in parts):
        return UsageError("the question is empty.", advice=HOW)
    for place, part in enumerate(parts):
        if part is None or (isinstance(part, str) and not part.strip()):
            what = position_name(place)
            return UsageError(f"the question has no {what}.", where=what, advice=HOW)
    blanks = [place for place, part in enumerate(parts) if isinstance(part, str) and part == BLANK]
    if not blanks:
        return UsageError("the question has no blank.", advice=HOW)
    listed = " and ".join(position_name(place) for place in blanks)
    return UsageError(f"the question has {len(blanks)} blanks: {listed}.", advice="Ask for one component at a time.")
