"""The stream "grouped questions": every distinct question once an epoch, against all its true answers at once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, NamedTuple

from torch import Tensor

from hynt.batches.buckets import layout_index
from hynt.batches.epoch_plan import EpochPlanner, PlannedSteps, StepPieces
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import mask
from hynt.batches.questions import Entities, Grouping, QuestionGroups, Reader, Tokens
from hynt.objectives.losses import binary_loss, true_answers
from hynt.objectives.streams import ItemStream, Loss, LossFunction, PlannedEpoch


class GroupedShape(NamedTuple):
    """All that decides the shapes of a step."""

    pieces: StepPieces
    answers: int  # places for true answers, a power of two so that few shapes arise


class GroupedQuestions(ItemStream):
    """Training items of StarE, Hy-Transformer, LiteralE and models like them.

    The loss is binary cross entropy over all candidates: entities, and literals where they have ids.
    """

    name: ClassVar[str] = "grouped questions"
    parts: ClassVar[tuple[str, ...]] = ("questions",)
    can_be_shared: ClassVar[bool] = True

    def __init__(self, facts: FactTensors, batch_size: int, grouping: Grouping, smoothing: float) -> None:
        self.groups = QuestionGroups.of(facts, grouping)
        self.smoothing = smoothing
        counts = self.groups.facts.qualifier_counts()[self.groups.row]
        self.planner = EpochPlanner(counts, batch_size, chance=self.groups.chance(grouping))
        self.item_count = round(self.planner.expected)

    def epoch(self, seed: int, epoch: int) -> PlannedEpoch:
        """The questions of each step, and their weights."""
        counts = self.groups.counts()

        def shape_of(steps: PlannedSteps) -> GroupedShape:
            most = int((counts[steps.items] * steps.weights).sum(1).amax())
            return GroupedShape(steps.pieces, 1 << max(most - 1, 0).bit_length())

        return PlannedEpoch(self.planner.plan(seed, epoch), self.part, shape_of)

    def is_common(self, shape: Hashable) -> bool:
        """Steps with rare long facts are few: they are not worth a minute of compiling."""
        return isinstance(shape, GroupedShape) and shape.pieces == self.planner.regular.share(self.part.world)

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Hides, reads and scores; the mean over the questions of the step."""
        assert isinstance(shape, GroupedShape)
        groups, layout = self.groups, shape.pieces.layout
        at = layout_index(layout, groups.facts.device)

        def loss(model: Reader, tensors: tuple[Tensor, ...]) -> Loss:
            questions, weights, *whole = tensors  # the last one, of a shared step: the questions of all processes
            asked = groups.position[questions]
            batch, _ = mask(groups.facts, groups.row[questions], asked, layout, at)
            candidates = Tokens() if model.sizes.literals else Entities()
            logits = model.score(model.read(batch), candidates)
            true = true_answers(questions, weights, groups.offsets, groups.answers, shape.answers)
            total, count = (binary_loss(logits, true, self.smoothing) * weights).sum(), weights.sum()
            asked_of_all = whole[0] if whole else count
            return Loss(total / asked_of_all.clamp(min=1), total.unsqueeze(0), count.unsqueeze(0))

        return loss
