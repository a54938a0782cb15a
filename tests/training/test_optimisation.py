"""The fused update equals clipping followed by Adam as torch has them."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from torch import nn
from torch.optim.adam import adam as fused_adam

from hynt.training.optimisation import LARGE, Optimisation
from hynt.training.settings import Optimiser

CPU = torch.device("cpu")


def gradients(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(shape, generator=generator) for shape in ((4, 3), (5,))]


@pytest.mark.parametrize("clip", [None, 0.1, 100.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_equals_torch(clip, scale):
    mine = [nn.Parameter(torch.ones(4, 3)), nn.Parameter(torch.ones(5))]
    theirs = [nn.Parameter(torch.ones(4, 3)), nn.Parameter(torch.ones(5))]
    optimisation = Optimisation(mine, Optimiser(learning_rate=0.01, clip=clip), CPU)
    adam = torch.optim.Adam(theirs, lr=0.01)
    for step in range(6):
        for parameters in (mine, theirs):
            for parameter, gradient in zip(parameters, gradients(step, scale), strict=True):
                parameter.grad = gradient.clone()
        optimisation.set_rate(0.01 / (1 + step))
        adam.param_groups[0]["lr"] = 0.01 / (1 + step)
        optimisation.update(torch.tensor(1.0))
        if clip is not None:
            nn.utils.clip_grad_norm_(theirs, clip)
        adam.step()
        for one, other in zip(mine, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("spoil", ["loss", "gradient"])
def test_a_bad_step_and_all_after_it_move_nothing(spoil):
    parameter = nn.Parameter(torch.ones(3))
    optimisation = Optimisation([parameter], Optimiser(clip=0.1), CPU)
    parameter.grad = torch.ones(3)
    optimisation.update(torch.tensor(1.0))
    before = parameter.detach().clone()
    state = {name: value.clone() for name, value in optimisation.tensors().items()}
    parameter.grad = torch.full((3,), float("inf") if spoil == "gradient" else 1.0)
    optimisation.update(torch.tensor(float("nan") if spoil == "loss" else 1.0))
    parameter.grad = torch.ones(3)
    optimisation.update(torch.tensor(1.0))
    assert bool(optimisation.failed)
    assert torch.equal(parameter, before)
    assert all(torch.equal(state[name], value) for name, value in optimisation.tensors().items())


def test_weight_decay_is_that_of_adamw():
    mine, theirs = nn.Parameter(torch.ones(4, 3)), nn.Parameter(torch.ones(4, 3))
    optimisation = Optimisation([mine], Optimiser(learning_rate=0.01, weight_decay=0.1), CPU)
    adamw = torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.1)
    for step in range(4):
        for parameter in (mine, theirs):
            parameter.grad = gradients(step, 1.0)[0].clone()
        optimisation.update(torch.tensor(1.0))
        adamw.step()
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)


def test_swept_tables_move_as_the_others(monkeypatch):
    """Which tensors are swept and how steps are counted; the kernel itself is held to the fused one on a GPU."""

    def update_table(parameter, gradient, mean, square, step, rate, scale, failed, settings):
        fused_adam(
            [parameter], [gradient], [mean], [square], [], [step.clone()], fused=True, grad_scale=scale,
            found_inf=failed, amsgrad=False, beta1=settings.beta1, beta2=settings.beta2, lr=rate,
            weight_decay=0.0, eps=settings.epsilon, maximize=False,
        )  # fmt: skip

    stand_in = types.ModuleType("hynt.training.table_update")
    stand_in.update_table = update_table
    monkeypatch.setitem(sys.modules, "hynt.training.table_update", stand_in)
    sizes = (LARGE, 7, LARGE + 3)
    both = []
    for swept in (True, False):
        parameters = [nn.Parameter(torch.ones(size)) for size in sizes]
        optimisation = Optimisation(parameters, Optimiser(learning_rate=0.01, clip=0.1), CPU)
        optimisation._sweeps_tables = swept
        for step in range(4):
            generator = torch.Generator().manual_seed(step)
            for parameter in parameters:
                parameter.grad = torch.randn(len(parameter), generator=generator)
            if step == 2:
                parameters[2].grad = None  # a step that does not move all
            optimisation.update(torch.tensor(1.0 if step < 3 else float("nan")))
        assert [int(step) for step in optimisation.steps] == [3, 3, 2]
        both.append([*(parameter.detach() for parameter in parameters), *optimisation.means, *optimisation.squares])
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
