"""A training step: run as it is written on a CPU, and as the fallback on any device; on a GPU as one CUDA graph, where
forward, loss, backward, clipping and Adam are replayed with a single launch.

A step of thousands of small kernels is bound by launching them. Steps of one shape are compiled and captured once;
then a replay costs two or three copies into fixed buffers, a seed and a launch. The learning rate is a tensor that
the captured kernels read. Randomness stays a function of (seed, epoch, step): CUDA graphs read the seed and offset of
the device's generator at each replay, and the generator is seeded before each.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from hynt.kernels.device import keep_freed_memory
from hynt.objectives.streams import ItemStream, LossFunction, StepItems, no_loss
from hynt.training.optimisation import Optimisation


class StepRunner(Protocol):
    """Runs training steps of one phase."""

    optimisation: Optimisation
    tally: Tensor  # (2, parts) float64: sums and counts of the loss since the epoch began

    def run(self, items: StepItems, seed: int) -> None:
        """One step; all its randomness comes from `seed`."""

    def has_failed(self) -> bool:
        """Whether a loss is known not to have been finite. Never waits for the device."""


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
    tally[0] += loss.sums.detach()
    tally[1] += loss.counts.detach()


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


WARM_UPS = 3
"""Runs before the capture: they compile kernels and let libraries take their workspaces."""

COMPILER: dict[str, Any] = {
    # Logits already come in aligned rows: padding them once more costs a copy of the largest tensor there is.
    "comprehensive_padding": False,
    "shape_padding": False,
    # Small kernels that do not wait for each other become one: a step has hundreds of them.
    "combo_kernels": True,
    # Random numbers come from PyTorch's own kernels, the same as without a compiler. Dropout draws only a few.
    "fallback_random": True,
}


class _Captured(NamedTuple):
    graph: torch.cuda.CUDAGraph | None  # None: the step makes the host wait, so it cannot be captured
    buffers: tuple[Tensor, ...]
    loss: LossFunction


class CapturedStep:
    """Captures one graph a shape. Where compiling fails, the plain step is captured; one that cannot be captured either
    is run as it is written. `note` hears why.
    """

    preparing_seconds: ClassVar[float] = 0.0
    """How long this process has compiled and captured, for clocks that tell training time alone."""

    def __init__(
        self,
        model: nn.Module,
        stream: ItemStream,
        optimisation: Optimisation,
        device: torch.device,
        *,
        bf16: bool,
        compiled: bool = True,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.model, self.stream, self.optimisation = model, stream, optimisation
        self.device, self.bf16, self.compiled = device, bf16, compiled
        self._note = note
        self.tally = no_loss(len(stream.parts), device)
        self._captured: dict[Hashable, _Captured] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        # Copied to after each step and read whenever the host likes: it may lag, but it never makes anyone wait.
        self._failed = torch.zeros((), dtype=torch.float32, pin_memory=True)

    def run(self, items: StepItems, seed: int) -> None:
        """One step; all its randomness comes from `seed`."""
        captured = self._captured.get(items.shape)
        if captured is None:
            begin = time.monotonic()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a compiler says to those who write compilers
                captured = self._captured[items.shape] = self._capture(items)
            CapturedStep.preparing_seconds += time.monotonic() - begin
        for buffer, value in zip(captured.buffers, items.tensors, strict=True):
            buffer.copy_(value, non_blocking=True)
        seed_device(self.device, seed)
        if captured.graph is None:
            self._learn(captured.loss, captured.buffers)
        else:
            captured.graph.replay()
        self._failed.copy_(self.optimisation.failed, non_blocking=True)

    def has_failed(self) -> bool:
        """Whether a finished step was not finite: learnt a step or two late, but the weights stopped moving at once."""
        return bool(self._failed)

    def _capture(self, items: StepItems) -> _Captured:
        buffers = tuple(tensor.clone() for tensor in items.tensors)
        before = self.tally.clone()
        # Running statistics, such as a batch norm's, move in every run, in the warm-ups too.
        statistics = [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        compiled = self.compiled and self.stream.is_common(items.shape)
        loss = self._warmed_up(self.stream.loss_for(items.shape), buffers, compiled)
        graph: torch.cuda.CUDAGraph | None = None
        if self._never_waits(loss, buffers):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._side):
                self._learn(loss, buffers)
        self.tally.copy_(before)
        for buffer, value in statistics:
            buffer.copy_(value)
        self.optimisation.failed.zero_()
        return _Captured(graph, buffers, loss)

    def _never_waits(self, loss: LossFunction, buffers: tuple[Tensor, ...]) -> bool:
        """Whether a step runs without the host waiting for the device. Asked before capturing: a capture that fails
        halfway leaves the device's generator unusable.
        """
        before = torch.cuda.get_sync_debug_mode()
        try:
            tell_of_waiting("error")
            with torch.cuda.stream(self._side):
                self._learn(loss, buffers)
        except RuntimeError as problem:
            if "synchronizing" not in str(problem):
                raise
            self._note("a step of this model waits for the device, so it is not captured and runs more slowly.")
            return False
        finally:
            tell_of_waiting(before)
            torch.cuda.synchronize(self.device)
        return True

    def _warmed_up(self, plain: LossFunction, buffers: tuple[Tensor, ...], compiled: bool) -> LossFunction:
        """The loss to capture, run a few times. The flag for failure is up meanwhile, so no weight moves."""
        here = torch.cuda.current_stream(self.device)
        self.optimisation.failed.fill_(1.0)
        self._side.wait_stream(here)
        loss: LossFunction = torch.compile(plain, dynamic=False, options=COMPILER) if compiled else plain
        with torch.cuda.stream(self._side):
            try:
                for _ in range(WARM_UPS):
                    self._learn(loss, buffers)
            except torch.cuda.OutOfMemoryError:
                raise
            except (RuntimeError, ImportError) as problem:
                if not compiled:
                    raise
                self.compiled = False
                reason = (str(problem).splitlines() or [type(problem).__name__])[0]
                self._note(f"the step cannot be compiled here and runs as written, more slowly: {reason}")
                loss = plain
                for _ in range(WARM_UPS):
                    self._learn(loss, buffers)
        here.wait_stream(self._side)
        torch.cuda.synchronize(self.device)
        return loss

    def _learn(self, loss: LossFunction, buffers: tuple[Tensor, ...]) -> None:
        learn(self.model, loss, buffers, self.optimisation, self.tally, autocast(self.device, self.bf16))


def tell_of_waiting(mode: int | str) -> None:
    """What PyTorch does when the host waits. It warns that this is new, which nobody who trains need hear."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(mode)
