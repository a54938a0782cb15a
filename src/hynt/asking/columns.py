"""Questions about one graph, one by itself or many in columns: what is scored together. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import (
    ENTITY_KIND,
    NUMBER_KIND,
    RELATION,
    RELATION_KIND,
    TAIL,
    FactTable,
    concatenate,
    position_name,
    qualifier_of,
)
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import AnswerIndex, AnswerLists
from hynt.graph.sentences import BLANK, Sentences, sentence
from hynt.graph.vocabulary import Flags, Floats, Ids, offsets_of, spread


@dataclass(frozen=True, eq=False)
class AskedFact:
    """A question about one graph, with a filler in its blank.

    Where a relation is hidden beside a number there is a row for each relation the number can belong to, because the
    number means something only on that relation's scale. Every other question is one row.
    """

    table: FactTable  # (rows,)
    position: int  # of the blank
    kind: int  # of the answer: ENTITY_KIND, RELATION_KIND or NUMBER_KIND
    relation: int | None  # the relation beside the blank; None where the blank is a relation
    tried: Ids | None  # (rows,) the relation of each row, where one is hidden beside a number
    words: tuple[str, ...]  # what stands at each position, with ? for the blank

    @property
    def text(self) -> str:
        """The question on one line: Japan · population · ? (point in time 1995-06-01)"""
        return sentence(self.words)

    @property
    def place(self) -> str:
        """Where the blank is, in words."""
        return position_name(self.position)


@dataclass(frozen=True, eq=False)
class AskedFacts:
    """`n` questions. Each is one row of the table, or, where a relation is hidden beside a number, one for each
    relation that the number can belong to: see `AskedFact`.
    """

    table: FactTable  # (rows,) with fillers in the blanks
    rows: Ids  # (n + 1,) the rows of question i are rows[i] … rows[i + 1]
    position: Ids  # (n,) of the blank
    kind: Ids  # (n,) of the answer: ENTITY_KIND, RELATION_KIND or NUMBER_KIND
    relation: Ids  # (n,) the relation beside the blank; filler 0 where the blank is a relation
    is_tried: NDArray[np.bool_]  # (n,) whether a relation is hidden beside a number

    def __len__(self) -> int:
        return len(self.position)

    @classmethod
    def of_triplets(cls, table: FactTable, position: Ids, relation_is_number: Flags) -> AskedFacts:
        """The questions that hide the head or the tail, at `position` (n,), of each fact."""
        is_number = relation_is_number[table.relation] & (position == TAIL)
        return cls(
            table,
            np.arange(len(table) + 1, dtype=np.int64),
            position,
            np.where(is_number, NUMBER_KIND, ENTITY_KIND).astype(np.int64),
            table.relation.astype(np.int64),
            np.zeros(len(table), dtype=np.bool_),
        )

    @classmethod
    def joined(cls, asked: Sequence[AskedFact]) -> AskedFacts:
        """These questions, in this order."""
        rows = offsets_of(np.array([len(one.table) for one in asked], dtype=np.int64))
        return cls(
            concatenate([one.table for one in asked]),
            rows,
            np.array([one.position for one in asked], dtype=np.int64),
            np.array([one.kind for one in asked], dtype=np.int64),
            np.array([one.relation or 0 for one in asked], dtype=np.int64),
            np.array([one.tried is not None for one in asked], dtype=np.bool_),
        )

    @classmethod
    def concatenated(cls, parts: Sequence[AskedFacts]) -> AskedFacts:
        """All of these, in order."""
        shifts = np.cumsum([0] + [len(part.table) for part in parts])
        starts = [part.rows[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
        return cls(
            concatenate([part.table for part in parts]),
            np.concatenate([*starts, shifts[-1:]]),
            *map(np.concatenate, zip(*(part._of_each for part in parts), strict=True)),
        )

    def take(self, chosen: Ids) -> AskedFacts:
        """These questions, in this order."""
        rows = offsets_of(np.diff(self.rows)[chosen])
        return AskedFacts(self.table.take(self.rows_of(chosen)), rows, *(column[chosen] for column in self._of_each))

    @property
    def _of_each(self) -> tuple[NDArray[Any], ...]:
        """(n,) each, what is said of a question."""
        return self.position, self.kind, self.relation, self.is_tried

    def one(self, number: int, graph: KnowledgeGraph) -> AskedFact:
        """One of these questions by itself."""
        rows, position, kind = self.rows_of(np.array([number])), int(self.position[number]), int(self.kind[number])
        table = self.table if len(self) == 1 else self.table.take(rows)
        words = Sentences(graph).words(table.fact(0, graph.vocabulary))
        words[position] = BLANK
        relation = None if kind == RELATION_KIND else int(self.relation[number])
        tried = self.relation_in_blank(rows, np.full(len(rows), position)) if self.is_tried[number] else None
        return AskedFact(table, position, kind, relation, tried, tuple(words))

    def rows_of(self, chosen: Ids) -> Ids:
        """The rows of these questions, question by question."""
        return spread(self.rows[:-1][chosen], np.diff(self.rows)[chosen])[1]

    def owners(self) -> Ids:
        """(rows,) the question that each row belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.rows))

    def relation_in_blank(self, rows: Ids, position: Ids) -> Ids:
        """(k,) the relation that stands in the blank at `position` (k,) of each of these rows (k,): the one tried."""
        own, of_qualifier = position == RELATION, position > TAIL
        found = np.zeros(len(rows), dtype=np.int64)
        found[own] = self.table.relation[rows[own]]
        slot = self.table.offsets[rows[of_qualifier]] + qualifier_of(position[of_qualifier])
        found[of_qualifier] = self.table.qualifier_relation[slot]
        return found


