"""The fused update equals clipping followed by Adam as torch has them."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch
from torch import nn

from hynt.kernels.device import give_back_freed_memory, keep_freed_memory
from hynt.runs.settings import Optimiser
from hynt.training.optimisation import Optimisation

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


@pytest.fixture
def kept_memory():
    """Freed memory stays with the process, where its C library can be told so."""
    if not keep_freed_memory():
        pytest.skip("this C library does as it likes, or was told otherwise")


@pytest.mark.usefixtures("kept_memory")
def test_memory_of_one_step_serves_the_next():
    floats = 12 * 2**20  # 48 megabytes: more than glibc keeps by itself

    def pages_cleared(times: int) -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(times):
            torch.ones(floats)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    pages_cleared(6)  # until the process has its room
    assert pages_cleared(3) < 4 * floats // resource.getpagesize()


@pytest.mark.usefixtures("kept_memory")
def test_freed_memory_is_given_back_where_it_is_not_needed_again():
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    floats = torch.ones(25 * 2**20)
    before = resident()
    del floats
    assert before - resident() < 2**20
    give_back_freed_memory()
    assert before - resident() > 90 * 2**20
