"""A table sharded over processes: the same rows, mean, loss and steps as one table, and no process has all of it."""

from __future__ import annotations

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh

from hynt.distributed.sharded_table import RowwiseAdagrad, ShardedTable, sharded_cross_entropy
from hynt.objectives.sampled_softmax import NegativeSampler, sampled_cross_entropy
from tests.distributed.processes import together

ROWS, WIDTH, ASKED, WORLD = 23, 6, 8, 2


def whole_table(seed: int = 0) -> torch.Tensor:
    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(seed))


def ids_of(rank: int, seed: int) -> torch.Tensor:
    return torch.randint(ROWS, (ASKED,), generator=torch.Generator().manual_seed(10 * seed + rank))


def rowwise_adagrad(weight, gradient, squares, touched, rate):
    """The same on one table, written out."""
    for row in touched.unique().tolist():
        squares[row] += gradient[row].square().mean()
        weight[row] -= rate * gradient[row] / (squares[row].sqrt() + 1e-8)


def looked_up_and_moved(workers, _path) -> None:
    mesh = init_device_mesh("cpu", (workers.world,))
    table = ShardedTable.of(mesh, whole_table())
    assert len(table.local()) < ROWS or workers.world == 1
    optimiser = RowwiseAdagrad(table)
    weight, squares = whole_table(), torch.zeros(ROWS)
    for step in range(4):
        ids = ids_of(workers.rank, step)
        rows = table(ids)
        torch.testing.assert_close(rows, weight[ids])
        torch.testing.assert_close(table.mean(), weight.mean(0))
        (rows.square().sum() + 3 * table.mean().sum()).backward()
        optimiser.step(0.1)
        everyone = torch.cat([ids_of(rank, step) for rank in range(workers.world)])
        single = weight.clone().requires_grad_()
        (single[everyone].square().sum() + workers.world * 3 * single.mean(0).sum()).backward()
        rowwise_adagrad(weight, single.grad, squares, everyone, 0.1)
        torch.testing.assert_close(table.whole(), weight, rtol=1e-5, atol=1e-6)
    untouched = set(range(ROWS)) - set(torch.cat([ids_of(r, s) for r in range(2) for s in range(4)]).tolist())
    assert all(torch.equal(table.whole()[row], whole_table()[row]) for row in untouched)


@pytest.mark.parametrize("world", [1, 2, 3])
def test_rows_mean_and_steps_are_those_of_one_table(world, tmp_path):
    assert together(world, looked_up_and_moved, tmp_path) == [0] * world


def scored(workers, _path) -> None:
    """A sampled softmax over a sharded output table against the same over a whole one."""
    mesh = init_device_mesh("cpu", (workers.world,))
    weight, bias = whole_table(1), whole_table(2)[:, :1]
    table, offsets = ShardedTable.of(mesh, weight), ShardedTable.of(mesh, bias)
    shares = torch.full((ROWS,), 1 / ROWS, dtype=torch.float64)
    sampler = NegativeSampler.of(shares, 12)
    torch.manual_seed(workers.rank)
    x = torch.randn(ASKED, WIDTH).requires_grad_()
    answer = ids_of(workers.rank, 9)
    drawn = sampler.draw(answer, torch.ones(ASKED))
    loss = sharded_cross_entropy(x, table, offsets, answer, drawn, 0.2)
    whole = [part.clone().requires_grad_() for part in (weight, bias)]
    mine = x.detach().clone().requires_grad_()
    expected = sampled_cross_entropy(mine, (whole[0], whole[1].squeeze(1)), answer, drawn, 0.2)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    loss.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(x.grad, mine.grad, rtol=1e-4, atol=1e-5)
    for sharded, single in zip((table, offsets), whole, strict=True):
        touched, gradient = sharded.take_gradient()
        assert len(touched)
        torch.testing.assert_close(
            gradient, workers.gathered(single.grad)[touched + sharded.first], rtol=1e-4, atol=1e-5
        )


def test_a_sampled_softmax_over_a_sharded_table_is_that_over_a_whole_one(tmp_path):
    assert together(WORLD, scored, tmp_path) == [0] * WORLD


def made_apart(workers, _path) -> None:
    table = ShardedTable.drawn(init_device_mesh("cpu", (workers.world,)), 1000, 4, scale=0.5, seed=3)
    assert len(table.local()) == 500
    whole = table.whole()
    assert whole.abs().max() <= 0.5
    assert len(whole.unique(dim=0)) == 1000


def test_a_new_table_is_drawn_piece_by_piece(tmp_path):
    assert together(WORLD, made_apart, tmp_path) == [0] * WORLD
