"""A training step run as it is written: the way on CPU, and the fallback on any device."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Hashable
from contextlib import AbstractContextManager
from functools import cache
from typing import Protocol

import torch
from torch import Tensor, nn

from hynt.objectives.streams import ItemStream, LossFunction, StepItems, no_loss
from hynt.training.optimisation import Optimisation


class StepRunner(Protocol):
    """Runs training steps of one phase."""

    optimisation: Optimisation
    tally: Tensor  # (2, parts) float64: sums and counts of the loss since the epoch began

    def run(self, items: StepItems, seed: int) -> None:
        """One step; all its randomness comes from `seed`."""
        ...

    def has_failed(self) -> bool:
        """Whether a loss is known not to have been finite. Never waits for the device."""
        ...


class EagerStep:
    """Forward, loss, backward and update, one operation after another, neither compiled nor captured."""

    def __init__(
        self, model: nn.Module, stream: ItemStream, optimisation: Optimisation, device: torch.device, *, bf16: bool
    ) -> None:
        self.model, self.stream, self.optimisation = model, stream, optimisation
        self.device, self.bf16 = device, bf16
        if device.type == "cpu":
            keep_freed_memory()
        self.tally = no_loss(len(stream.parts), device)
        self._losses: dict[Hashable, LossFunction] = {}

    def run(self, items: StepItems, seed: int) -> None:
        """One step; all its randomness comes from `seed`."""
        seed_device(self.device, seed)
        if items.shape not in self._losses:
            self._losses[items.shape] = self.stream.loss_for(items.shape)
        loss = self._losses[items.shape]
        learn(self.model, loss, items.tensors, self.optimisation, self.tally, autocast(self.device, self.bf16))

    def has_failed(self) -> bool:
        """On CPU this is known at once; on a GPU asking would make it wait, so the trainer asks at the epoch's end."""
        return self.device.type == "cpu" and bool(self.optimisation.failed)


@cache
def keep_freed_memory() -> bool:
    """Makes this process keep large tensors' memory for the next ones, and says whether it does; once.

    glibc gives every block of a few megabytes back to the system, which clears each page anew in the next step: up to
    half the time of a step on a CPU. Whoever has set glibc's own environment variables knows better.
    """
    said = {"GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"} & set(os.environ)
    if said or not sys.platform.startswith("linux"):
        return False
    change = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    return change is not None and bool(change(_MMAP_THRESHOLD, 2**30)) and bool(change(_TRIM_THRESHOLD, 2**31 - 1))


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h


def learn(
    model: nn.Module,
    loss_function: LossFunction,
    tensors: tuple[Tensor, ...],
    optimisation: Optimisation,
    tally: Tensor,
    precision: AbstractContextManager[None],
) -> None:
    """A whole step: what the captured step captures is this very function."""
    optimisation.forget_gradients()
    with precision:
        loss = loss_function(model, tensors)
    loss.total.backward()  # type: ignore[no-untyped-call]
    optimisation.update(loss.total, second=loss.second)
    if optimisation.after is not None:
        optimisation.after()
    tally += torch.stack([loss.sums.detach(), loss.counts.detach()]).double()


def autocast(device: torch.device, bf16: bool) -> AbstractContextManager[None]:
    """bf16 matrix products where asked for. No cache of casts: weights change between steps of a captured graph."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16, cache_enabled=False)


def seed_device(device: torch.device, seed: int) -> None:
    """Sets the generator that a step on this device draws from. No waiting: seeds live on the host."""
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[index].manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
