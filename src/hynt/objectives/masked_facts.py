"""Streams of masked facts and of masked components.

"Masked facts" has every fact once an epoch, with one component masked, drawn anew each epoch. Facts are dealt to steps
by their length and by what is asked of them, so that every step has nearly the same number of questions of each task. A
step has places for so many questions of each: the costly projection onto all entities runs only for rows that ask for
one.

"Masked components" masks every component of every fact once an epoch, in turn. Of very long facts only some components
are drawn each epoch, so that one of hundreds of qualifiers does not outweigh a hundred others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import torch
from torch import Tensor

from hynt.batches import epoch_plan
from hynt.batches.buckets import BatchLayout, layout_index, layout_of
from hynt.batches.epoch_plan import EpochPlanner, PlannedSteps, StepPieces
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import AskableComponents, Masking, Task, mask
from hynt.batches.questions import Entities, Reader, Relations, Tokens
from hynt.errors import UsageError
from hynt.objectives.losses import (
    EntityLoss,
    LossSettings,
    TaskRows,
    joint_loss,
    masked_fact_losses,
    smoothed_cross_entropy,
)
from hynt.objectives.streams import ItemStream, Loss, LossFunction, PlannedEpoch, StepItems

EntityLossChoice: TypeAlias = Callable[[FactTensors, AskableComponents, LossSettings], EntityLoss | None]
"""From facts, what may be asked of them and settings to a way to the loss of entities, or none."""


class StepShape(NamedTuple):
    """All that decides the shapes of a step."""

    layout: BatchLayout
    outputs: tuple[int, ...]  # how many rows each task has places for, by `Task`


class PackedStep(NamedTuple):
    """One step, packed into two tensors, so that a captured step is fed by two copies."""

    shape: StepShape
    indices: Tensor  # (2 × rows + outputs,) int64: facts, asked positions, then the output rows of the three tasks
    weights: Tensor  # (sum of shape.outputs,) float32: 1 for a question, 0 for filler

    @property
    def rows(self) -> Tensor:
        """(rows,) int64: the fact in each row of the batch."""
        return self.indices[: self.shape.layout.rows]

    @property
    def asked(self) -> Tensor:
        """(rows,) int64: the position masked in each row."""
        return self.indices[self.shape.layout.rows : 2 * self.shape.layout.rows]

    @property
    def asks(self) -> TaskRows:
        listed = self.indices[2 * self.shape.layout.rows :]
        outputs = self.shape.outputs
        return TaskRows(listed.split(outputs), self.weights.split(outputs))  # type: ignore[no-untyped-call]


class PackedSteps(NamedTuple):
    """The steps of one shape, each packed as `PackedStep` is, one per row."""

    shape: StepShape
    indices: Tensor  # (steps, 2 × rows + outputs) int64
    weights: Tensor  # (steps, sum of shape.outputs) float32: 1 for a question, 0 for filler
    counts: Tensor | None = None  # (steps, tasks) float32 questions of the whole step, where processes share it


@dataclass(frozen=True, eq=False)
class MaskedEpoch:
    """The steps of an epoch, by shape; the last group holds the regular ones."""

    groups: tuple[PackedSteps, ...]
    places: tuple[tuple[int, int], ...]  # for each step of the epoch, its group and its row there

    def __len__(self) -> int:
        return len(self.places)

    def step(self, index: int) -> PackedStep:
        """Step `index`, from 0. Views: nothing is copied and the device does not wait."""
        group, row = self.places[index]
        shape, indices, weights, _ = self.groups[group]
        return PackedStep(shape, indices[row], weights[row])

    def items(self, index: int) -> StepItems:
        """The facts, positions and weights of a step."""
        group, row = self.places[index]
        shape, indices, weights, counts = self.groups[group]
        whole = () if counts is None else (counts[row],)
        return StepItems(shape, (indices[row], weights[row], *whole))


class MaskedFacts(ItemStream):
    """Training items of HyNT and of models like it."""

    name: ClassVar[str] = "masked facts"
    parts: ClassVar[tuple[str, ...]] = tuple(task.name.lower() for task in Task)
    can_be_shared: ClassVar[bool] = True
    can_sample: ClassVar[bool] = True

    def __init__(
        self,
        facts: FactTensors,
        batch_size: int,
        masking: Masking | None = None,
        losses: LossSettings | None = None,
        entity_loss: EntityLossChoice | None = None,
    ) -> None:
        """Questions for entities are left to what `entity_loss` chooses; else all entities are scored."""
        self.facts, self.losses = facts, losses or LossSettings()
        if entity_loss is None and self.losses.softmax == "sampled":
            raise UsageError(
                "this model is trained on the scores of all entities.",
                where="losses.softmax",
                advice="Leave it at auto.",
            )
        self.item_count = len(facts)
        self.components = AskableComponents.of(facts, masking)
        self.entity_loss = None if entity_loss is None else entity_loss(facts, self.components, self.losses)
        self.planner = EpochPlanner(facts.qualifier_counts(), batch_size)
        self.shapes = self._shapes()

    @property
    def regular(self) -> StepShape:
        return _shared_shape(self.shapes[-1], self.part.world)

    def epoch(self, seed: int, epoch: int) -> MaskedEpoch:
        """Draws a component of each fact and deals the facts to steps. The device is waited for only to see that
        chance kept within the places for each task.

        Where it did not (about once in a million epochs) this epoch's shapes have more places than those of others.
        """
        luck = self.planner.luck(seed, epoch, "masking")
        asked, task = self.components.drawn(luck[0])
        plan = self.planner.deal(luck[1], task, len(Task))
        groups = zip(plan.groups, self.shapes, strict=True)
        return MaskedEpoch(tuple(self._packed(steps, shape, asked, task) for steps, shape in groups), plan.places)

    def is_common(self, shape: Hashable) -> bool:
        """Steps with rare long facts are few: they are not worth a minute of compiling."""
        return shape == self.regular

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Hides, reads and scores; each part is the mean over its own questions."""
        assert isinstance(shape, StepShape)
        facts, losses, layout, entity_loss = self.facts, self.losses, shape.layout, self.entity_loss
        at = layout_index(layout, facts.device)

        def loss(model: Reader, tensors: tuple[Tensor, ...]) -> Loss:
            indices, weights, *whole = tensors
            step = PackedStep(shape, indices, weights)
            batch, answers = mask(facts, step.rows, step.asked, layout, at)
            parts = masked_fact_losses(
                model, batch, answers, step.asks, losses.smoothing, losses.relation_smoothing, entity_loss
            )
            none = weights.new_zeros(())
            sums = [parts[task].total if task in parts else none for task in Task]
            counts = [parts[task].weight if task in parts else none for task in Task]
            # Where several processes share a step, it says how many questions all of them have.
            shared = {task: whole[0][task.value] for task in Task} if whole else None
            return Loss(joint_loss(parts, losses, shared), torch.stack(sums), torch.stack(counts))

        return loss

    def _shapes(self) -> tuple[StepShape, ...]:
        """The shapes of steps, by the planner's groups.

        Places for a task: as many as expected, room for chance, and one per bucket because dealing rounds up.
        """
        dealing, bucket = self.planner.dealing, self.planner.bucket
        likelihood = self.components.task_likelihood()
        blank = likelihood.new_zeros(len(dealing.deals), len(Task))
        means = blank.index_add(0, bucket, likelihood).cpu()  # (buckets, tasks) questions expected
        variances = blank.index_add(0, bucket, likelihood * (1 - likelihood)).cpu()
        places_of = []
        for deal, mean, variance in zip(dealing.deals, means, variances, strict=True):
            likely = ((mean + epoch_plan.DEVIATIONS * variance.sqrt()) / deal.steps).ceil() + 1
            places_of.append(torch.where(mean > 0, likely, 0).clamp(0, deal.rows).long().tolist())
        found = []
        for pieces, (_, end) in zip(self.planner.shapes, dealing.ranges, strict=True):
            dealt = [each for each, deal in zip(places_of, dealing.deals, strict=True) if deal.steps >= end]
            found.append(StepShape(pieces.layout, tuple(map(sum, zip(*dealt, strict=True)))))
        return tuple(found)

    def _packed(self, steps: PlannedSteps, shape: StepShape, asked: Tensor, task: Tensor) -> PackedSteps:
        """This process's steps with the rows of each task gathered; `asked` and `task` are (n,) by fact."""
        counts = _counts(steps, task)
        shape = _with_places(shape, counts)
        if self.part.world == 1:
            return _gathered(steps, shape, asked, task)
        # All processes have steps of one shape, so each has places for as many questions as any of them.
        parts = [steps.share(rank, self.part.world) for rank in range(self.part.world)]
        shape = _shared_shape(shape, self.part.world)
        for part in parts:
            shape = _with_places(shape, _counts(part, task))
        return _gathered(parts[self.part.rank], shape, asked, task)._replace(counts=counts.float())


