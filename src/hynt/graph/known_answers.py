"""Which answers to a question the graph already holds, in which split, and in which facts.

Every component of every fact is the known answer of the question that hides it. The index sorts those questions by
key and keeps their answers end to end, so a whole batch of questions is answered by one binary search, with no Python
per fact.

The stored facts that answer a question are those that say all that it says, perhaps with more qualifiers: Japan · life
expectancy · ? is answered by every life expectancy of Japan, whatever its date. The facts of a split are sorted by head
and by tail once, so a question looks at the facts of one entity and at no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hynt.graph.content_hash import Hashes, question_keys
from hynt.graph.fact_table import (
    ENTITY_KIND,
    HEAD,
    NUMBER_KIND,
    RELATION,
    RELATION_KIND,
    TAIL,
    FactTable,
    components,
    qualifier_of,
)
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Floats, Ids, begins, offsets_of, spread


@dataclass(frozen=True, eq=False)
class AnswerLists:
    """The known answers of `n` questions, end to end."""

    offsets: NDArray[np.int64]  # (n + 1,) answers of question i are offsets[i] … offsets[i + 1]
    answers: NDArray[Any]  # (a,) entity ids, relation ids or numbers, ascending and distinct within a question
    splits: NDArray[np.uint8]  # (a,) bit i is set when the graph's split number i holds the answer

    def question(self) -> NDArray[np.int64]:
        """(a,) the question that each answer belongs to."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class AnswerIndex:
    """The questions with one kind of answer, sorted by key."""

    high: NDArray[np.uint64]  # (q,) first half of each question's key, ascending
    low: NDArray[np.uint64]  # (q,) second half, ascending where the first halves agree
    known: AnswerLists  # of the q questions

    @classmethod
    def build(cls, keys: Hashes, answers: NDArray[Any], split: NDArray[np.uint8]) -> AnswerIndex:
        """From (c, 2) keys, (c,) answers and (c,) split bits; the same answer from several facts is kept once."""
        order = np.lexsort((answers, keys[:, 1], keys[:, 0]))
        high, low, answers, split = keys[order, 0], keys[order, 1], answers[order], split[order]
        first = begins(high, low)  # starts a new question
        at = np.flatnonzero(begins(high, low, answers))
        splits = np.bitwise_or.reduceat(split, at) if len(at) else split
        offsets = np.append(np.flatnonzero(first[at]), len(at)).astype(np.int64)
        return cls(high[first], low[first], AnswerLists(offsets, answers[at], splits))

    def spans(self, keys: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(n,) where the known answers of questions with these (n, 2) keys start in `known.answers`; (n,) how many.

        Spans cost nothing per answer: many questions may share one long list of answers.
        """
        if not len(self.high):
            return np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=np.int64)
        high, low = np.ascontiguousarray(keys[:, 0]), np.ascontiguousarray(keys[:, 1])
        last = len(self.high) - 1
        place = np.searchsorted(self.high, high)
        while True:  # steps on where different questions share their first 64 bits: hardly ever
            at = np.minimum(place, last)
            same = (place <= last) & (self.high[at] == high)
            behind = same & (self.low[at] < low)
            if not behind.any():
                break
            place = place + behind
        found = same & (self.low[at] == low)
        starts = np.where(found, self.known.offsets[at], 0)
        return starts, np.where(found, self.known.offsets[at + 1], 0) - starts

    def lookup(self, keys: Hashes) -> AnswerLists:
        """The known answers of questions with these (n, 2) keys; none where the graph does not hold the question."""
        starts, counts = self.spans(keys)
        slots = spread(starts, counts)[1]
        return AnswerLists(offsets_of(counts), self.known.answers[slots], self.known.splits[slots])


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """All questions that the facts of some splits answer."""

    splits: tuple[str, ...]  # bit i of an answer's splits stands for the i-th name
    relation_is_number: NDArray[np.bool_]  # (relations,)
    entities: AnswerIndex
    relations: AnswerIndex
    numbers: AnswerIndex

    @classmethod
    def build(cls, tables: Mapping[str, FactTable], relation_is_number: NDArray[np.bool_]) -> KnownAnswers:
        """The index of the facts of all these splits, by name."""
        parts = [components(table, relation_is_number) for table in tables.values()]
        keys = np.concatenate([question_keys(table, relation_is_number) for table in tables.values()])
        bits = [np.full(len(part), 1 << index, dtype=np.uint8) for index, part in enumerate(parts)]
        split = np.concatenate(bits)
        kind = np.concatenate([part.kind for part in parts])
        answers = {
            ENTITY_KIND: np.concatenate([part.entity for part in parts]),
            RELATION_KIND: np.concatenate([part.relation for part in parts]),
            NUMBER_KIND: np.concatenate([part.number for part in parts]) + 0.0,  # -0.0 and 0.0 are one number
        }
        indexes = [
            AnswerIndex.build(keys[chosen], answers[code][chosen], split[chosen])
            for code in (ENTITY_KIND, RELATION_KIND, NUMBER_KIND)
            for chosen in (np.flatnonzero(kind == code),)
        ]
        return cls(tuple(tables), relation_is_number, *indexes)

    def of_kind(self, kind: int) -> AnswerIndex:
        """The index for ENTITY_KIND, RELATION_KIND or NUMBER_KIND answers."""
        return (self.entities, self.relations, self.numbers)[kind]

    def lookup(self, table: FactTable, chosen: NDArray[np.int64], kind: int) -> AnswerLists:
        """Known answers of questions that hide these components (by their number in the table), all of one kind."""
        return self.of_kind(kind).lookup(question_keys(table, self.relation_is_number)[chosen])

    def split_names(self, bits: int) -> tuple[str, ...]:
        """The names of the splits whose bits are set."""
        return tuple(name for index, name in enumerate(self.splits) if bits >> index & 1)


MOST = 10_000
"""Facts of one split that are looked at for one question; an entity with more is a class or a unit, not a subject."""


class StoredFact(NamedTuple):
    """A fact that answers a question."""

    split: str
    row: int  # in the split's table
    answer: float  # the entity's or relation's id, or the number
    extra: int  # qualifiers that the question does not have
    when: float  # the latest date among its qualifiers; −∞ where it has none


@dataclass(frozen=True, eq=False)
class StoredFacts:
    """All facts of a graph, to be looked up by their head or their tail."""

    graph: KnowledgeGraph

    def answering(self, asked: FactTable, position: int, *, is_tried: bool = False) -> list[StoredFact]:
        """The facts that fill the blank at `position` of a question: closest first, then the latest.

        The question is one row, with a filler in its blank; or, where relations are tried beside a number, a row for
        each, with the relation in its place.
        """
        found = [
            fact
            for row in range(len(asked))
            for split in self.graph.splits
            for fact in self._in_split(split, asked, row, position, is_tried=is_tried)
        ]
        return sorted(found, key=lambda fact: (fact.extra, -fact.when, fact.split, fact.row))

    def _in_split(self, split: str, asked: FactTable, row: int, position: int, *, is_tried: bool) -> list[StoredFact]:
        table, (by_head, by_tail) = self.graph.splits[split], self._orders[split]
        head, relation = int(asked.head[row]), int(asked.relation[row])
        tail, number = int(asked.tail_entity[row]), float(asked.tail_number[row])
        is_number = self.graph.vocabulary.relation_is_number
        hides_relation = position == RELATION and not is_tried
        if position == HEAD:
            rows = _narrowed(
                by_tail, (table.relation, relation), (table.tail_entity, tail), (table.tail_number, number)
            )
        else:
            sought = [(table.head, head)] if hides_relation else [(table.head, head), (table.relation, relation)]
            rows = _narrowed(by_head, *sought)
            if hides_relation:
                rows = rows[~is_number[table.relation[rows]]]
            if position != TAIL:
                rows = rows[(table.tail_entity[rows] == tail) & (table.tail_number[rows] == number)]
        size = table.qualifier_counts()[rows]
        owner, slot = spread(table.offsets[rows], size)
        fits, answer = np.ones(len(rows), dtype=np.bool_), self._triplet_answer(table, rows, position)
        own = range(int(asked.offsets[row]), int(asked.offsets[row + 1]))
        for at, pair in enumerate(own):
            named, entity = int(asked.qualifier_relation[pair]), int(asked.qualifier_entity[pair])
            same_relation = table.qualifier_relation[slot] == named
            same_value = (table.qualifier_entity[slot] == entity) & (
                table.qualifier_number[slot] == asked.qualifier_number[pair]
            )
            blank = position > TAIL and at == qualifier_of(position)
            if blank and position % 2 and not is_tried:
                here = same_value & ~is_number[table.qualifier_relation[slot]]
                answer = _put(answer, owner[here], table.qualifier_relation[slot[here]])
            elif blank and position % 2 == 0:
                here = same_relation
                values = np.where(is_number[named], table.qualifier_number[slot], table.qualifier_entity[slot])
                answer = _put(answer, owner[here], values[here])
            else:
                here = same_relation & same_value
                answer = np.full(len(rows), float(named)) if blank else answer
            fits &= np.bincount(owner[here], minlength=len(rows)) > 0
        when = np.full(len(rows), -np.inf)
        dated = self.graph.vocabulary.relation_is_date[table.qualifier_relation[slot]]
        np.maximum.at(when, owner[dated], table.qualifier_number[slot[dated]])
        chosen = np.flatnonzero(fits)
        columns = (rows[chosen], answer[chosen], size[chosen] - len(own), when[chosen])
        return [StoredFact(split, *one) for one in zip(*(column.tolist() for column in columns), strict=True)]

    def _triplet_answer(self, table: FactTable, rows: Ids, position: int) -> Floats:
        """(n,) what stands at a position of the triplet; 0 for one past it."""
        if position == HEAD:
            return table.head[rows].astype(np.float64)
        if position == RELATION:
            return table.relation[rows].astype(np.float64)
        if position > TAIL:
            return np.zeros(len(rows))
        numeric = self.graph.vocabulary.relation_is_number[table.relation[rows]]
        return np.where(numeric, table.tail_number[rows], table.tail_entity[rows])

    @cached_property
    def _orders(self) -> dict[str, tuple[Ids, Ids]]:
        """The rows of each split by head and relation, and by relation and tail."""
        return {
            split: (
                np.lexsort((table.relation, table.head)).astype(np.int64),
                np.lexsort((table.tail_number, table.tail_entity, table.relation)).astype(np.int64),
            )
            for split, table in self.graph.splits.items()
        }


def _narrowed(order: Ids, *sought: tuple[np.ndarray, float]) -> Ids:
    """The rows at which every column has the value sought, of rows `order` (n,) sorted by these columns in turn."""
    for column, value in sought:
        values = _Ordered(column, order)
        first = values.place(value, after=False)
        order = order[first : values.place(value, after=True)]
    return order[:MOST]


class _Ordered(NamedTuple):
    """A column as it stands in an order of rows; never copied, because halving looks at a few rows alone."""

    column: np.ndarray
    order: Ids

    def place(self, value: float, *, after: bool) -> int:
        """Where the rows with this value begin, or end."""
        low, high = 0, len(self.order)
        while low < high:
            middle = (low + high) // 2
            found = self.column[self.order[middle]]
            low, high = (middle + 1, high) if found < value or (after and found == value) else (low, middle)
        return low


def _put(answer: Floats, owner: Ids, value: np.ndarray) -> Floats:
    """The same answers with `value` (k,) for the facts `owner` (k,)."""
    found = answer.copy()
    found[owner] = value
    return found
