"""What a model trains on. The models differ in their training items, the trainer does not: it asks a stream for the
plan of an epoch, feeds each step's tensors to the stream's loss, and knows nothing more.

The loss of steps of one shape must be a pure function of the model and the step's tensors, without a look at any
value: then it can be compiled and captured once and replayed with other tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor, nn


class StepItems(NamedTuple):
    """What one step trains on: the shape decides what is compiled, the tensors are copied in before each replay."""

    shape: Hashable
    tensors: tuple[Tensor, ...]


class Loss(NamedTuple):
    """The loss of a step, in fp32. The trainer minimises `total` and reports sums over counts."""

    total: Tensor  # () what is minimised
    sums: Tensor  # (parts,) each part of the loss, summed over its questions
    counts: Tensor  # (parts,) how many questions each part had
    second: bool = False  # whether the phase's second optimiser takes this step


LossFunction: TypeAlias = Callable[[nn.Module, tuple[Tensor, ...]], Loss]
"""From a model and a step's tensors to the step's loss."""


class EpochItems(Protocol):
    """The steps of one epoch."""

    def __len__(self) -> int: ...

    def items(self, index: int) -> StepItems:
        """Step `index`, from 0."""
        ...


class ItemStream(Protocol):
    """A source of training items and the loss on them."""

    parts: tuple[str, ...]  # names of the parts of the loss
    item_count: int  # how many facts or questions an epoch has

    def epoch(self, seed: int, epoch: int) -> EpochItems:
        """The items of an epoch: a function of the seed and the epoch alone."""
        ...

    def is_common(self, shape: Hashable) -> bool:
        """Whether enough steps have this shape for compiling it to pay."""
        ...

    def loss_for(self, shape: Hashable) -> LossFunction:
        """The loss of steps of this shape. What the shape alone decides is worked out here, once."""
        ...


@dataclass(frozen=True)
class Phase:
    """One stage of training. Most models have one; some fit a head afterwards or alternate two tasks."""

    name: str
    stream: ItemStream
    parameters: tuple[nn.Parameter, ...]  # what this phase moves
    epochs: int
    rate: float | None = None  # learning rate, the same throughout; None: as the settings' schedule says
    second: tuple[nn.Parameter, ...] = ()  # what a second optimiser moves; some may be among the others


def trainable(model: nn.Module) -> tuple[nn.Parameter, ...]:
    """All parameters of a model that learn, each once."""
    return tuple(parameter for parameter in model.parameters() if parameter.requires_grad)


def no_loss(parts: int, device: torch.device) -> Tensor:
    """(2, parts) float64 zeros: sums and counts before the first step."""
    return torch.zeros(2, parts, dtype=torch.float64, device=device)
