"""Which answers to a question the graph already holds, and in which split.

Every component of every fact is the known answer of the question that hides it. The index sorts those questions by
key and keeps their answers end to end, so a whole batch of questions is answered by one binary search, with no Python
per fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.graph.arrays import spread
from hynt.graph.components import ENTITY_KIND, NUMBER_KIND, RELATION_KIND, components
from hynt.graph.content_hash import Hashes, question_keys
from hynt.graph.fact_table import FactTable


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
        first = np.ones(len(order), dtype=np.bool_)  # starts a new question
        first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        distinct = first.copy()  # starts a new answer
        distinct[1:] |= answers[1:] != answers[:-1]
        at = np.flatnonzero(distinct)
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
        offsets = np.zeros(len(keys) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        slots = spread(starts, counts)[1]
        return AnswerLists(offsets, self.known.answers[slots], self.known.splits[slots])


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
