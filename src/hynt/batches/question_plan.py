"""The plan of an epoch that asks given questions, each a fact and a position, instead of one drawn for each fact.

Questions have kinds (what their loss needs is the same) and are dealt so that each step has the same number of each
kind and length. A question may have a chance below one to be asked in an epoch; the plan then has room for as many as
are likely, and those not drawn leave filler of weight 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.batches.buckets import BatchLayout, bucket_capacities, layout_of
from hynt.batches.epoch_plan import DEVIATIONS, Deal, Dealing, dealt, merged
from hynt.batches.seeds import generator_for


class Piece(NamedTuple):
    """Consecutive rows of a step that have one kind and one capacity."""

    rows: int
    capacity: int
    kind: int


class StepPieces(NamedTuple):
    """The pieces of a step, in order. Hashable: steps of the same pieces have the same shapes."""

    pieces: tuple[Piece, ...]

    @property
    def layout(self) -> BatchLayout:
        """The layout of the step's batch: pieces of one capacity are one segment."""
        runs = groupby(self.pieces, key=lambda piece: piece.capacity)
        return layout_of((sum(piece.rows for piece in run), capacity) for capacity, run in runs)

    def rows_of(self, kind: int, device: torch.device) -> Tensor:
        """(k,) int64 the rows of a kind, which follow from the pieces alone."""
        kinds = torch.tensor([piece.kind for piece in self.pieces for _ in range(piece.rows)], device=device)
        return torch.nonzero(kinds == kind).squeeze(1)


class PlannedSteps(NamedTuple):
    """The steps of one shape."""

    pieces: StepPieces
    questions: Tensor  # (steps, rows) int64 numbers of questions
    weights: Tensor  # (steps, rows) float32 1 for a question, 0 for filler


@dataclass(frozen=True, eq=False)
class QuestionPlan:
    """The steps of one epoch."""

    groups: tuple[PlannedSteps, ...]  # by shape; the last holds the regular steps
    places: tuple[tuple[int, int], ...]  # for each step of the epoch, its group and its row there

    def __len__(self) -> int:
        return len(self.places)


class QuestionPlanner:
    """Makes the plan of any epoch: a function of the questions, the batch size, the seed and the epoch alone."""

    def __init__(self, qualifiers: Tensor, kind: Tensor, chance: Tensor, batch_size: int) -> None:
        """For q questions: (q,) int64 how many qualifiers the fact has, (q,) int64 a small number for the kind, and
        (q,) float64 how likely it is asked in an epoch.
        """
        if len(qualifiers) == 0:
            raise ValueError("there are no questions to train on")
        self.chance = chance
        self.expected = float(chance.sum())
        self.steps = max(1, math.ceil(self.expected / batch_size))
        capacity = merged(bucket_capacities(qualifiers), self.steps, batch_size)
        kinds = int(kind.max()) + 1
        keys, self._bucket, sizes = torch.unique(capacity * kinds + kind, return_inverse=True, return_counts=True)
        self._kinds = (keys % kinds).tolist()
        self._first = (sizes.cumsum(0) - sizes).tolist()  # of each bucket, once questions are sorted
        self._is_certain = bool((chance >= 1).all())
        blank = torch.zeros(len(keys), dtype=torch.float64, device=chance.device)
        mean = blank.index_add(0, self._bucket, chance)
        room = mean + DEVIATIONS * blank.index_add(0, self._bucket, chance * (1 - chance)).sqrt()
        self._capacities = (keys // kinds).tolist()
        self._sizes = torch.minimum(room.ceil().clamp(min=1), sizes.double()).long().tolist()
        self._dealing = Dealing.of(self._capacities, self._sizes, self.steps)

    @property
    def regular(self) -> StepPieces:
        """The pieces of most steps, or all."""
        return self._pieces(self._dealing)[-1]

    def plan(self, seed: int, epoch: int) -> QuestionPlan:
        """The plan of an epoch."""
        generator = generator_for(seed, epoch, "questions")
        # Drawn on the CPU, so that every device gets the same plan.
        uniform = torch.rand(2, len(self._bucket), generator=generator, dtype=torch.float64).to(self._bucket.device)
        drawn = uniform[0] < self.chance
        order = torch.argsort(uniform[1])
        order = order[torch.argsort((2 * self._bucket + (~drawn).long())[order], stable=True)]
        dealing = self._dealing_of(drawn)
        tables = [dealt(deal, order) for deal in dealing.deals]
        groups = []
        for pieces, (start, end) in zip(self._pieces(dealing), dealing.ranges, strict=True):
            chosen = [table for table, deal in zip(tables, dealing.deals, strict=True) if deal.steps >= end]
            questions = torch.cat([table[start:end] for table, _ in chosen], 1)
            real = torch.cat([mask[start:end] for _, mask in chosen], 1)
            groups.append(PlannedSteps(pieces, questions, real.float()))
        return QuestionPlan(tuple(groups), dealing.places)

    def _dealing_of(self, drawn: Tensor) -> Dealing:
        """How this epoch's questions are dealt: with the places there always are, or more where chance needs them."""
        if self._is_certain:
            return self._dealing
        counts = torch.bincount(self._bucket[drawn], minlength=len(self._sizes)).tolist()
        dealing = self._dealing
        if any(count > size for count, size in zip(counts, self._sizes, strict=True)):
            room = [max(pair) for pair in zip(counts, self._sizes, strict=True)]
            dealing = Dealing.of(self._capacities, room, self.steps)
        actual = zip(dealing.deals, self._first, counts, strict=True)
        return replace(dealing, deals=tuple(deal._replace(first=first, items=count) for deal, first, count in actual))

    def _pieces(self, dealing: Dealing) -> list[StepPieces]:
        def piece(deal: Deal, kind: int) -> Piece:
            return Piece(deal.rows, deal.capacity, kind)

        pairs = list(zip(dealing.deals, self._kinds, strict=True))
        return [
            StepPieces(tuple(piece(deal, kind) for deal, kind in pairs if deal.steps >= end))
            for _, end in dealing.ranges
        ]
