"""The plan of a training epoch: which fact goes to which step, and which of its components is hidden there.

Each fact comes exactly once an epoch. Facts are sorted by bucket and, inside it, by task and then at random, and
dealt round-robin over the steps. So every step has the same layout and nearly the same number of questions of each
task: shapes are static, and the costly projection onto all entities runs only for rows that ask for one. Places
left over are filled with rows of weight 0.

Buckets so rare that dealing them to every step would be mostly filler are gathered in a few steps, spread over the
epoch, which are like the others but have further segments (`StepShape.extended`); a graph whose facts are all short
has none of these.

A plan follows from (facts, masking, batch size, seed, epoch) alone, on any device, so a resumed run has nothing to
restore.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.batches.buckets import BatchLayout, bucket_capacities, layout_of, merged_capacities
from hynt.batches.components import AskableComponents, Masking
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.batches.seeds import generator_for

DEVIATIONS = 5.0
"""Room for chance: a plan has places for the expected number of questions of a task plus so many standard deviations.
"""


class StepShape(NamedTuple):
    """All that decides the shapes of a step. Hashable: compile or capture one step for each."""

    layout: BatchLayout
    outputs: tuple[int, int, int]  # how many rows each task has places for, by `Task`


class PackedStep(NamedTuple):
    """One step of a plan, packed into two tensors so that a captured step is fed by two copies."""

    shape: StepShape
    indices: Tensor  # (2 × rows + outputs,) int64: facts, asked positions, then the output rows of the three tasks
    weights: Tensor  # (sum of shape.outputs,) float32: 1 for a question, 0 for filler

    @property
    def rows(self) -> Tensor:
        """(rows,) int64: the fact in each row of the batch."""
        return self.indices[: self.shape.layout.rows]

    @property
    def asked(self) -> Tensor:
        """(rows,) int64: the position hidden in each row."""
        return self.indices[self.shape.layout.rows : 2 * self.shape.layout.rows]

    def output(self, task: Task) -> tuple[Tensor, Tensor]:
        """(places,) int64 rows of the batch that ask for this task, and (places,) float32 their weights."""
        index = task.value  # a plain number: an enumeration cannot index inside a compiled step
        start, size = sum(self.shape.outputs[:index]), self.shape.outputs[index]
        first = 2 * self.shape.layout.rows + start
        return self.indices[first : first + size], self.weights[start : start + size]


class PackedSteps(NamedTuple):
    """The steps of one shape, packed as `PackedStep` is, one a row."""

    shape: StepShape
    indices: Tensor  # (steps, 2 × rows + outputs) int64
    weights: Tensor  # (steps, sum of shape.outputs) float32


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The steps of one epoch, kept by shape. The last group holds the regular steps, most of them or all."""

    groups: tuple[PackedSteps, ...]
    places: tuple[tuple[int, int], ...]  # for each step of the epoch, its group and its row there

    def __len__(self) -> int:
        return len(self.places)

    def step(self, index: int) -> PackedStep:
        """Step `index` of the epoch, from 0. Views: nothing is copied and the device does not wait."""
        if not 0 <= index < len(self):
            raise IndexError(f"the plan has {len(self)} steps, there is no step {index}")
        group, row = self.places[index]
        shape, indices, weights = self.groups[group]
        return PackedStep(shape, indices[row], weights[row])


