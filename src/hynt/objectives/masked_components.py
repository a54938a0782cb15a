"""The stream "masked components": every component of every fact is masked once an epoch, in turn.

Of very long facts only some components are drawn each epoch, so that one of hundreds of qualifiers does not outweigh
a hundred others.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import torch
from torch import Tensor

from hynt.batches.buckets import layout_index
from hynt.batches.epoch_plan import EpochPlanner, StepPieces
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import AskableComponents, Masking, Task, mask
from hynt.batches.questions import Entities, Reader, Relations, Tokens
from hynt.objectives.losses import LossSettings, smoothed_cross_entropy
from hynt.objectives.streams import ItemStream, Loss, LossFunction, PlannedEpoch

VALUE, RELATION = 0, 1
"""Kinds of questions: for an entity or a literal, and for a relation."""


class MaskedComponents(ItemStream):
    """Training items of GRAN. The loss is the mean over all questions of a step, whatever they ask for."""

    name: ClassVar[str] = "masked components"
    parts: ClassVar[tuple[str, ...]] = ("value", "relation")
    can_be_shared: ClassVar[bool] = True

    def __init__(
        self,
        facts: FactTensors,
        batch_size: int,
        masking: Masking | None = None,
        losses: LossSettings | None = None,
        instances: int = 64,
    ) -> None:
        """`instances`: at most so many components of one fact are masked per epoch, on average."""
        self.facts, self.losses = facts, losses or LossSettings()
        components = AskableComponents.of(facts, masking)
        chance = (instances / components.counts().double()).clamp(max=1.0)
        learnt = (components.task != Task.NUMBER) | (facts.sizes.literals > 0)  # else a number is no candidate
        self.owner, self.position = components.owner()[learnt], components.position[learnt]
        kind = (components.task[learnt] == Task.RELATION).long()
        self.planner = EpochPlanner(facts.qualifier_counts()[self.owner], batch_size, kind, chance[self.owner])
        self.item_count = round(self.planner.expected)

    def epoch(self, seed: int, epoch: int) -> PlannedEpoch:
        """The components masked in each step, and their weights."""
        return PlannedEpoch(self.planner.plan(seed, epoch), self.part, lambda steps: steps.pieces)

    def is_common(self, shape: Hashable) -> bool:
        """Steps with rare long facts are few: they are not worth a minute of compiling."""
        return shape == self.planner.regular.share(self.part.world)

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Hides, reads and scores each kind among its own candidates."""
        assert isinstance(shape, StepPieces)
        facts, layout, losses = self.facts, shape.layout, self.losses
        at = layout_index(layout, facts.device)
        rows = {kind: shape.rows_of(kind, facts.device) for kind in (VALUE, RELATION)}
        of_relations = losses.smoothing if losses.relation_smoothing is None else losses.relation_smoothing

        def loss(model: Reader, tensors: tuple[Tensor, ...]) -> Loss:
            chosen, weights, *whole = tensors  # the last one, of a shared step: the questions of all processes
            batch, answers = mask(facts, self.owner[chosen], self.position[chosen], layout, at)
            question, sums, counts = model.read(batch), [], []
            for kind in (VALUE, RELATION):
                own, weight = rows[kind], weights[rows[kind]]
                counts.append(weight.sum())
                if not len(own):
                    sums.append(weight.sum())
                    continue
                if kind == RELATION:
                    scores, answer = model.score(question.take(own), Relations()), answers.relation[own]
                    weight, smoothing = weight * losses.relation_weight, of_relations
                else:
                    candidates = Tokens() if model.sizes.literals else Entities()
                    scores, answer = model.score(question.take(own), candidates), answers.entity[own]
                    answer = answer - (answer > model.sizes.mask_entity).long()  # no candidate stands there
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
