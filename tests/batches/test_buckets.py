"""Buckets by length and the places of a layout."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hynt.batches.buckets import (
    bucket_capacities,
    bucket_capacity,
    layout_index,
    layout_of,
    merged_capacities,
    rows_by_bucket,
)


@given(st.lists(st.integers(0, 600), max_size=40))
def test_a_bucket_has_room_and_wastes_less_than_half(lengths):
    counts = torch.tensor(lengths, dtype=torch.int64)
    capacities = bucket_capacities(counts).tolist()
    assert capacities == [bucket_capacity(length) for length in lengths]
    for length, capacity in zip(lengths, capacities, strict=True):
        assert length <= capacity < max(2 * length, 1)


@given(st.lists(st.integers(0, 40), max_size=40))
def test_every_row_is_in_exactly_one_bucket(lengths):
    found = rows_by_bucket(torch.tensor(lengths, dtype=torch.int64))
    assert sorted(row for _, rows in found for row in rows.tolist()) == list(range(len(lengths)))
    assert [capacity for capacity, _ in found] == sorted({bucket_capacity(length) for length in lengths})


def test_places_of_a_layout():
    layout = layout_of([(2, 0), (0, 1), (2, 3)])
    assert (layout.rows, layout.slots, layout.tokens) == (4, 6, 10)
    at = layout_index(layout, torch.device("cpu"))
    assert at.slot_row.tolist() == [2, 2, 2, 3, 3, 3]
    assert at.slot_within.tolist() == [0, 1, 2, 0, 1, 2]
    assert at.row_slot.tolist() == [0, 0, 0, 3]
    assert at.row_token.tolist() == [0, 1, 2, 6]
    first, second = layout.spans()
    assert (first.rows, first.slots, first.tokens) == (slice(0, 2), slice(0, 0), slice(0, 2))
    assert (second.rows, second.slots, second.tokens) == (slice(2, 4), slice(0, 6), slice(2, 10))
    assert (second.size, second.capacity) == (2, 3)


def test_capacities_must_rise():
    with pytest.raises(ValueError, match="capacities must rise, but are \\[2, 1\\]"):
        layout_of([(1, 2), (1, 1)])


def cost(capacities, sizes, given, overhead):
    """What a choice of capacities costs, counted the obvious way."""
    slots = sum(size * capacity for size, capacity in zip(sizes, given, strict=True))
    return slots + overhead * len({capacity for capacity in given if capacity})


@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.integers(0, 2000), st.booleans())
def test_merged_buckets_are_the_cheapest_of_all_ways_to_merge(sizes, overhead, with_none):
    capacities = ([0] if with_none else []) + [1 << index for index in range(len(sizes))]
    sizes = ([7] if with_none else []) + sizes
    first = int(with_none)
    ways = []
    for ends in product([False, True], repeat=len(sizes) - first - 1):
        given, end = list(capacities), len(capacities) - 1
        for index in range(len(capacities) - 1, first - 1, -1):
            if index < len(capacities) - 1 and ends[index - first]:
                end = index
            given[index] = capacities[end]
        ways.append(given)
    chosen = merged_capacities(capacities, sizes, overhead)
    assert chosen in ways
    assert cost(capacities, sizes, chosen, overhead) == min(cost(capacities, sizes, way, overhead) for way in ways)
    if with_none:
        assert chosen[0] == 0
