"""The stream "grouped questions": every distinct question once an epoch, against all its true answers at once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from hynt.batches.buckets import layout_index
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masking import mask
from hynt.batches.question_groups import Grouping, QuestionGroups
from hynt.batches.question_plan import QuestionPlan, QuestionPlanner, StepPieces
from hynt.models.contract import Entities, Model, Tokens
from hynt.objectives.losses import binary_loss, true_answers
from hynt.objectives.streams import Loss, LossFunction, StepItems


class GroupedShape(NamedTuple):
    """All that decides the shapes of a step."""

    pieces: StepPieces
    answers: int  # places for true answers, a power of two so that few shapes arise


class GroupedEpoch:
    """A plan as items of steps."""

    def __init__(self, plan: QuestionPlan, counts: Tensor) -> None:
        self._plan = plan
        most = [int((counts[group.questions] * group.weights).sum(1).amax()) for group in plan.groups]
        self._shapes = [
            GroupedShape(group.pieces, 1 << max(count - 1, 0).bit_length())
            for group, count in zip(plan.groups, most, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._plan)

    def items(self, index: int) -> StepItems:
        """The questions of a step and their weights."""
        group, row = self._plan.places[index]
        steps = self._plan.groups[group]
        return StepItems(self._shapes[group], (steps.questions[row], steps.weights[row]))


class GroupedQuestions:
    """Training items of StarE, Hy-Transformer, LiteralE and models like them.

    The loss is binary cross entropy over all candidates: entities, and literals where they have ids.
    """

    parts: tuple[str, ...] = ("questions",)

    def __init__(self, facts: FactTensors, batch_size: int, grouping: Grouping, smoothing: float) -> None:
        self.groups = QuestionGroups.of(facts, grouping)
        self.smoothing = smoothing
        counts = self.groups.facts.qualifier_counts()[self.groups.row]
        chance = self.groups.chance(grouping)
        self.planner = QuestionPlanner(counts, torch.zeros_like(counts), chance, batch_size)
        self.item_count = round(self.planner.expected)

    def epoch(self, seed: int, epoch: int) -> GroupedEpoch:
        """The items of an epoch."""
        return GroupedEpoch(self.planner.plan(seed, epoch), self.groups.counts())

    def is_common(self, shape: Hashable) -> bool:
        """Steps with rare long facts are few: they are not worth a minute of compiling."""
        return isinstance(shape, GroupedShape) and shape.pieces == self.planner.regular

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Hides, reads and scores; the mean over the questions of the step."""
        assert isinstance(shape, GroupedShape)
        groups, layout = self.groups, shape.pieces.layout
        at = layout_index(layout, groups.facts.device)

        def loss(model: nn.Module, tensors: tuple[Tensor, ...]) -> Loss:
            questions, weights, *whole = tensors  # the last one, of a shared step: the questions of all processes
            asked, learner = groups.position[questions], cast(Model, model)
            batch, _ = mask(groups.facts, groups.row[questions], asked, layout, at)
            candidates = Tokens() if learner.sizes.literals else Entities()
            logits = learner.score(learner.read(batch), candidates)
            true = true_answers(questions, weights, groups.offsets, groups.answers, shape.answers)
            total, count = (binary_loss(logits, true, self.smoothing) * weights).sum(), weights.sum()
            asked_of_all = whole[0] if whole else count
            return Loss(total / asked_of_all.clamp(min=1), total.unsqueeze(0), count.unsqueeze(0))

        return loss
