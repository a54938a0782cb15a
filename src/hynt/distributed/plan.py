"""One process's share of each step. A plan follows from (seed, epoch) alone, so every process makes all of it and takes
its own rows: in each segment of a step's layout row r, r + world, r + 2·world, … Together the shares are the step,
no row twice. All shares have the same shapes; filler of weight 0 evens them out.

A part of a loss is a mean over the questions of the whole step. How many these are follows from the plan as well, so
each step carries the counts along and nothing needs to be sent before dividing.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import torch
from torch import Tensor

from hynt.batches.buckets import BatchLayout, layout_of
from hynt.batches.epoch_plan import EpochPlan, PackedSteps, StepShape
from hynt.batches.masked_batch import Task
from hynt.batches.question_plan import Piece, PlannedSteps, QuestionPlan, StepPieces
from hynt.errors import UsageError
from hynt.objectives.grouped_questions import GroupedEpoch, GroupedQuestions
from hynt.objectives.masked_components import ComponentEpoch, MaskedComponents
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.streams import EpochItems, ItemStream, LossFunction, StepItems


def share_of_rows(sizes: list[int], rank: int, world: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(k,) int64 the rows that a process takes of consecutive runs of rows, and (k,) bool false for filler."""
    chosen, real, first = [], [], 0
    for size in sizes:
        place = torch.arange(rank, rank + world * -(-size // world), world, device=device)
        chosen.append(first + place.clamp(max=max(size - 1, 0)))
        real.append(place < size)
        first += size
    none = torch.zeros(0, dtype=torch.int64, device=device)
    return torch.cat([none, *chosen]), torch.cat([none.bool(), *real])


def shared_layout(layout: BatchLayout, world: int) -> BatchLayout:
    """The layout of each process's share."""
    return layout_of((-(-rows // world), capacity) for rows, capacity in layout.segments)


def shared_shape(shape: StepShape, world: int) -> StepShape:
    """The shape of each process's share: questions of a task go by turns, so in each segment one more at most."""
    more = len(shape.layout.segments)
    outputs = tuple(min(places, -(-places // world) + more) if places else 0 for places in shape.outputs)
    return StepShape(shared_layout(shape.layout, world), (outputs[0], outputs[1], outputs[2]))


@dataclass(frozen=True, eq=False)
class _SharedSteps:
    """The shares of steps of one shape, and how many questions of each task the whole steps have."""

    steps: PackedSteps
    counts: Tensor  # (steps, tasks) float32


def _masked_share(steps: PackedSteps, rank: int, world: int) -> _SharedSteps:
    layout, rows = steps.shape.layout, steps.shape.layout.rows
    facts, asked = steps.indices[:, :rows], steps.indices[:, rows : 2 * rows]
    sizes = [segment.rows for segment in layout.segments]
    shares = [share_of_rows(sizes, other, world, facts.device) for other in range(world)]
    chosen, _ = shares[rank]
    shape = shared_shape(steps.shape, world)
    indices, weights, counts, outputs = [facts[:, chosen], asked[:, chosen]], [], [], []
    row = torch.arange(len(chosen), device=facts.device).expand(len(facts), -1)
    places_at = 2 * rows
    weight_at = 0
    for task, expected in zip(Task, shape.outputs, strict=True):
        places = steps.shape.outputs[task.value]
        at = steps.indices[:, places_at : places_at + places]
        given = steps.weights[:, weight_at : weight_at + places]
        places_at, weight_at = places_at + places, weight_at + places
        asks = torch.zeros_like(facts, dtype=torch.float32).scatter_add(1, at, given) > 0
        of_ranks = [asks[:, mine] & real for mine, real in shares]
        most = int(torch.stack([mask.sum(1).amax() for mask in of_ranks]).amax()) if len(facts) else 0
        size = max(expected, most)
        mask = of_ranks[rank]
        place = torch.where(mask, mask.cumsum(1) - 1, size)
        blank = facts.new_zeros(len(facts), size + 1)
        indices.append(blank.scatter(1, place, row)[:, :size])
        weights.append(blank.float().scatter(1, place, 1.0)[:, :size])
        counts.append(given.sum(1))
        outputs.append(size)
    shape = StepShape(shape.layout, (outputs[0], outputs[1], outputs[2]))
    return _SharedSteps(PackedSteps(shape, torch.cat(indices, 1), torch.cat(weights, 1)), torch.stack(counts, 1))


class _SharedMaskedEpoch:
    def __init__(self, plan: EpochPlan, rank: int, world: int) -> None:
        self._groups = [_masked_share(steps, rank, world) for steps in plan.groups]
        self._places = plan.places

    def __len__(self) -> int:
        return len(self._places)

    def items(self, index: int) -> StepItems:
        group, row = self._places[index]
        (shape, indices, weights), counts = self._groups[group].steps, self._groups[group].counts
        return StepItems(shape, (indices[row], weights[row], counts[row]))


def _question_share(plan: QuestionPlan, rank: int, world: int) -> tuple[QuestionPlan, list[Tensor]]:
    groups, counts = [], []
    for pieces, questions, weights in plan.groups:
        sizes = [piece.rows for piece in pieces.pieces]
        chosen, real = share_of_rows(sizes, rank, world, questions.device)
        own = StepPieces(tuple(Piece(-(-rows // world), capacity, kind) for rows, capacity, kind in pieces.pieces))
        groups.append(PlannedSteps(own, questions[:, chosen], weights[:, chosen] * real))
        counts.append(weights.sum(1))
    return QuestionPlan(tuple(groups), plan.places), counts


class _WithCounts:
    """Steps that carry along how many questions the whole step has."""

    def __init__(self, items: EpochItems, places: tuple[tuple[int, int], ...], counts: list[Tensor]) -> None:
        self._items, self._places, self._counts = items, places, counts

    def __len__(self) -> int:
        return len(self._items)

    def items(self, index: int) -> StepItems:
        group, row = self._places[index]
        shape, tensors = self._items.items(index)
        return StepItems(shape, (*tensors, self._counts[group][row]))


class SharedStream:
    """A stream of which each process gets its share of every step."""

    def __init__(self, stream: ItemStream, rank: int, world: int) -> None:
        if not isinstance(stream, MaskedFacts | MaskedComponents | GroupedQuestions):
            raise UsageError(
                "this model's training cannot be shared among processes.",
                where="--processes",
                advice="Train it in one process; hynt, gran, ram, stare and hy-transformer can be shared.",
            )
        self._stream, self._rank, self._world = stream, rank, world
        self.parts, self.item_count = stream.parts, stream.item_count

    def epoch(self, seed: int, epoch: int) -> EpochItems:
        """This process's share of an epoch."""
        stream, rank, world = self._stream, self._rank, self._world
        if isinstance(stream, MaskedFacts):
            return _SharedMaskedEpoch(stream.planner.plan(seed, epoch), rank, world)
        plan, counts = _question_share(stream.planner.plan(seed, epoch), rank, world)
        if isinstance(stream, MaskedComponents):
            return _WithCounts(ComponentEpoch(plan), plan.places, counts)
        return _WithCounts(GroupedEpoch(plan, stream.groups.counts()), plan.places, counts)

    def is_common(self, shape: Hashable) -> bool:
        """Whether enough steps have this shape for compiling it to pay."""
        if isinstance(self._stream, MaskedFacts):
            return shape == shared_shape(self._stream.planner.regular, self._world)
        regular = self._stream.planner.regular
        own = StepPieces(tuple(Piece(-(-rows // self._world), *rest) for rows, *rest in regular.pieces))
        return shape == own or getattr(shape, "pieces", None) == own

    def loss_for(self, shape: Hashable) -> LossFunction:
        """The stream's own: it divides by the counts that a step brings along."""
        return self._stream.loss_for(shape)
