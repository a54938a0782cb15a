"""The stream "facts with negatives": every fact once an epoch, and beside it the same fact with a component exchanged.

All negatives of an epoch are drawn at once, before it begins: what is drawn follows from (seed, epoch) alone, draws
that happen to be true are repeated without holding up a step, and steps have static shapes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, NamedTuple, Protocol

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.buckets import BatchLayout, layout_index, layout_of
from hynt.batches.corruption import Corrupter, Corruption, Exchange, LossKind, Pool, relation_at, value_at
from hynt.batches.epoch_plan import EpochPlanner, PlannedSteps, generator_for
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import AskableComponents, MaskedBatch, Task, fill, mask
from hynt.objectives.streams import ItemStream, Loss, LossFunction, Phase, PhaseSettings, StepItems, trainable


class FactScorer(Protocol):
    """A model that says how true a whole fact is: what this stream trains."""

    def score_facts(self, batch: MaskedBatch, real: Tensor) -> Tensor:
        """(rows,) how true each fact is, in a batch that masks nothing. `real` (rows,) bool is false for filler, which
        must not reach statistics of the batch.
        """
        ...


class NegativeSettings(Protocol):
    """What such a model's settings say about its negatives."""

    @property
    def negatives(self) -> int: ...
    @property
    def relation_share(self) -> float | None: ...
    @property
    def pool(self) -> Pool: ...
    @property
    def loss(self) -> LossKind: ...


def negative_phases(
    model: nn.Module, own: NegativeSettings, train: FactTensors, settings: PhaseSettings
) -> list[Phase]:
    """One phase: true facts beside false ones made from them."""
    corruption = Corruption(own.negatives, own.relation_share, pool=own.pool, loss=own.loss)
    return [Phase(NegativeFacts(train, settings.batch_size, corruption), trainable(model), settings.epochs)]


def logistic_loss(scores: Tensor) -> Tensor:
    """(1 + negatives, rows) −log σ(score) of facts, in the first row, and −log σ(−score) of their negatives."""
    return torch.cat([functional.softplus(-scores[:1]), functional.softplus(scores[1:])])


def softmax_loss(scores: Tensor, weight: Tensor) -> Tensor:
    """(rows,) −log of the share that facts, in the first of (1 + negatives, rows) scores, have of the exponentials of
    their column; those of weight 0 have no part in it.
    """
    shown = scores.masked_fill(weight == 0, float("-inf"))
    return torch.logsumexp(torch.cat([scores[:1], shown[1:]]), 0) - scores[0]


class NegativeShape(NamedTuple):
    """All that decides the shapes of a step."""

    layout: BatchLayout  # of facts alone; the batch that a model sees has each segment 1 + negatives times
    negatives: int

    def doubled(self) -> BatchLayout:
        """The layout with facts and their negatives: in each segment first the facts, then each set of negatives."""
        return layout_of((rows * (1 + self.negatives), capacity) for rows, capacity in self.layout.segments)


class _NegativeSteps(NamedTuple):
    """The steps of one shape."""

    shape: NegativeShape
    indices: Tensor  # (steps, 4, batch rows) int64: fact, position, and the entity and the relation to stand there
    weights: Tensor  # (steps, batch rows) float32: 1, or 0 for filler


class NegativeEpoch:
    """The steps of an epoch with their negatives."""

    def __init__(self, groups: list[_NegativeSteps], order: tuple[tuple[int, int], ...]) -> None:
        self.groups, self.order = groups, order

    def __len__(self) -> int:
        return len(self.order)

    def items(self, index: int) -> StepItems:
        """Facts, what to exchange, and weights."""
        group, row = self.order[index]
        shape, indices, weights = self.groups[group]
        return StepItems(shape, (indices[row], weights[row]))