class EpochPlanner:
    """Makes the plan of any epoch. What does not change between epochs is worked out once, here."""

    def __init__(self, facts: FactTensors, batch_size: int, masking: Masking | None = None) -> None:
        if len(facts) == 0:
            raise ValueError("there are no facts to train on")
        self.components = AskableComponents.of(facts, masking)
        self.steps = -(-len(facts) // batch_size)
        capacity = merged(bucket_capacities(facts.qualifier_counts()), self.steps, batch_size)
        capacities, self._bucket, sizes = torch.unique(capacity, return_inverse=True, return_counts=True)
        self._dealing = Dealing.of(capacities.tolist(), sizes.tolist(), self.steps)
        likelihood = self.components.task_likelihood()
        blank = likelihood.new_zeros(len(capacities), len(Task))
        self._mean = blank.index_add(0, self._bucket, likelihood).cpu()  # (buckets, tasks) questions expected
        self._variance = blank.index_add(0, self._bucket, likelihood * (1 - likelihood)).cpu()
        self.shapes = tuple(self._shape(end) for _, end in self._dealing.ranges)

    @property
    def regular(self) -> StepShape:
        """The shape of most steps, or all."""
        return self.shapes[-1]

    def _shape(self, end: int) -> StepShape:
        """The shape of steps that get each bucket dealt to at least `end` steps.

        Places for a task: as many as expected, room for chance, and one a bucket because dealing rounds up.
        """
        needed = [0] * len(Task)
        for deal, mean, variance in zip(self._dealing.deals, self._mean, self._variance, strict=True):
            if deal.steps >= end:
                likely = ((mean + DEVIATIONS * variance.sqrt()) / deal.steps).ceil() + 1
                bounded = torch.where(mean > 0, likely, 0).clamp(0, deal.rows)
                needed = [total + int(more) for total, more in zip(needed, bounded.tolist(), strict=True)]
        return StepShape(layout_of((deal.rows, deal.capacity) for deal in self._dealing.dealt_to(end)), _triple(needed))

    def plan(self, seed: int, epoch: int) -> EpochPlan:
        """The plan of an epoch. The device is waited for only to see that chance kept within the places for each task.

        Where it did not (about once in a million epochs) this plan's shapes have more places than those of other plans.
        """
        device, facts = self._bucket.device, len(self._bucket)
        # Drawn on the CPU, so that every device gets the same plan.
        uniform = torch.rand(2, facts, generator=generator_for(seed, epoch, "masking"), dtype=torch.float64).to(device)
        asked, task = self.components.drawn(uniform[0])
        shuffled = torch.argsort(uniform[1])
        order = shuffled[torch.argsort((len(Task) * self._bucket + task)[shuffled], stable=True)]

        tables = {deal: dealt(deal, order) for deal in self._dealing.deals}
        groups = []
        for shape, (start, end) in zip(self.shapes, self._dealing.ranges, strict=True):
            chosen = [tables[deal] for deal in self._dealing.dealt_to(end)]
            rows = torch.cat([table[start:end] for table, _ in chosen], 1)
            real = torch.cat([mask[start:end] for _, mask in chosen], 1)
            groups.append(_packed(shape, asked, task, rows, real))
        return EpochPlan(tuple(groups), self._dealing.places)


def _packed(shape: StepShape, asked: Tensor, task: Tensor, facts: Tensor, real: Tensor) -> PackedSteps:
    """Steps from (steps, rows) facts and whether they are questions; (n,) asked positions and tasks by fact."""
    asks = [real & (task[facts] == kind) for kind in Task]
    most = torch.stack([mask.sum(1).amax() for mask in asks]).tolist()
    shape = StepShape(shape.layout, _triple([max(pair) for pair in zip(shape.outputs, most, strict=True)]))
    row = torch.arange(facts.shape[1], device=facts.device).expand_as(facts)
    indices, weights = [facts, asked[facts]], []
    for mask, places in zip(asks, shape.outputs, strict=True):
        # Each question goes to the next free place; everything else to one place more, which is then cut off.
        place = torch.where(mask, mask.cumsum(1) - 1, places)
        blank = facts.new_zeros(len(facts), places + 1)
        indices.append(blank.scatter(1, place, row)[:, :places])
        weights.append(blank.float().scatter(1, place, 1.0)[:, :places])
    return PackedSteps(shape, torch.cat(indices, 1), torch.cat(weights, 1))


def _triple(numbers: list[int]) -> tuple[int, int, int]:
    link, relation, number = numbers
    return link, relation, number


# Dealing items of many lengths to the steps of an epoch, so that nearly all steps have one shape.
#
# Items are sorted by bucket and dealt round-robin. A bucket so rare that dealing it to every step would be mostly
# filler is gathered in a few steps, spread over the epoch, which are like the others but have further segments.

WASTE = 0.01
"""A bucket is dealt to every step if the filler this takes is at most this share of all tokens."""

BUCKET_OVERHEAD = 1 / 8
"""What a further bucket costs a step, in tokens as a share of the batch size: on a GPU the time of its own kernels."""


RARE_TOKENS = 4
"""So many times the tokens of a step's other items may its rare items have: steps with rare items are not compiled."""


class Deal(NamedTuple):
    """A bucket dealt to some steps: `rows` places in each of the first `steps` steps, longest buckets in fewest."""

    first: int  # where its items begin, once items are sorted by bucket
    items: int
    capacity: int
    rows: int
    steps: int


@dataclass(frozen=True)
class Dealing:
    """How all buckets are dealt."""

    steps: int
    deals: tuple[Deal, ...]  # by bucket
    ranges: tuple[tuple[int, int], ...]  # first and last + 1 of steps that get the same buckets, and so one shape
    places: tuple[tuple[int, int], ...]  # for each step of the epoch, its range and its row there

    @classmethod
    def of(cls, capacities: Sequence[int], sizes: Sequence[int], steps: int) -> Dealing:
        """From the buckets' capacities, which never fall, and their numbers of items."""
        deals = _deals(capacities, sizes, steps)
        ends = sorted({deal.steps for deal in deals})
        ranges = tuple(zip([0, *ends], ends, strict=False))
        return cls(steps, tuple(deals), ranges, _spread(ranges, steps))

    def dealt_to(self, end: int) -> list[Deal]:
        """What the steps of the range that ends at `end` get."""
        return [deal for deal in self.deals if deal.steps >= end]


def merged(capacity: Tensor, steps: int, batch_size: int) -> Tensor:
    """(n,) the capacities of items once small buckets have joined larger ones; `capacity` (n,) before."""
    capacities, bucket, sizes = torch.unique(capacity, return_inverse=True, return_counts=True)
    given = merged_capacities(capacities.tolist(), sizes.tolist(), steps * batch_size * BUCKET_OVERHEAD)
    return capacity.new_tensor(given)[bucket]


def dealt(deal: Deal, order: Tensor) -> tuple[Tensor, Tensor]:
    """Items by step and row, (steps, rows) int64, and whether they are real, bool, or filler that repeats one."""
    place = torch.arange(deal.rows * deal.steps, device=order.device).view(deal.rows, deal.steps).t()
    return order[deal.first + place.clamp(max=max(deal.items - 1, 0))], place < deal.items


def _deals(capacities: Sequence[int], sizes: Sequence[int], steps: int) -> list[Deal]:
    """How each bucket is dealt: to every step, or, where that would be mostly filler, to a few."""
    tokens = [size * (1 + capacity) for size, capacity in zip(sizes, capacities, strict=True)]
    fillers = [(-size % steps) * (1 + capacity) for size, capacity in zip(sizes, capacities, strict=True)]
    is_rare = [bucket > 0 and filler > WASTE * sum(tokens) for bucket, filler in enumerate(fillers)]
    rare_tokens = sum(count for count, rare in zip(tokens, is_rare, strict=True) if rare)
    few = min(steps, -(-rare_tokens * steps // (RARE_TOKENS * sum(tokens))))
    deals = []
    for bucket, (capacity, size) in enumerate(zip(capacities, sizes, strict=True)):
        rows = -(-size // (few if is_rare[bucket] else steps))
        used = -(-size // rows) if is_rare[bucket] else steps  # no more steps than its rows can fill
        deals.append(Deal(sum(sizes[:bucket]), size, capacity, rows, used))
    return deals


def _spread(ranges: Sequence[tuple[int, int]], steps: int) -> tuple[tuple[int, int], ...]:
    """For each step of the epoch, its range and row: steps with rare buckets come at even distances."""
    special = ranges[-1][0]
    where = {steps * (2 * step + 1) // (2 * special): step for step in range(special)}
    regular = iter(range(special, steps))
    order = [where[index] if index in where else next(regular) for index in range(steps)]
    group = [g for g, (start, end) in enumerate(ranges) for _ in range(start, end)]
    return tuple((group[step], step - ranges[group[step]][0]) for step in order)
