"""The plan of an epoch: items by chance, kinds in rows of their own, and parts of steps that are together the step."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hynt.batches.epoch_plan import EpochPlanner, share_of_rows

CPU = torch.device("cpu")
LENGTHS = [0] * 200 + [1] * 40 + [2] * 20 + [9, 40]


def counts_of(plan, items):
    """(items,) how often each comes."""
    found = torch.zeros(items, dtype=torch.int64)
    for steps in plan.groups:
        found.index_add_(0, steps.items[steps.weights > 0], torch.ones_like(steps.items[steps.weights > 0]))
    return found


def test_certain_items_come_once_and_others_by_their_chance():
    lengths = torch.tensor(LENGTHS)
    chance = torch.where(torch.arange(len(lengths)) % 2 == 0, 1.0, 0.3).double()
    planner = EpochPlanner(lengths, 16, chance=chance)
    total = torch.zeros(len(lengths), dtype=torch.int64)
    for epoch in range(200):
        found = counts_of(planner.plan(1, epoch), len(lengths))
        assert found.max() == 1
        assert (found[::2] == 1).all()
        total += found
    assert total[1::2].double().mean() / 200 == pytest.approx(0.3, abs=0.02)


def test_kinds_have_rows_of_their_own_and_steps_are_alike():
    lengths, kind = torch.tensor(LENGTHS), torch.arange(len(LENGTHS)) % 3
    planner = EpochPlanner(lengths, 32, kind)
    plan = planner.plan(4, 0)
    assert counts_of(plan, len(lengths)).tolist() == [1] * len(lengths)
    for steps in plan.groups:
        for number in range(3):
            rows = steps.pieces.rows_of(number, CPU)
            assert (kind[steps.items[:, rows]] == number).all()
        assert len(steps.items[0]) == steps.pieces.layout.rows
    assert plan.groups[-1].pieces == planner.regular


@pytest.mark.parametrize("world", [2, 3])
def test_parts_of_steps_are_together_the_steps(world):
    plan = EpochPlanner(torch.tensor(LENGTHS), 16).plan(0, 1)
    parts = [plan.share(rank, world) for rank in range(world)]
    for group, steps in enumerate(plan.groups):
        mine = [part.groups[group] for part in parts]
        assert {one.pieces for one in mine} == {steps.pieces.share(world)}
        for row in range(len(steps.items)):
            found = sorted(item for one in mine for item in one.items[row][one.weights[row] > 0].tolist())
            assert found == sorted(steps.items[row][steps.weights[row] > 0].tolist())


@given(st.lists(st.integers(0, 20), max_size=5), st.integers(1, 6))
def test_every_row_goes_to_one_process_and_all_shares_are_alike(sizes, world):
    shares = [share_of_rows(sizes, rank, world, CPU) for rank in range(world)]
    taken = torch.cat([chosen[real] for chosen, real in shares])
    assert sorted(taken.tolist()) == list(range(sum(sizes)))
    assert len({len(chosen) for chosen, _ in shares}) == 1


def test_nothing_to_train_on_is_an_error():
    with pytest.raises(ValueError, match="there is nothing to train on"):
        EpochPlanner(torch.zeros(0, dtype=torch.int64), 4)
