"""Answers to many questions, in columns: ids and numbers, no names. What files and tables are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.graph.known_answers import AnswerIndex, AnswerLists

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


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
        offsets = np.zeros(len(self.count) + 1, dtype=np.int64)
        np.cumsum(np.bincount(question, minlength=len(self.count)), out=offsets[1:])
        candidate, probability, score, splits = (column[order] for column in rest)
        return RankedColumns(offsets, candidate, probability, score, splits, self.count, self.is_finite)


@dataclass(frozen=True, eq=False)
class NumberColumns:
    """The numbers that answer `n` questions, in the graph's units."""

    value: Floats  # (n,)
    low: Floats  # (n,) of the interval; read only where there is one
    high: Floats  # (n,)
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
