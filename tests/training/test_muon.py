"""Muon on square blocks of layers' matrices, Adam on the rest, and the average of weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from hynt.errors import UsageError
from hynt.runs.settings import Optimiser
from hynt.training.muon import UPDATE_SIZE, Muon, layer_matrices, orthogonalised
from hynt.training.optimisation import Optimisation
from tests.models.first_steps import trained
from tests.training.small_graph import NO_DROPOUT, TINY, small_graph

SMALL_MODELS = {
    "hynt": TINY["model"],
    "gran": NO_DROPOUT["gran"],
    "hynt-inductive": {"dimension": 16, "layers": 2, "heads": 4, "feedforward": 32, "bins": 21},
}
CPU = torch.device("cpu")
SETTINGS = Optimiser(learning_rate=0.01, method="muon", matrix_rate=0.03, weight_decay=0.5)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Parameter(torch.randn(32, 8))
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 24), nn.LayerNorm(24), nn.Linear(24, 5)) for _ in "ab")
        self.out = nn.Linear(8, 8)


def with_gradients(model, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for one in model.parameters():
        one.grad = torch.randn(one.shape, generator=generator)
    return model


def optimisation_of(model, settings=SETTINGS):
    return Optimisation(list(model.parameters()), settings, CPU, matrices=layer_matrices(model))


def test_singular_values_come_near_one_and_their_vectors_stay():
    blocks = torch.randn(6, 16, 16, generator=torch.Generator().manual_seed(0))
    blocks[5] = 0
    found = orthogonalised(blocks)
    values = torch.linalg.svdvals(found[:5])
    assert float(values.min()) > 0.3  # what five steps of this polynomial give
    assert float(values.max()) < 1.3
    u, _, v = torch.linalg.svd(blocks[0])
    turned = u.mT @ found[0] @ v.mT
    assert float((turned - turned.diag().diag()).abs().max()) < 1e-4
    assert not found[5].any()


def test_only_linear_maps_of_layers_that_are_made_of_square_blocks_are_for_muon():
    model = Net()
    assert [id(one) for one in layer_matrices(model)] == [id(layer[0].weight) for layer in model.layers]


def test_every_block_is_moved_by_its_own_momentum_and_all_else_by_adam():
    """Two steps against a slow form: each block alone, and Adam as torch has it, decaying matrices only."""
    model, slow = Net(), Net()
    optimisation = optimisation_of(model)
    wide = {id(one) for one in layer_matrices(slow)}
    rest = [one for one in slow.parameters() if id(one) not in wide]
    groups = [
        {"params": [one for one in rest if one.dim() > 1], "weight_decay": 0.5},
        {"params": [one for one in rest if one.dim() == 1], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW(groups, lr=0.01)
    momenta = [torch.zeros(3, 8, 8) for _ in wide]
    for step in range(2):
        with_gradients(model, step), with_gradients(slow, step)
        optimisation.update(torch.tensor(1.0))
        adam.step()
        with torch.no_grad():
            for matrix, momentum in zip(layer_matrices(slow), momenta, strict=True):
                for k in range(3):
                    gradient = matrix.grad[8 * k : 8 * k + 8]
                    momentum[k] = 0.95 * momentum[k] + 0.05 * gradient
                    update = orthogonalised((0.05 * gradient + 0.95 * momentum[k])[None])[0]
                    block = matrix[8 * k : 8 * k + 8]
                    block.mul_(1 - 0.03 * 0.5).sub_(0.03 * UPDATE_SIZE * math.sqrt(8) * update)
    for one, other in zip(model.parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_the_matrices_rate_follows_the_schedule():
    moved = []
    for rate in (0.01, 0.005):
        model = with_gradients(Net())
        before = model.layers[0][0].weight.detach().clone()
        optimisation = optimisation_of(model, Optimiser(learning_rate=0.01, method="muon"))
        optimisation.set_rate(rate)
        optimisation.update(torch.tensor(1.0))
        moved.append(model.layers[0][0].weight.detach() - before)
    torch.testing.assert_close(moved[0], 2 * moved[1], rtol=1e-3, atol=1e-6)


def test_a_bad_step_moves_nothing_and_is_not_remembered():
    model = with_gradients(Net())
    optimisation = optimisation_of(model, Optimiser(method="muon", clip=1.0, average=0.9))
    optimisation.update(torch.tensor(1.0))
    before = [one.detach().clone() for one in model.parameters()]
    state = {name: value.clone() for name, value in optimisation.tensors().items()}
    model.layers[0][0].weight.grad.fill_(math.nan)
    optimisation.update(torch.tensor(1.0))
    assert bool(optimisation.failed)
    assert all(torch.equal(one, kept) for one, kept in zip(model.parameters(), before, strict=True))
    assert all(torch.equal(state[name], value) for name, value in optimisation.tensors().items())


def test_a_model_without_layers_is_refused():
    with pytest.raises(UsageError, match="no layers of square matrices"):
        optimisation_of(nn.Linear(4, 4))


def test_the_momentum_of_a_matrix_that_is_not_used_stays():
    model = with_gradients(Net())
    first, second = layer_matrices(model)
    second.grad = None
    before = second.detach().clone()
    muon = Muon([first, second], 0.5)
    muon.update(torch.tensor(0.1), None, torch.tensor(0.0))
    assert torch.equal(second, before)
    assert not muon.momentum[8][3:].any()


def test_the_average_is_what_a_model_answers_with_and_learning_goes_on_from_its_own_weights():
    parameter = nn.Parameter(torch.zeros(1))
    optimisation = Optimisation([parameter], Optimiser(learning_rate=1.0, method="sgd", average=0.75), CPU)
    expected = 0.0
    for step in range(1, 9):  # the parameter is then 1, 2, 3 …
        parameter.grad = torch.tensor([-1.0])
        optimisation.update(torch.tensor(0.0))
        expected += max(1 / step, 0.25) * (step - expected)  # the mean of the first four, then exponential
    with optimisation.answering():
        assert parameter.detach().item() == pytest.approx(expected)
        assert optimisation.tensors()["learning.0"].item() == 8.0
    assert parameter.detach().item() == 8.0


@pytest.mark.parametrize("name", ["hynt", "gran", "hynt-inductive"])
def test_models_with_layers_learn_by_it(name):
    settings = {"batch_size": 16, "optimiser": {"method": "muon", "learning_rate": 0.005, "clip": 1.0}}
    model, losses, _ = trained(name, small_graph(), settings | {"model": SMALL_MODELS[name]}, 12)
    assert layer_matrices(model)
    assert sum(losses[-3:]) < sum(losses[:3])
