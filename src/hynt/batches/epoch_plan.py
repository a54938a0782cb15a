"""The plan of a training epoch: which item goes to which step. An item is a fact, or a question about one.

Items have kinds (what their loss needs is the same) and lengths. They are sorted by both, and then at random, and
dealt round-robin over the steps, so that every step has the same number of each: shapes are static. Places left over
are filled with rows of weight 0. Lengths so rare that dealing them to every step would be mostly filler are gathered
in a few steps, spread over the epoch, which are like the others but have further rows.

An item may have a chance below one to come in an epoch; the plan then has room for as many as are likely.

A plan follows from (items, batch size, seed, epoch) alone, on any device. All randomness is a function of what it is
for, (seed, epoch, step, purpose), so a resumed run has nothing to restore.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.batches.buckets import BatchLayout, bucket_capacities, layout_of, merged_capacities


def derived_seed(seed: int, *purpose: int | str) -> int:
    """A 63-bit seed for one purpose, say `derived_seed(seed, epoch, "masking")`; different purposes are independent."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little") >> 1


def generator_for(seed: int, *purpose: int | str) -> torch.Generator:
    """A CPU generator for one purpose."""
    generator = torch.Generator()
    generator.manual_seed(derived_seed(seed, *purpose))
    return generator


DEVIATIONS = 5.0
"""Room for chance: a plan has places for the expected number of items of a kind plus so many standard deviations."""


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

    def share(self, world: int) -> StepPieces:
        """The pieces of each of `world` processes: all have as many rows, of which some are filler."""
        return StepPieces(tuple(piece._replace(rows=-(-piece.rows // world)) for piece in self.pieces))


class PlannedSteps(NamedTuple):
    """The steps of one shape."""

    pieces: StepPieces
    items: Tensor  # (steps, rows) int64 numbers of items
    weights: Tensor  # (steps, rows) float32 1 for an item, 0 for filler

    def share(self, rank: int, world: int) -> PlannedSteps:
        """What one of `world` processes does: of each piece the rows rank, rank + world, rank + 2·world, …"""
        sizes = [piece.rows for piece in self.pieces.pieces]
        chosen, real = share_of_rows(sizes, rank, world, self.items.device)
        return PlannedSteps(self.pieces.share(world), self.items[:, chosen], self.weights[:, chosen] * real)


def share_of_rows(sizes: list[int], rank: int, world: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(k,) int64 the rows that a process takes of consecutive runs of rows, and (k,) bool false for filler."""
    chosen, real, first = [], [], 0
    for size in sizes:
        place = torch.arange(rank, rank + world * -(-size // world), world, device=device)
        chosen.append(first + place.clamp(max=max(size - 1, 0)))
        real.append(place < size)
        first += size
    none = torch.zeros(0, dtype=torch.int64, device=device)
    return torch.cat([none, *chosen]), torch.cat([none.bool(), *real])


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The steps of one epoch, kept by shape. The last group holds the regular steps, most of them or all."""

    groups: tuple[PlannedSteps, ...]
    places: tuple[tuple[int, int], ...]  # for each step of the epoch, its group and its row there

    def __len__(self) -> int:
        return len(self.places)

    def share(self, rank: int, world: int) -> EpochPlan:
        """One process's part of each step. Together the parts are the step, no row twice, and all have one shape."""
        return EpochPlan(tuple(steps.share(rank, world) for steps in self.groups), self.places)


class EpochPlanner:
    """Makes the plan of any epoch. What does not change between epochs is worked out once, here."""

    def __init__(
        self, qualifiers: Tensor, batch_size: int, kind: Tensor | None = None, chance: Tensor | None = None
    ) -> None:
        """For n items: (n,) int64 how many qualifiers the fact has, (n,) int64 a small number for the kind, by default
        the same for all, and (n,) float64 how likely it comes in an epoch, by default certainly.
        """
        if len(qualifiers) == 0:
            raise ValueError("there is nothing to train on")
        self.chance = None if chance is None or bool((chance >= 1).all()) else chance  # None: every item comes
        self.expected = float(len(qualifiers)) if self.chance is None else float(self.chance.sum())
        self.steps = max(1, math.ceil(self.expected / batch_size))
        capacity = merged(bucket_capacities(qualifiers), self.steps, batch_size)
        kinds = 1 if kind is None else int(kind.max()) + 1
        key = capacity if kind is None else capacity * kinds + kind
        keys, self.bucket, sizes = torch.unique(key, return_inverse=True, return_counts=True)
        self._kinds = (keys % kinds).tolist()
        self._first = (sizes.cumsum(0) - sizes).tolist()  # of each bucket, once items are sorted
        self._capacities = (keys // kinds).tolist()
        self._sizes = sizes.tolist()
        if self.chance is not None:
            blank = torch.zeros(len(keys), dtype=torch.float64, device=self.chance.device)
            mean = blank.index_add(0, self.bucket, self.chance)
            room = mean + DEVIATIONS * blank.index_add(0, self.bucket, self.chance * (1 - self.chance)).sqrt()
            self._sizes = torch.minimum(room.ceil().clamp(min=1), sizes.double()).long().tolist()
        self.dealing = Dealing.of(self._capacities, self._sizes, self.steps)
        self.shapes = self._pieces(self.dealing)

    @property
    def regular(self) -> StepPieces:
        return self.shapes[-1]

    def luck(self, seed: int, epoch: int, purpose: str) -> Tensor:
        """(2, n) float64 in [0, 1): what is drawn of each item, and where it goes. Drawn on the CPU, so that every
        device gets the same plan.
        """
        drawn = torch.rand(2, len(self.bucket), generator=generator_for(seed, epoch, purpose), dtype=torch.float64)
        return drawn.to(self.bucket.device)

    def plan(self, seed: int, epoch: int) -> EpochPlan:
        """The plan of an epoch that items come in by their chance."""
        luck = self.luck(seed, epoch, "questions")
        if self.chance is None:
            return self.deal(luck[1], torch.zeros_like(self.bucket), 1)
        comes = luck[0] < self.chance
        return self._dealt(self._dealing_of(comes), luck[1], (~comes).long(), 2)

    def deal(self, shuffle: Tensor, group: Tensor, groups: int) -> EpochPlan:
        """The plan of an epoch that every item comes in. Those of a group, (n,) int64 below `groups`, are dealt evenly;
        where an item goes otherwise, (n,) `shuffle` decides.
        """
        return self._dealt(self.dealing, shuffle, group, groups)

    def _dealt(self, dealing: Dealing, shuffle: Tensor, group: Tensor, groups: int) -> EpochPlan:
        shuffled = torch.argsort(shuffle)
        order = shuffled[torch.argsort((groups * self.bucket + group)[shuffled], stable=True)]
        tables = [dealt(deal, order) for deal in dealing.deals]
        found = []
        for pieces, (start, end) in zip(self._pieces(dealing), dealing.ranges, strict=True):
            chosen = [table for table, deal in zip(tables, dealing.deals, strict=True) if deal.steps >= end]
            items = torch.cat([table[start:end] for table, _ in chosen], 1)
            real = torch.cat([mask[start:end] for _, mask in chosen], 1)
            found.append(PlannedSteps(pieces, items, real.float()))
        return EpochPlan(tuple(found), dealing.places)

    def _dealing_of(self, comes: Tensor) -> Dealing:
        """How this epoch's items are dealt: with the places there always are, or more where chance needs them."""
        counts = torch.bincount(self.bucket[comes], minlength=len(self._sizes)).tolist()
        dealing = self.dealing
        if any(count > size for count, size in zip(counts, self._sizes, strict=True)):
            room = [max(pair) for pair in zip(counts, self._sizes, strict=True)]
            dealing = Dealing.of(self._capacities, room, self.steps)
        actual = zip(dealing.deals, self._first, counts, strict=True)
        return replace(dealing, deals=tuple(deal._replace(first=first, items=count) for deal, first, count in actual))

    def _pieces(self, dealing: Dealing) -> tuple[StepPieces, ...]:
        """What the steps of each of the dealing's ranges get."""
        pairs = list(zip(dealing.deals, self._kinds, strict=True))
        return tuple(
            StepPieces(tuple(Piece(deal.rows, deal.capacity, kind) for deal, kind in pairs if deal.steps >= end))
            for _, end in dealing.ranges
        )


# Dealing items of many lengths to the steps of an epoch, so that nearly all steps have one shape.
#
# Items are sorted by bucket and dealt round-robin. A bucket so rare that dealing it to every step would be mostly
# filler is gathered in a few steps, spread over the epoch, which are like the others but have further segments.

WASTE = 0.01
"""A bucket is dealt to every step if the filler this takes is at most this share of all tokens."""

BUCKET_OVERHEAD = 1 / 8
"""What a further bucket costs a step, in tokens as a share of the batch size: on a GPU the time of its own kernels."""


RARE_TOKENS = 4
"""So many times the tokens of a step's other items may its rare items have: steps with rare items are not compiled."""


class Deal(NamedTuple):
    """A bucket dealt to some steps: `rows` places in each of the first `steps` steps, longest buckets in fewest."""

    first: int  # where its items begin, once items are sorted by bucket
    items: int
    capacity: int
    rows: int
    steps: int


@dataclass(frozen=True)
class Dealing:
    """How all buckets are dealt."""

    steps: int
    deals: tuple[Deal, ...]  # by bucket
    ranges: tuple[tuple[int, int], ...]  # first and last + 1 of steps that get the same buckets, and so one shape
    places: tuple[tuple[int, int], ...]  # for each step of the epoch, its range and its row there

    @classmethod
    def of(cls, capacities: Sequence[int], sizes: Sequence[int], steps: int) -> Dealing:
        """From the buckets' capacities, which never fall, and their numbers of items."""
        deals = _deals(capacities, sizes, steps)
        ends = sorted({deal.steps for deal in deals})
        ranges = tuple(zip([0, *ends], ends, strict=False))
        return cls(steps, tuple(deals), ranges, _spread(ranges, steps))


def merged(capacity: Tensor, steps: int, batch_size: int) -> Tensor:
    """(n,) the capacities of items once small buckets have joined larger ones; `capacity` (n,) before."""
    capacities, bucket, sizes = torch.unique(capacity, return_inverse=True, return_counts=True)
    given = merged_capacities(capacities.tolist(), sizes.tolist(), steps * batch_size * BUCKET_OVERHEAD)
    return capacity.new_tensor(given)[bucket]


def dealt(deal: Deal, order: Tensor) -> tuple[Tensor, Tensor]:
    """Items by step and row, (steps, rows) int64, and whether they are real, bool, or filler that repeats one."""
    place = torch.arange(deal.rows * deal.steps, device=order.device).view(deal.rows, deal.steps).t()
    return order[deal.first + place.clamp(max=max(deal.items - 1, 0))], place < deal.items


def _deals(capacities: Sequence[int], sizes: Sequence[int], steps: int) -> list[Deal]:
    """How each bucket is dealt: to every step, or, where that would be mostly filler, to a few."""
    tokens = [size * (1 + capacity) for size, capacity in zip(sizes, capacities, strict=True)]
    fillers = [(-size % steps) * (1 + capacity) for size, capacity in zip(sizes, capacities, strict=True)]
    is_rare = [bucket > 0 and filler > WASTE * sum(tokens) for bucket, filler in enumerate(fillers)]
    rare_tokens = sum(count for count, rare in zip(tokens, is_rare, strict=True) if rare)
    few = min(steps, -(-rare_tokens * steps // (RARE_TOKENS * sum(tokens))))
    deals = []
    for bucket, (capacity, size) in enumerate(zip(capacities, sizes, strict=True)):
        rows = -(-size // (few if is_rare[bucket] else steps))
        used = -(-size // rows) if is_rare[bucket] else steps  # no more steps than its rows can fill
        deals.append(Deal(sum(sizes[:bucket]), size, capacity, rows, used))
    return deals


def _spread(ranges: Sequence[tuple[int, int]], steps: int) -> tuple[tuple[int, int], ...]:
    """For each step of the epoch, its range and row: steps with rare buckets come at even distances."""
    special = ranges[-1][0]
    where = {steps * (2 * step + 1) // (2 * special): step for step in range(special)}
    regular = iter(range(special, steps))
    order = [where[index] if index in where else next(regular) for index in range(steps)]
    group = [g for g, (start, end) in enumerate(ranges) for _ in range(start, end)]
    return tuple((group[step], step - ranges[group[step]][0]) for step in order)
