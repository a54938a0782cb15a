"""The smallest thing a trainer can train: a line fitted to points, in steps of two shapes, with dropout for chance."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hynt.interruption import Stopper
from hynt.objectives.streams import ItemStream, Loss, Phase, StepItems, trainable
from hynt.runs.checkpoint import EpochRecord, TrainingState, ValidationRecord
from hynt.runs.settings import Optimiser, Saving, Schedule, TrainingSettings, Validation
from hynt.training.optimisation import Optimisation
from hynt.training.step import EagerStep
from hynt.training.trainer import Trainer

CPU = torch.device("cpu")


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.unused = nn.Parameter(torch.ones(2))  # gets no gradient: must not disturb anyone
        nn.init.constant_(self.layer.weight, 0.5)
        nn.init.constant_(self.layer.bias, 0.0)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.layer(nn.functional.dropout(points, 0.02, self.training)).squeeze(1)


class _Steps:
    def __init__(self, points, values) -> None:
        self.points, self.values = points, values

    def __len__(self) -> int:
        return 5

    def items(self, index: int) -> StepItems:
        rows = slice(4 * index, 4 * index + (4 if index < 4 else 2))
        points, values = self.points[rows], self.values[rows]
        return StepItems(tuple(points.shape), (points, values))


class Points(ItemStream):
    name = "points"
    parts = ("near", "far")
    item_count = 18

    def __init__(self, device: torch.device = CPU, spoiled_epoch: int | None = None) -> None:
        self.device, self.spoiled_epoch = device, spoiled_epoch
        self.made: list[int] = []

    def epoch(self, seed: int, epoch: int) -> _Steps:
        self.made.append(epoch)
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        points = torch.randn(18, 3, generator=generator).to(self.device)
        values = points @ torch.tensor([1.0, -2.0, 3.0], device=self.device)
        if epoch == self.spoiled_epoch:
            values[9] = float("nan")
        return _Steps(points, values)

    def loss_for(self, shape):
        return self.loss

    @staticmethod
    def loss(model: nn.Module, tensors) -> Loss:
        points, values = tensors
        squared = (model(points) - values).square()
        near = (values.abs() < 2).float()
        sums = torch.stack([(squared * near).sum(), (squared * (1 - near)).sum()])
        return Loss(squared.mean(), sums, torch.stack([near.sum(), (1 - near).sum()]))


class Notebook:
    """A keeper that remembers everything in memory."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.epochs: list[EpochRecord] = []
        self.validations: list[ValidationRecord] = []
        self.saves: list[tuple[TrainingState, dict[str, Any], dict[str, Any], bool]] = []

    def epoch_done(self, record: EpochRecord) -> None:
        self.epochs.append(record)

    def validated(self, record: ValidationRecord) -> None:
        self.validations.append(record)

    def save(self, progress: TrainingState, optimisation: Optimisation, *, best: bool) -> None:
        weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        state = {name: value.clone() for name, value in optimisation.tensors().items()}
        self.saves.append((progress, weights, state, best))

    def take_best(self, progress: TrainingState) -> None:
        pass


def settings(epochs: int = 6, **changes: Any) -> TrainingSettings:
    given: dict[str, Any] = {
        "optimiser": Optimiser(learning_rate=0.05, clip=5.0),
        "schedule": Schedule(epochs=epochs, period=2),
        "validation": Validation(metric="toy.all.score", every=2),
        "saving": Saving(minutes=1000),
    }
    return TrainingSettings(**{**given, **changes})


def trainer(model, stream, notebook, chosen, *, validate=None, stopper=None, clock=None, epochs=None) -> Trainer:
    phase = Phase(stream, trainable(model), chosen.schedule.epochs if epochs is None else epochs)
    extra = {} if clock is None else {"clock": clock}
    return Trainer(
        [phase],
        chosen,
        lambda phase, made: EagerStep(model, phase.stream, made, stream.device, bf16=False),
        validate,
        notebook,
        stream.device,
        stopper or Stopper(),
        **extra,
    )