class NegativeFacts(ItemStream):
    """Training items of models that tell true facts from false ones."""

    name: ClassVar[str] = "facts with negatives"
    parts: ClassVar[tuple[str, ...]] = ("fact",)

    def __init__(self, facts: FactTensors, batch_size: int, corruption: Corruption) -> None:
        self.facts, self.corruption = facts, corruption
        self.item_count = len(facts)
        self.components = AskableComponents.of(facts)
        self.planner = EpochPlanner(facts.qualifier_counts(), batch_size)
        self.corrupter = Corrupter(facts, corruption)

    def epoch(self, seed: int, epoch: int) -> NegativeEpoch:
        """Deals the facts to steps and draws their negatives."""
        luck = self.planner.luck(seed, epoch, "masking")
        asked, task = self.components.drawn(luck[0])
        plan = self.planner.deal(luck[1], task, len(Task))
        generator = generator_for(seed, epoch, "negatives")
        return NegativeEpoch([self._with_negatives(group, asked, generator) for group in plan.groups], plan.places)

    def is_common(self, shape: Hashable) -> bool:
        """Steps with rare long facts are few: they are not worth a minute of compiling."""
        return isinstance(shape, NegativeShape) and shape.layout == self.planner.regular.layout

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Scores facts and negatives in one batch and sets each fact against its own."""
        assert isinstance(shape, NegativeShape)
        facts, layout = self.facts, shape.doubled()
        at = layout_index(layout, facts.device)
        order = _by_set(shape).to(facts.device)
        is_choice = self.corruption.loss == "softmax"

        def loss(model: FactScorer, tensors: tuple[Tensor, ...]) -> Loss:
            (rows, asked, entity, relation), weights = tensors
            batch, _ = mask(facts, rows, asked, layout, at)
            scores = model.score_facts(fill(batch, entity, relation), weights > 0).float()[order]
            weight = weights[order]  # (1 + negatives, rows)
            # A fact for which no draw was false has nothing to be set against.
            weight = torch.cat([weight[:1] * (weight[1:].sum(0, keepdim=True) > 0), weight[1:]])
            if is_choice:
                each, weight = softmax_loss(scores, weight), weight[0]
            else:
                each = logistic_loss(scores)
            total, count = (each * weight).sum(), weight.sum()
            return Loss(total / count.clamp(min=1), total.unsqueeze(0), count.unsqueeze(0))

        return loss

    def _with_negatives(self, steps: PlannedSteps, asked: Tensor, generator: torch.Generator) -> _NegativeSteps:
        pieces, rows, real = steps
        count = self.corruption.negatives
        shape, size = NegativeShape(pieces.layout, count), pieces.layout.rows
        repeated = rows.repeat(1, count)
        # To be chosen among, negatives of a fact must answer the same question: they exchange the same component.
        questions = 1 if self.corruption.loss == "softmax" else count
        by_step = self.corruption.coin == "step"
        coins = torch.rand(len(rows), 1 if by_step else questions * size, generator=generator, dtype=torch.float64)
        where = torch.rand(len(rows), questions * size, generator=generator, dtype=torch.float64)
        of_relation = coins.to(rows.device) < self.corrupter.relation_share
        exchange, false = self.corrupter.draw(
            repeated.flatten(),
            _for_each_set(of_relation, repeated).flatten(),
            _for_each_set(where.to(rows.device), repeated).flatten(),
            generator,
        )
        # The facts themselves are filled with what they had: any position serves.
        own = self._own(rows.flatten(), asked[rows].flatten())
        columns = [
            torch.cat([mine.view(rows.shape), other.view(repeated.shape)], 1)
            for mine, other in (
                (rows, repeated),
                (own.asked, exchange.asked),
                (own.entity, exchange.entity),
                (own.relation, exchange.relation),
            )
        ]
        weights = torch.cat([real, real.repeat(1, count) * false.view(repeated.shape)], 1)
        inverse = torch.argsort(_by_set(shape).flatten()).to(rows.device)
        return _NegativeSteps(shape, torch.stack(columns, 1)[:, :, inverse], weights[:, inverse])

    def _own(self, rows: Tensor, asked: Tensor) -> Exchange:
        """What stands at a position of a fact anyway."""
        return Exchange(asked, value_at(self.facts, rows, asked), relation_at(self.facts, rows, asked))


def _for_each_set(drawn: Tensor, repeated: Tensor) -> Tensor:
    """(steps, sets × rows) what was drawn for each step, for each row of one set, or for each of all."""
    return drawn.expand_as(repeated) if drawn.shape[1] == 1 else drawn.repeat(1, repeated.shape[1] // drawn.shape[1])


def _by_set(shape: NegativeShape) -> Tensor:
    """(1 + negatives, rows) int64: where the batch holds the facts, and then each set of negatives, fact by fact."""
    found, start = [], 0
    for rows, _ in shape.layout.segments:
        block = torch.arange(rows * (1 + shape.negatives)).view(1 + shape.negatives, rows)
        found.append(start + block)
        start += block.numel()
    return torch.cat(found, 1)