# Answers to many questions, in columns: ids and numbers, no names. What files and tables are made from.


@dataclass(frozen=True, eq=False)
class RankedColumns:
    """The first candidates of `n` questions, end to end, best first; none of a question that asks for a number."""

    offsets: Ids  # (n + 1,) the answers to question i are offsets[i] … offsets[i + 1]
    candidate: Ids  # (a,) entity or relation id
    probability: Floats  # (a,) among the candidates of the question
    score: Floats  # (a,) the model's own
    splits: NDArray[np.uint8]  # (a,) bit i is set when the graph's split number i holds the fact
    count: Ids  # (n,) how many candidates were ranked
    is_finite: Flags  # (n,) false where the model's scores were no numbers: the answers then mean nothing

    def owner(self) -> Ids:
        """(a,) the question that each answer belongs to."""
        return np.repeat(np.arange(len(self.count), dtype=np.int64), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class RankedParts:
    """Ranked answers as they are found, questions in any order, ranks in theirs."""

    count: Ids  # (n,) as in `RankedColumns`, filled in by whoever finds answers
    is_finite: Flags  # (n,)
    parts: list[tuple[NDArray[Any], ...]] = field(default_factory=list)

    def add(self, question: Ids, candidate: Ids, probability: Floats, score: Floats, splits: NDArray[np.uint8]) -> None:
        """(a,) each, those of a question best first."""
        self.parts.append((question, candidate, probability, score, splits))

    def columns(self) -> RankedColumns:
        """All of them, question by question."""
        kinds = (np.int64, np.int64, np.float64, np.float64, np.uint8)
        question, *rest = (
            np.concatenate([np.zeros(0, kind), *(part[column] for part in self.parts)])
            for column, kind in enumerate(kinds)
        )
        order = np.argsort(question, kind="stable")
        offsets = offsets_of(np.bincount(question, minlength=len(self.count)))
        candidate, probability, score, splits = (column[order] for column in rest)
        return RankedColumns(offsets, candidate, probability, score, splits, self.count, self.is_finite)


@dataclass(frozen=True, eq=False)
class Standing:
    """Where `w` answers that somebody names stand among the candidates of their questions; filled in by whoever ranks
    them.
    """

    question: Ids  # (w,)
    candidate: Ids  # (w,)
    is_candidate: Flags  # (w,) whether the question allows it
    rank: Ids  # (w,) from 1, in the order that `RankedColumns` has; read only where it is a candidate
    probability: Floats  # (w,) likewise

    @classmethod
    def of(cls, question: Ids, candidate: Ids) -> Standing:
        """Room for what these answers come to."""
        count = len(question)
        return cls(question, candidate, np.zeros(count, np.bool_), np.zeros(count, np.int64), np.zeros(count))

    def put(self, chosen: Ids, is_candidate: Flags, rank: Ids, probability: Floats) -> None:
        """What the answers `chosen` (k,), by their number, come to."""
        self.is_candidate[chosen], self.rank[chosen], self.probability[chosen] = is_candidate, rank, probability

    def of_questions(self, numbers: Ids) -> tuple[Ids, Ids]:
        """(k,) the answers to the questions `numbers` (n,), and (k,) the place of each one's question among those."""
        order = np.argsort(numbers, kind="stable")
        at = np.minimum(np.searchsorted(numbers[order], self.question), max(len(numbers) - 1, 0))
        chosen = np.flatnonzero(numbers[order][at] == self.question) if len(numbers) else np.zeros(0, np.int64)
        return chosen.astype(np.int64), order[at[chosen]]


@dataclass(frozen=True, eq=False)
class NumberColumns:
    """The numbers that answer `n` questions, in the graph's units."""

    value: Floats  # (n,)
    low: Floats  # (n,) of the interval; read only where there is one
    high: Floats  # (n,)
    width: Floats  # (n,) of the interval before it is cut to what can be; infinite around an answer that cannot be
    has_interval: Flags  # (n,)
    is_own: Flags  # (n,) whether the interval was made from the relation's own errors
    known: AnswerLists  # the numbers that the graph holds
    is_finite: Flags  # (n,) false where the model's answer is no number


def splits_of(index: AnswerIndex, start: Ids, count: Ids, candidate: Ids) -> NDArray[np.uint8]:
    """(a,) the split bits of candidates (a,) in known answers that start at `start` (a,) and are `count` (a,) many.

    Known answers are ascending: all are searched by halving at once, and none is copied.
    """
    if not len(index.known.answers):
        return np.zeros(len(candidate), dtype=np.uint8)
    answers, last = index.known.answers, len(index.known.answers) - 1
    low, high = start.copy(), start + count
    while (low < high).any():
        middle = np.minimum((low + high) // 2, last)
        before = answers[middle] < candidate
        searching = low < high
        low = np.where(searching & before, middle + 1, low)
        high = np.where(searching & ~before, middle, high)
    at = np.minimum(low, last)
    found = (low < start + count) & (answers[at] == candidate)
    return np.where(found, index.known.splits[at], 0).astype(np.uint8)
