"""The stream "masked facts": every fact once an epoch, with one component hidden, drawn anew each epoch."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from hynt.batches.buckets import layout_index
from hynt.batches.components import Masking
from hynt.batches.epoch_plan import EpochPlan, EpochPlanner, PackedStep, StepShape
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.batches.masking import mask
from hynt.models.contract import Model
from hynt.objectives.losses import LossSettings, joint_loss, masked_fact_losses
from hynt.objectives.sampled_softmax import sampler_for
from hynt.objectives.streams import Loss, LossFunction, StepItems
from hynt.objectives.whole_softmax import whole_softmax_for


class MaskedEpoch:
    """A plan as items of steps."""

    def __init__(self, plan: EpochPlan) -> None:
        self.plan = plan

    def __len__(self) -> int:
        return len(self.plan)

    def items(self, index: int) -> StepItems:
        """The facts, positions and weights of a step."""
        step = self.plan.step(index)
        return StepItems(step.shape, (step.indices, step.weights))


@dataclass(frozen=True, eq=False)
class _TaskRows:
    """The part of a `PackedStep` that the losses look at, in a form that the compiler can follow."""

    rows: tuple[Tensor, ...]  # by task
    weights: tuple[Tensor, ...]

    def output(self, task: Task) -> tuple[Tensor, Tensor]:
        index = 0 if task is Task.LINK else 1 if task is Task.RELATION else 2
        return self.rows[index], self.weights[index]


class MaskedFacts:
    """Training items of HyNT and of models like it."""

    parts = tuple(task.name.lower() for task in Task)

    def __init__(self, facts: FactTensors, batch_size: int, masking: Masking, losses: LossSettings) -> None:
        self.facts, self.losses = facts, losses
        self.item_count = len(facts)
        self.planner = EpochPlanner(facts, batch_size, masking)
        self.entity_loss = sampler_for(facts, self.planner.components, losses) or whole_softmax_for(facts)

    def epoch(self, seed: int, epoch: int) -> MaskedEpoch:
        """The plan of an epoch."""
        return MaskedEpoch(self.planner.plan(seed, epoch))

    def is_common(self, shape: Hashable) -> bool:
        """Steps with rare long facts are few: they are not worth a minute of compiling."""
        return shape == self.planner.regular

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Hides, reads and scores; each part is the mean over its own questions."""
        assert isinstance(shape, StepShape)
        facts, losses, layout, entity_loss = self.facts, self.losses, shape.layout, self.entity_loss
        at = layout_index(layout, facts.device)
        sizes = (layout.rows, layout.rows, *shape.outputs)
        link, relation, number = shape.outputs

        def loss(model: nn.Module, tensors: tuple[Tensor, ...]) -> Loss:
            indices, weights, *whole = tensors
            rows, asked, *outputs = indices.split(sizes)  # type: ignore[no-untyped-call]
            task_weights = weights.split((link, relation, number))  # type: ignore[no-untyped-call]
            step = _TaskRows(tuple(outputs), task_weights)
            batch, answers = mask(facts, rows, asked, layout, at)
            parts = masked_fact_losses(
                cast(Model, model),
                batch,
                answers,
                cast(PackedStep, step),
                losses.smoothing,
                losses.relation_smoothing,
                entity_loss,
            )
            none = weights.new_zeros(())
            sums = [parts[task].total if task in parts else none for task in Task]
            counts = [parts[task].weight if task in parts else none for task in Task]
            # Where several processes share a step, it says how many questions all of them have.
            shared = {task: whole[0][task.value] for task in Task} if whole else None
            return Loss(joint_loss(parts, losses, shared), torch.stack(sums), torch.stack(counts))

        return loss
