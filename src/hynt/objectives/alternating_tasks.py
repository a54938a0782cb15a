"""The stream "attribute triples" as MT-KGNN takes it: steps on links and steps on numbers by turns, each with an
optimiser of its own, and a few steps on random attribute triples after each epoch.

A step on numbers takes the head and the tail of random triplets. One network says a number of the head, the other a
number of the tail; an entity that has none counts for nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from hynt.batches.attribute_triples import AttributeTriples
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.question_groups import Grouping
from hynt.batches.questions import Reader
from hynt.batches.seeds import generator_for
from hynt.objectives.grouped_questions import GroupedQuestions, GroupedShape
from hynt.objectives.streams import ItemStream, Loss, LossFunction, PlannedEpoch, StepItems


class NumberNetworks(Reader, Protocol):
    """A model with a network for the numbers of heads and one for those of tails: what this stream trains."""

    def numbers_of_heads(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) scaled numbers."""
        ...

    def numbers_of_tails(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) scaled numbers."""
        ...


class NumberShape(NamedTuple):
    """The shape of a step on numbers."""

    rows: int


class AlternatingEpoch:
    """Links, numbers, links, numbers, …, and then the steps on numbers that are left."""

    def __init__(self, links: PlannedEpoch, chosen: Tensor, weights: Tensor) -> None:
        self.links = links
        self.chosen = chosen  # (steps, 2, rows) int64 attribute triples of heads and of tails
        self.weights = weights  # (steps, 2, rows) float32 0 where the entity has none

    def __len__(self) -> int:
        return len(self.links) + len(self.chosen)

    def items(self, index: int) -> StepItems:
        """The items of step `index`: links and numbers in turn, and what is left of the longer at the end."""
        turn, on_numbers = divmod(index, 2)
        if not len(self.chosen):
            return self.links.items(index)
        if turn >= len(self.links):
            turn, on_numbers = index - len(self.links), 1
        if not on_numbers:
            return self.links.items(turn)
        return StepItems(NumberShape(self.chosen.shape[2]), (self.chosen[turn], self.weights[turn]))


class AlternatingTasks(ItemStream):
    """The stream of MT-KGNN: steps on links and steps on attribute triples in turn."""

    name: ClassVar[str] = "attribute triples"
    parts: ClassVar[tuple[str, ...]] = ("link", "number")

    def __init__(self, facts: FactTensors, batch_size: int, smoothing: float, attribute_steps: int) -> None:
        self.links = GroupedQuestions(facts, batch_size, Grouping(qualifiers=False), smoothing)
        self.batch_size, self.attribute_steps = batch_size, attribute_steps
        self.item_count = self.links.item_count
        self.triples = AttributeTriples.of(facts)
        joined = ~facts.tail_is_number
        self.ends = torch.stack([facts.head[joined], facts.tail_entity[joined]]).long()  # (2, triplets)
        self.by_entity = torch.argsort(self.triples.entity, stable=True)  # attribute triples, entity by entity
        self.counts = torch.bincount(self.triples.entity, minlength=facts.sizes.entities)
        self.starts = self.counts.cumsum(0) - self.counts

    def epoch(self, seed: int, epoch: int) -> AlternatingEpoch:
        """Draws the numbers of all steps at once."""
        links, device = self.links.epoch(seed, epoch), self.ends.device
        generator = generator_for(seed, epoch, "attributes")
        if not len(self.by_entity):
            nothing = torch.zeros(0, 2, self.batch_size, device=device)
            return AlternatingEpoch(links, nothing.long(), nothing)
        triplet = torch.randint(self.ends.shape[1], (len(links), self.batch_size), generator=generator).to(device)
        entity = self.ends[:, triplet].transpose(0, 1)  # (steps, 2, rows)
        share = torch.rand(entity.shape, generator=generator, dtype=torch.float64).to(device)
        count = self.counts[entity]
        own = self.starts[entity] + (share * count).long()
        chosen = self.by_entity[own.clamp(max=len(self.by_entity) - 1)]
        after = (self.attribute_steps, 2, self.batch_size)
        random = torch.randint(len(self.by_entity), after, generator=generator).to(device)
        weights = torch.cat([(count > 0).float(), torch.ones(after, device=device)])
        return AlternatingEpoch(links, torch.cat([chosen, random]), weights)

    def is_common(self, shape: Hashable) -> bool:
        """Steps on numbers all have one shape."""
        return isinstance(shape, NumberShape) or self.links.is_common(shape)

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Links or numbers, as the shape says."""
        return self._link_loss(shape) if isinstance(shape, GroupedShape) else self._number_loss()

    def _link_loss(self, shape: GroupedShape) -> LossFunction:
        of_links = self.links.loss_for(shape)

        def loss(model: NumberNetworks, tensors: tuple[Tensor, ...]) -> Loss:
            total, sums, counts, _ = of_links(model, tensors)
            nothing = torch.zeros_like(sums)
            return Loss(total, torch.cat([sums, nothing]), torch.cat([counts, nothing]))

        return loss

    def _number_loss(self) -> LossFunction:
        triples = self.triples

        def loss(model: NumberNetworks, tensors: tuple[Tensor, ...]) -> Loss:
            chosen, weights = tensors
            entity, attribute, value = triples.entity[chosen], triples.attribute[chosen], triples.value[chosen]
            of_heads = model.numbers_of_heads(entity[0], attribute[0])
            of_tails = model.numbers_of_tails(entity[1], attribute[1])
            squares = (torch.stack([of_heads, of_tails]).float() - value).square() * weights
            sums, counts = squares.sum(1), weights.sum(1)
            total = (sums / counts.clamp(min=1)).sum()
            nothing = sums.new_zeros(1)
            return Loss(
                total,
                torch.cat([nothing, sums.sum(0, keepdim=True)]),
                torch.cat([nothing, counts.sum(0, keepdim=True)]),
                second=True,
            )

        return loss
