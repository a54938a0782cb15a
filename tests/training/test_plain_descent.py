"""Plain gradient descent: a step along the gradient, bounded and stopped as Adam's is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hynt.runs.settings import Optimiser
from hynt.training.optimisation import Optimisation

CPU = torch.device("cpu")


def step(weights, gradient, **settings):
    parameter = nn.Parameter(torch.tensor(weights))
    optimisation = Optimisation([parameter], Optimiser(method="sgd", **settings), CPU)
    parameter.grad = torch.tensor(gradient)
    optimisation.update(torch.tensor(1.0))
    return parameter.detach(), optimisation


def test_a_step_goes_down_the_gradient():
    moved, _ = step([1.0, 2.0], [0.5, -4.0], learning_rate=0.1)
    torch.testing.assert_close(moved, torch.tensor([0.95, 2.4]))


def test_the_gradient_is_bounded():
    moved, _ = step([0.0, 0.0], [3.0, 4.0], learning_rate=1.0, clip=0.5)
    assert float(moved.norm()) == pytest.approx(0.5, rel=1e-5)


def test_a_gradient_that_is_not_finite_moves_nothing():
    moved, optimisation = step([1.0, 2.0], [float("nan"), 1.0], learning_rate=0.1)
    torch.testing.assert_close(moved, torch.tensor([1.0, 2.0]))
    assert bool(optimisation.failed)


def test_only_the_optimiser_whose_step_it_is_moves():
    first, second = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimisation = Optimisation([first], Optimiser(1.0, method="sgd"), CPU, [second])
    first.grad, second.grad = torch.ones(1), torch.ones(1)
    optimisation.update(torch.tensor(1.0), second=True)
    assert (first.item(), second.item()) == (1.0, 0.0)
    optimisation.update(torch.tensor(1.0))
    assert (first.item(), second.item()) == (0.0, 0.0)