def _counts(steps: PlannedSteps, task: Tensor) -> Tensor:
    """(steps, tasks) int64 how many questions of each task a step has."""
    return torch.stack([((steps.weights > 0) & (task[steps.items] == kind)).sum(1) for kind in Task], 1)


def _with_places(shape: StepShape, counts: Tensor) -> StepShape:
    """The shape with places for (steps, tasks) questions, where it has fewer."""
    most = counts.amax(0).tolist()
    return StepShape(shape.layout, tuple(max(pair) for pair in zip(shape.outputs, most, strict=True)))


def _shared_shape(shape: StepShape, world: int) -> StepShape:
    """The shape of each process's part: questions of a task go by turns, so in each segment one more at most."""
    if world == 1:
        return shape
    more = len(shape.layout.segments)
    outputs = tuple(min(room, -(-room // world) + more) if room else 0 for room in shape.outputs)
    return StepShape(layout_of((-(-rows // world), capacity) for rows, capacity in shape.layout.segments), outputs)


def _gathered(steps: PlannedSteps, shape: StepShape, asked: Tensor, task: Tensor) -> PackedSteps:
    """Steps packed in this shape, which has places enough."""
    facts = steps.items
    row = torch.arange(facts.shape[1], device=facts.device).expand_as(facts)
    indices, weights = [facts, asked[facts]], []
    for kind, room in zip(Task, shape.outputs, strict=True):
        # Each question goes to the next free place; everything else to one place more, which is then cut off.
        asks = (steps.weights > 0) & (task[facts] == kind)
        place = torch.where(asks, asks.cumsum(1) - 1, room)
        blank = facts.new_zeros(len(facts), room + 1)
        indices.append(blank.scatter(1, place, row)[:, :room])
        weights.append(blank.float().scatter(1, place, 1.0)[:, :room])
    return PackedSteps(shape, torch.cat(indices, 1), torch.cat(weights, 1))


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
