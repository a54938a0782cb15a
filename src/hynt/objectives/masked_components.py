"""The stream "masked components": every component of every fact is hidden once an epoch, in turn.

Of very long facts only some components are drawn each epoch, so that one of hundreds of qualifiers does not outweigh
a hundred others.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

import torch
from torch import Tensor, nn

from hynt.batches.buckets import layout_index
from hynt.batches.components import AskableComponents, Masking
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.batches.masking import mask
from hynt.batches.question_plan import QuestionPlan, QuestionPlanner, StepPieces
from hynt.models.contract import Entities, Model, Relations, Tokens
from hynt.objectives.losses import LossSettings, smoothed_cross_entropy
from hynt.objectives.streams import Loss, LossFunction, StepItems

VALUE, RELATION = 0, 1
"""Kinds of questions: for an entity or a literal, and for a relation."""


class ComponentEpoch:
    """A plan as items of steps."""

    def __init__(self, plan: QuestionPlan) -> None:
        self._plan = plan

    def __len__(self) -> int:
        return len(self._plan)

    def items(self, index: int) -> StepItems:
        """The components hidden in a step and their weights."""
        group, row = self._plan.places[index]
        steps = self._plan.groups[group]
        return StepItems(steps.pieces, (steps.questions[row], steps.weights[row]))


class MaskedComponents:
    """Training items of GRAN. The loss is the mean over all questions of a step, whatever they ask for."""

    parts: tuple[str, ...] = ("value", "relation")

    def __init__(
        self, facts: FactTensors, batch_size: int, instances: int, masking: Masking, losses: LossSettings
    ) -> None:
        """`instances` is how many components of one fact an epoch hides on average, at most."""
        self.facts, self.losses = facts, losses
        components = AskableComponents.of(facts, masking)
        chance = (instances / components.counts().double()).clamp(max=1.0)
        learnt = (components.task != Task.NUMBER) | (facts.sizes.literals > 0)  # else a number is no candidate
        self.owner, self.position = components.owner()[learnt], components.position[learnt]
        kind = (components.task[learnt] == Task.RELATION).long()
        self.planner = QuestionPlanner(facts.qualifier_counts()[self.owner], kind, chance[self.owner], batch_size)
        self.item_count = round(self.planner.expected)

    def epoch(self, seed: int, epoch: int) -> ComponentEpoch:
        """The items of an epoch."""
        return ComponentEpoch(self.planner.plan(seed, epoch))

    def is_common(self, shape: Hashable) -> bool:
        """Steps with rare long facts are few: they are not worth a minute of compiling."""
        return shape == self.planner.regular

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Hides, reads and scores each kind among its own candidates."""
        assert isinstance(shape, StepPieces)
        facts, layout, losses = self.facts, shape.layout, self.losses
        at = layout_index(layout, facts.device)
        rows = {kind: shape.rows_of(kind, facts.device) for kind in (VALUE, RELATION)}
        of_relations = losses.smoothing if losses.relation_smoothing is None else losses.relation_smoothing

        def loss(model: nn.Module, tensors: tuple[Tensor, ...]) -> Loss:
            chosen, weights, *whole = tensors  # the last one, of a shared step: the questions of all processes
            learner = cast(Model, model)
            batch, answers = mask(facts, self.owner[chosen], self.position[chosen], layout, at)
            question, sums, counts = learner.read(batch), [], []
            for kind in (VALUE, RELATION):
                own, weight = rows[kind], weights[rows[kind]]
                counts.append(weight.sum())
                if not len(own):
                    sums.append(weight.sum())
                    continue
                if kind == RELATION:
                    scores, answer = learner.score(question.take(own), Relations()), answers.relation[own]
                    weight, smoothing = weight * losses.relation_weight, of_relations
                else:
                    candidates = Tokens() if learner.sizes.literals else Entities()
                    scores, answer = learner.score(question.take(own), candidates), answers.entity[own]
                    answer = answer - (answer > learner.sizes.mask_entity).long()  # no candidate stands there
                    is_number = answers.task[own] == Task.NUMBER.value
                    weight, smoothing = torch.where(is_number, weight * losses.number_weight, weight), losses.smoothing
                share = even_share(smoothing, scores.shape[1])
                sums.append((smoothed_cross_entropy(scores, answer, share) * weight).sum())
            asked = whole[0] if whole else torch.stack(counts).sum()
            total = torch.stack(sums).sum() / asked.clamp(min=1)
            return Loss(total, torch.stack(sums), torch.stack(counts))

        return loss


def even_share(smoothing: float, candidates: int) -> float:
    """The smoothing over all candidates that gives the wrong ones what `smoothing` over the wrong ones alone would.

    GRAN's target has 1 − ε for the answer and ε / (C − 1) for each other candidate.
    """
    return smoothing * candidates / (candidates - 1) if candidates > 1 else 0.0
