"""Dealing items of many lengths to the steps of an epoch, so that nearly all steps have one shape.

Items are sorted by bucket and dealt round-robin. A bucket so rare that dealing it to every step would be mostly
filler is gathered in a few steps, spread over the epoch, which are like the others but have further segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.batches.buckets import merged_capacities

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

    def dealt_to(self, end: int) -> list[Deal]:
        """What the steps of the range that ends at `end` get."""
        return [deal for deal in self.deals if deal.steps >= end]


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
