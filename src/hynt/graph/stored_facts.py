"""The stored facts that answer a question: those that say all that it says, perhaps with more qualifiers.

Japan · life expectancy · ? is answered by every life expectancy of Japan, whatever its date. The facts of a split are
sorted by head and by tail once, so a question looks at the facts of one entity and at no others. No torch here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hynt.graph.arrays import Flags, Floats, Ids, spread
from hynt.graph.components import HEAD, RELATION, TAIL, qualifier_of
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph

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
        dated = self._is_date[table.qualifier_relation[slot]]
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

    @cached_property
    def _is_date(self) -> Flags:
        return np.array([relation.unit == DATE_UNIT for relation in self.graph.relations], dtype=np.bool_)


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
