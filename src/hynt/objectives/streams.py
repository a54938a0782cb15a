"""What a model trains on. Models differ in their training items, the trainer does not: it asks a stream for the plan
of an epoch, feeds each step's tensors to the stream's loss, and knows nothing more. A model makes its own `Phase`s.

The loss of steps of one shape must be a pure function of the model and the step's tensors, without a look at any
value: then it can be compiled and captured once and replayed with other tensors.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

import torch
from torch import Tensor, nn

from hynt.batches.epoch_plan import EpochPlan, PlannedSteps
from hynt.batches.masked_batch import Masking
from hynt.errors import UsageError
from hynt.objectives.losses import LossSettings


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


LossFunction: TypeAlias = Callable[[Any, tuple[Tensor, ...]], Loss]
"""From a model and a step's tensors to the step's loss. A stream's own loss says what it asks of the model."""


class EpochItems(Protocol):
    """The steps of one epoch."""

    def __len__(self) -> int: ...

    def items(self, index: int) -> StepItems:
        """What step `index`, counted from 0, learns from."""
        ...


class Share(NamedTuple):
    """Which part of each step a process does: that of number `rank` of `world` processes."""

    rank: int = 0
    world: int = 1


class ItemStream(ABC):
    """A source of training items and the loss on them. A model of another package may bring one of its own."""

    name: ClassVar[str]  # in the list of models, and of a phase in a run's metrics
    parts: ClassVar[tuple[str, ...]]  # names of the parts of the loss
    can_be_shared: ClassVar[bool] = False  # whether processes can divide its steps among them
    can_sample: ClassVar[bool] = False  # whether its loss can do with some of very many entities
    saves_memory: ClassVar[str] = ""  # a setting with which a step needs less, if not a smaller batch
    draws_steps: ClassVar[bool] = False  # whether each step is drawn anew, so that an epoch may have any number of them
    item_count: int  # how many facts or questions an epoch has
    part: Share = Share()  # what this process does of each step

    @abstractmethod
    def epoch(self, seed: int, epoch: int) -> EpochItems:
        """The items of an epoch: a function of the seed and the epoch alone."""

    @abstractmethod
    def loss_for(self, shape: Hashable) -> LossFunction:
        """The loss of steps of this shape. What the shape alone decides is worked out here, once."""

    def is_common(self, shape: Hashable) -> bool:  # noqa: ARG002
        """Whether enough steps have this shape for compiling it to pay."""
        return True

    def share(self, rank: int, world: int) -> Self:
        """The same stream for one of `world` processes, whose `part` of every step it gives. All parts of a step have
        one shape, and carry along how many questions the whole step has.
        """
        if not self.can_be_shared:
            raise UsageError(f"{self.name} cannot be shared among processes.", advice="Train in one process.")
        mine = copy.copy(self)
        mine.part = Share(rank, world)
        return mine


class ShuffledEpoch:
    """Numbers of items, (n,) int64 in a random order, cut into steps; the last one may be shorter."""

    def __init__(self, order: Tensor, batch_size: int) -> None:
        self.order, self.batch_size = order, batch_size

    def __len__(self) -> int:
        return -(-len(self.order) // self.batch_size)

    def items(self, index: int) -> StepItems:
        """The items of a step; their number is its shape."""
        chosen = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return StepItems(len(chosen), (chosen,))


class PlannedEpoch:
    """The steps of a plan, or a process's share of them; a shape is found once for all steps of a group.

    Shared steps carry along how many items the whole step has, so that a loss can be the mean over all of them.
    """

    def __init__(self, plan: EpochPlan, share: Share, shape_of: Callable[[PlannedSteps], Hashable]) -> None:
        self.plan = plan if share.world == 1 else plan.share(*share)
        self._shapes = [shape_of(steps) for steps in self.plan.groups]
        self._whole = None if share.world == 1 else [steps.weights.sum(1) for steps in plan.groups]

    def __len__(self) -> int:
        return len(self.plan)

    def items(self, index: int) -> StepItems:
        """Numbers of items and their weights."""
        group, row = self.plan.places[index]
        _, items, weights = self.plan.groups[group]
        whole = () if self._whole is None else (self._whole[group][row],)
        return StepItems(self._shapes[group], (items[row], weights[row], *whole))


@dataclass(frozen=True)
class PhaseSettings:
    """What a model is told of a run's settings when it makes its phases; its own settings it has already."""

    batch_size: int
    epochs: int
    masking: Masking = field(default_factory=Masking)
    losses: LossSettings = field(default_factory=LossSettings)
    epoch_steps: int | None = None  # for a stream that draws each step anew


@dataclass(frozen=True)
class Phase:
    """One stage of training. Most models have one; some fit a head afterwards or alternate two tasks."""

    stream: ItemStream
    parameters: tuple[nn.Parameter, ...]  # what this phase moves
    epochs: int
    rate: float | None = None  # learning rate, the same throughout; None: as the settings' schedule says
    second: tuple[nn.Parameter, ...] = ()  # what a second optimiser moves; some may be among the others
    matrices: tuple[nn.Parameter, ...] = ()  # of the parameters, the layers' matrices: the trainer finds them
    work: int | None = None  # products in a step, of a model so light that they say how many threads a CPU has work for

    @property
    def name(self) -> str:
        """As a run's metrics call it."""
        return self.stream.name


def trainable(model: nn.Module) -> tuple[nn.Parameter, ...]:
    """All parameters of a model that learn, each once."""
    return tuple(parameter for parameter in model.parameters() if parameter.requires_grad)


def no_loss(parts: int, device: torch.device) -> Tensor:
    """(2, parts) float64 zeros: sums and counts before the first step."""
    return torch.zeros(2, parts, dtype=torch.float64, device=device)
