"""Facts of like length go together: buckets whose capacities are powers of two, so cost follows real tokens, not the
longest fact.

A batch is laid out as segments: n rows whose facts have at most c qualifiers each, for rising c. Shapes follow from
the layout alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor


class Segment(NamedTuple):
    """Rows of a batch whose facts have at most `capacity` qualifiers."""

    rows: int
    capacity: int


class Span(NamedTuple):
    """A segment with its place in a batch."""

    rows: slice  # its rows among the batch's rows
    slots: slice  # its qualifier slots among the batch's slots, rows × capacity
    tokens: slice  # its tokens among the batch's tokens, rows × (1 + capacity): the triplet, then the qualifiers
    size: int  # rows
    capacity: int


class BatchLayout(NamedTuple):
    """The segments of a batch. Hashable: two batches of one layout have the same shapes, so a compiled step serves
    both.
    """

    segments: tuple[Segment, ...]

    @property
    def rows(self) -> int:
        """How many rows a batch has."""
        return sum(segment.rows for segment in self.segments)

    @property
    def slots(self) -> int:
        """How many qualifier slots a batch has, filled or not."""
        return sum(segment.rows * segment.capacity for segment in self.segments)

    @property
    def tokens(self) -> int:
        """How many tokens a batch has: a triplet or a qualifier slot is one."""
        return self.rows + self.slots

    def spans(self) -> Iterator[Span]:
        """The segments with their places."""
        row = slot = 0
        for count, capacity in self.segments:
            slots = count * capacity
            token = row + slot
            yield Span(
                slice(row, row + count), slice(slot, slot + slots), slice(token, token + count + slots), count, capacity
            )
            row, slot = row + count, slot + slots


class LayoutIndex(NamedTuple):
    """Index tensors that follow from a layout alone."""

    slot_row: Tensor  # (slots,) int64 the row each slot belongs to
    slot_within: Tensor  # (slots,) int64 which of its row's slots it is, from 0
    row_slot: Tensor  # (rows,) int64 the first slot of each row
    row_token: Tensor  # (rows,) int64 the token of each row's triplet; its qualifiers follow


@lru_cache(maxsize=64)
def layout_index(layout: BatchLayout, device: torch.device) -> LayoutIndex:
    """The index tensors of a layout on a device; made once, so that making a batch needs no arithmetic on shapes."""
    capacity = torch.tensor([c for n, c in layout.segments for _ in range(n)], dtype=torch.int64)
    row_slot = capacity.cumsum(0) - capacity
    slot_row = torch.repeat_interleave(torch.arange(layout.rows), capacity)
    slot_within = torch.arange(layout.slots) - row_slot[slot_row]
    row_token = row_slot + torch.arange(layout.rows)
    return LayoutIndex(*(column.to(device) for column in (slot_row, slot_within, row_slot, row_token)))


def bucket_capacity(qualifiers: int) -> int:
    """The capacity of the bucket for a fact with so many qualifiers: 0, 1, 2, 4, 8, …"""
    return 0 if qualifiers == 0 else 1 << (qualifiers - 1).bit_length()


def bucket_capacities(qualifier_counts: Tensor) -> Tensor:
    """(n,) int64: `bucket_capacity` of each count in (n,)."""
    capacity = torch.zeros_like(qualifier_counts)
    longest = int(qualifier_counts.max()) if len(qualifier_counts) else 0
    step = 1
    while longest:
        capacity = torch.where(qualifier_counts > step // 2, step, capacity)
        if step >= longest:
            break
        step *= 2
    return capacity


def rows_by_bucket(qualifier_counts: Tensor) -> list[tuple[int, Tensor]]:
    """(capacity, row numbers in rising order) for each bucket that has rows, shortest first."""
    return list(rows_by_key(bucket_capacities(qualifier_counts)))


def rows_by_key(keys: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Each distinct key of (rows,) int64, rising, and the row numbers that have it."""
    for key in torch.unique(keys).tolist():
        yield key, torch.nonzero(keys == key).squeeze(1)


def layout_of(segments: Iterable[tuple[int, int]]) -> BatchLayout:
    """A layout from (rows, capacity) pairs; capacities must rise."""
    made = tuple(Segment(rows, capacity) for rows, capacity in segments if rows)
    if any(one.capacity >= other.capacity for one, other in pairwise(made)):
        raise ValueError(f"capacities must rise, but are {[segment.capacity for segment in made]}")
    return BatchLayout(made)


def merged_capacities(capacities: list[int], sizes: list[int], overhead: float) -> list[int]:
    """The capacity each bucket is given when neighbours are merged wherever that is cheaper.

    `capacities` rise and `sizes` say how many rows each has. A bucket costs its slots plus `overhead`, in tokens:
    each has kernels of its own, and small ones cost as much to launch as large ones. Rows without qualifiers stay
    alone: they need no attention. Exact, by dynamic programming over the few buckets there are.
    """
    first = 1 if capacities and capacities[0] == 0 else 0
    best, cuts = [0.0], [first]
    for end in range(first + 1, len(capacities) + 1):
        costs = [
            best[start - first] + sum(sizes[start:end]) * capacities[end - 1] + overhead for start in range(first, end)
        ]
        best.append(min(costs))
        cuts.append(first + costs.index(best[-1]))
    given, end = list(capacities), len(capacities)
    while end > first:
        start = cuts[end - first]
        given[start:end] = [capacities[end - 1]] * (end - start)
        end = start
    return given
