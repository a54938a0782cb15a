"""Written questions to questions in columns, whole columns at a time. No torch here.

Most questions of a large file name ids or labels that one entity alone carries, and give numbers in the graph's own
units: these are resolved together. Every other question (a shared name, another unit, a relation hidden beside a
number, anything wrong) is given to `ask` on its own, which decides and which words what it refuses. So both ways mean
the same, and a test holds them to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hynt.asking.columns import AskedFacts
from hynt.asking.number_relations import RelationsOfUnits, Tried, tried, within_reach
from hynt.asking.question import AskedFact, ask
from hynt.batches.number_scaling import NumberScaling
from hynt.completion.names import FOUND, FOUND_IN_ANOTHER_CASE, IS_BLANK, MISSING, UNKNOWN, BulkNames, FoundNames
from hynt.completion.question_files import WrittenQuestions
from hynt.errors import UsageError
from hynt.graph.arrays import Flags, Ids
from hynt.graph.components import (
    ENTITY_KIND,
    FIRST_QUALIFIER,
    HEAD,
    NUMBER_KIND,
    RELATION,
    RELATION_KIND,
    TAIL,
    position_name,
)
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import NameLookup

_FILLER = 1.0  # what `ask` puts into a blank of a number relation


@dataclass(frozen=True, eq=False)
class ParsedQuestions:
    """What became of some written questions: each is asked or refused."""

    asked: AskedFacts
    row: Ids  # (n,) which of the written questions each asked one is
    refused: list[tuple[int, UsageError]]  # which of the written questions, and why


@dataclass(frozen=True, eq=False)
class _Values:
    """The tails, or the qualifier values, of a batch."""

    relation: FoundNames
    entity: FoundNames
    number: NDArray[np.float64]  # filler 0 where there is none
    has_number: Flags
    literal: pa.Array
    has_own_unit: Flags  # whether the number is in the unit of its relation
    unit: pa.Array  # as written; "" where nothing is
    is_finite: Flags

    def is_blank(self) -> Flags:
        found: Flags = self.entity.state == IS_BLANK
        return found


class QuestionEncoder:
    """For the questions of one file to one graph."""

    def __init__(self, graph: KnowledgeGraph, names: NameLookup, scaling: NumberScaling | None = None) -> None:
        """With a scaling, relations that a number is far out of reach of are not tried beside it."""
        self._graph, self._names, self._scaling = graph, names, scaling
        self._of_units = RelationsOfUnits(graph)
        self._is_number = graph.vocabulary.relation_is_number

    @cached_property
    def _entities(self) -> BulkNames:
        return BulkNames.entities(self._graph)

    @cached_property
    def _relations(self) -> BulkNames:
        return BulkNames.relations(self._graph)

    @cached_property
    def _units(self) -> pa.Array:
        return pa.array([relation.unit for relation in self._graph.relations], pa.string())

    def encode(self, written: WrittenQuestions, *, explain: bool) -> ParsedQuestions:
        """All questions of a batch. With `explain` a refused name comes with the nearest names, which takes a while."""
        columns = written.columns
        head = self._entities.find(columns.column("head"))
        tail = self._values(columns.column("relation"), [columns.column(f"tail_{name}") for name in _PARTS])
        lists = columns.column("qualifiers")
        name, *parts = lists.flatten().flatten()
        pair = self._values(name, parts)
        count = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        owner = np.repeat(np.arange(len(count), dtype=np.int64), count)

        def of_owner(flags: Flags) -> Ids:
            return np.bincount(owner[flags], minlength=len(count)).astype(np.int64)

        in_triplet = (head.state == IS_BLANK, tail.relation.state == IS_BLANK, tail.is_blank())
        blanks = np.sum(in_triplet, axis=0) + of_owner(pair.relation.state == IS_BLANK) + of_owner(pair.is_blank())
        found = (blanks == 1) & (_is_found(head) | (head.state == IS_BLANK))
        fits = self._fits(tail), self._fits(pair)
        beside = self._beside_number(tail), self._beside_number(pair)
        fine = found & fits[0] & (of_owner(~fits[1]) == 0)
        by_trying = found & (fits[0] | beside[0]) & (of_owner(~(fits[1] | beside[1])) == 0) & ~fine
        fast = np.flatnonzero(fine).astype(np.int64)
        asked, rows = [self._together(fast, head, tail, pair, owner, count)], [fast]
        if by_trying.any():
            which = np.flatnonzero(by_trying).astype(np.int64)
            made = self._tried(which, self._together(which, head, tail, pair, owner, count), tail, pair, owner)
            asked.append(made.asked)
            rows.append(which[made.chosen])
        slow = np.setdiff1d(np.arange(len(count)), np.concatenate(rows))
        missing = (
            (blanks != 1) | (of_owner(self._is_missing(pair)) > 0) | self._is_missing(tail) | (head.state == MISSING)
        )
        refused: list[tuple[int, UsageError]] = []
        single: list[AskedFact] = []
        of_single: list[int] = []
        for row in slow.tolist():
            try:
                if not explain and not missing[row]:
                    self._refuse_unknown(row, written, head, tail)
                one = ask(self._graph, *written.parts(row), self._names)
                single.append(one if self._scaling is None else within_reach(one, self._scaling))
                of_single.append(row)
            except UsageError as problem:
                refused.append((row, problem))
        if single:
            asked.append(AskedFacts.joined(single))
            rows.append(np.array(of_single, dtype=np.int64))
        return ParsedQuestions(AskedFacts.concatenated(asked), np.concatenate(rows), refused)

    # ------------------------------------------------------------------ how

    def _values(self, relation: pa.Array, parts: list[pa.Array]) -> _Values:
        entity, number, literal, unit = parts
        found = self._relations.find(relation)
        has_number = number.is_valid().to_numpy(zero_copy_only=False)
        own = self._units.take(pa.array(found.id))
        unit = pc.fill_null(unit, "")
        same = pc.or_(pc.equal(unit, own), pc.is_in(unit, pa.array(["", "1"])))
        value = number.fill_null(0.0).to_numpy(zero_copy_only=False)
        written = pc.coalesce(literal, number.cast(pa.string()))
        return _Values(
            found,
            self._entities.find(entity),
            value,
            has_number,
            written,
            same.to_numpy(zero_copy_only=False) & np.isfinite(value),
            unit,
            np.isfinite(value),
        )

    def _fits(self, values: _Values) -> Flags:
        """(n,) whether relation and value are resolved, or one of them is the blank, without a closer look."""
        entity, relation = values.entity, values.relation
        is_number = self._is_number[relation.id]
        as_number = values.is_blank() & ~values.has_number
        as_number |= values.has_number & (entity.state == MISSING) & values.has_own_unit
        as_entity = (_is_found(entity) | values.is_blank()) & ~values.has_number
        beside_blank = (entity.state == FOUND) & ~values.has_number
        fits: Flags = _is_found(relation) & np.where(is_number, as_number, as_entity)
        fits |= (relation.state == IS_BLANK) & beside_blank & (~self._is_number).any()
        return fits

    def _beside_number(self, values: _Values) -> Flags:
        """(n,) whether a relation is hidden beside a number whose relations are known by its unit alone."""
        units = values.unit.dictionary_encode()
        known = [self._of_units.of(unit) is not None for unit in units.dictionary.to_pylist()]
        is_known = np.array([*known, False], dtype=np.bool_)[units.indices.to_numpy(zero_copy_only=False)]
        beside: Flags = (values.relation.state == IS_BLANK) & values.has_number & (values.entity.state == MISSING)
        beside &= values.is_finite & is_known
        return beside

    def _tried(self, which: Ids, base: AskedFacts, tail: _Values, pair: _Values, owner: Ids) -> Tried:
        """The questions at the rows `which`, each with a row for each relation."""
        units = dict(zip(which.tolist(), tail.unit.take(pa.array(which)).to_pylist(), strict=True))
        hidden = np.flatnonzero((pair.relation.state == IS_BLANK) & np.isin(owner, which))
        units |= zip(owner[hidden].tolist(), pair.unit.take(pa.array(hidden)).to_pylist(), strict=True)
        relations = [self._of_units.of(units[row]) for row in which.tolist()]
        return tried(base, [found for found in relations if found is not None], self._scaling)

    def _is_missing(self, values: _Values) -> Flags:
        nothing: Flags = (values.entity.state == MISSING) & ~values.has_number
        nothing |= values.relation.state == MISSING
        return nothing

    def _refuse_unknown(self, row: int, written: WrittenQuestions, head: FoundNames, tail: _Values) -> None:
        """The common refusals in a few words: a file may hold a million of them."""
        states = ((head, HEAD), (tail.relation, RELATION), (tail.entity, TAIL))
        beside_entity = _is_found(tail.relation)[row] and not self._is_number[tail.relation.id[row]]
        for found, place in states:
            if found.state[row] == UNKNOWN and (place != TAIL or beside_entity):
                name = written.columns.column("tail_entity" if place == TAIL else position_name(place))[row].as_py()
                what = "relation" if place == RELATION else "entity"
                raise UsageError(f"the graph has no {what} called {name[:80]!r}.", where=position_name(place))

    def _together(
        self, chosen: Ids, head: FoundNames, tail: _Values, pair: _Values, owner: Ids, count: Ids
    ) -> AskedFacts:
        """The questions at these rows, all of which fit."""
        kept = np.zeros(len(count), dtype=np.bool_)
        kept[chosen] = True
        pairs = np.flatnonzero(kept[owner]).astype(np.int64)
        offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(count[chosen], out=offsets[1:])
        tails, values = self._filled(tail, chosen), self._filled(pair, pairs)
        tail_relation, pair_relation = tails[0], values[0]
        first = np.where(head.state == IS_BLANK, 0, head.id)[chosen].astype(np.int32)
        table = FactTable(first, *tails, offsets, *values)
        position = np.where(head.state == IS_BLANK, HEAD, np.where(tail.relation.state == IS_BLANK, RELATION, TAIL))[
            chosen
        ]
        relation = tail_relation.astype(np.int64)
        slot = np.arange(len(pairs), dtype=np.int64)
        own = np.repeat(np.arange(len(chosen), dtype=np.int64), count[chosen])
        for states, shift in ((pair.relation.state, 0), (pair.entity.state, 1)):
            at = slot[states[pairs] == IS_BLANK]
            position[own[at]] = FIRST_QUALIFIER + 2 * (at - offsets[own[at]]) + shift
            relation[own[at]] = pair_relation[at]
        is_number = self._is_number[relation] & (position != HEAD)
        kind = np.where(position % 2 == 1, RELATION_KIND, np.where(is_number, NUMBER_KIND, ENTITY_KIND))
        return AskedFacts(
            table,
            np.arange(len(chosen) + 1, dtype=np.int64),
            position.astype(np.int64),
            kind.astype(np.int64),
            np.where(kind == RELATION_KIND, 0, relation),
            np.zeros(len(chosen), dtype=np.bool_),
        )

    def _filled(
        self, values: _Values, chosen: Ids
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], pa.Array]:
        """Relations, entities, numbers and literals, with the fillers that `ask` puts into blanks."""
        hidden = values.relation.state[chosen] == IS_BLANK
        relation = values.relation.id[chosen]
        for kind, beside in ((False, hidden & ~values.has_number[chosen]), (True, hidden & values.has_number[chosen])):
            if beside.any():
                relation = np.where(beside, np.flatnonzero(self._is_number == kind)[0], relation)
        is_number, is_blank = self._is_number[relation], values.is_blank()[chosen]
        entity = np.where(is_number | is_blank, 0, values.entity.id[chosen])
        number = np.where(is_number, np.where(is_blank, _FILLER, values.number[chosen]), 0.0)
        literal = values.literal.take(pa.array(chosen))
        literal = pc.if_else(pa.array(is_number & is_blank), repr(_FILLER), literal)
        literal = pc.if_else(pa.array(is_number), literal, pa.scalar(None, pa.string()))
        return relation.astype(np.int32), entity.astype(np.int32), number, literal


def _is_found(names: FoundNames) -> Flags:
    found: Flags = (names.state == FOUND) | (names.state == FOUND_IN_ANOTHER_CASE)
    return found


_PARTS = ("entity", "number", "literal", "unit")
