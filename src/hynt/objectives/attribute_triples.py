"""Attributes and literals: the numbers that training triplets give to entities, for models that know no qualifiers.

An attribute is a relation whose tail is a number in some training triplet. Numbers in qualifiers are not seen.

MT-KGNN takes the stream "attribute triples" so: steps on links and steps on numbers by turns, each with an
optimiser of its own, and a few steps on random attribute triples after each epoch.

A step on numbers takes the head and the tail of random triplets. One network says a number of the head, the other a
number of the tail; an entity that has none counts for nothing.

TransEA takes it so: each triplet once an epoch with a false one beside it, and as
many attribute triples, drawn with replacement.

    L = (1 − α)·mean max(0, γ + score(false) − score(true)) + α·mean |number − its prediction|
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from hynt.batches.buckets import layout_index, layout_of
from hynt.batches.epoch_plan import generator_for
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import mask
from hynt.batches.questions import EntityIds, Grouping, Reader, ScaledNumber, without_qualifiers
from hynt.graph.fact_table import HEAD, TAIL
from hynt.objectives.grouped_questions import GroupedQuestions, GroupedShape
from hynt.objectives.streams import ItemStream, Loss, LossFunction, PlannedEpoch, StepItems

CellReduce = Literal["mean", "last"]


class AttributeCells(NamedTuple):
    """What entities have, each (entity, attribute) once, sorted by entity and then attribute."""

    entity: Tensor  # (cells,) int64
    attribute: Tensor  # (cells,) int64
    value: Tensor  # (cells,) float32 scaled


@dataclass(frozen=True, eq=False)
class AttributeTriples:
    """All (entity, attribute, value) of the training triplets, in the order of the facts."""

    entities: int
    count: int  # attributes; at least 1, so that a graph without numbers needs no other shapes
    of_relation: Tensor  # (relations + 1,) int64 attribute of each relation; 0 where it is none
    is_attribute: Tensor  # (relations + 1,) bool
    entity: Tensor  # (n,) int64
    attribute: Tensor  # (n,) int64
    value: Tensor  # (n,) float32 scaled

    @classmethod
    def of(cls, facts: FactTensors) -> AttributeTriples:
        """Those of the facts whose tail is a number; relations with such tails become attributes 0, 1, …."""
        numbers = facts.tail_is_number
        relation = facts.relation[numbers].long()
        is_attribute = torch.zeros(facts.sizes.relations + 1, dtype=torch.bool, device=facts.device)
        is_attribute[relation] = True
        of_relation = (is_attribute.long().cumsum(0) - 1).clamp(min=0) * is_attribute
        return cls(
            facts.sizes.entities,
            max(int(is_attribute.sum()), 1),
            of_relation,
            is_attribute,
            facts.head[numbers].long(),
            of_relation[relation],
            facts.tail_number[numbers],
        )

    def cells(self, reduce: CellReduce = "mean") -> AttributeCells:
        """One value for each entity and attribute: the mean of all, or the last in the order of the facts."""
        key, cell = torch.unique(self.entity * self.count + self.attribute, return_inverse=True)
        value = self.value.new_zeros(len(key))
        if reduce == "mean":
            times = torch.bincount(cell, minlength=len(key)).clamp(min=1)
            value = value.index_add(0, cell, self.value) / times
        else:
            order = torch.arange(len(cell), device=cell.device)
            last = order.new_zeros(len(key)).scatter_reduce(0, cell, order, "amax")
            value = self.value[last]
        return AttributeCells(key // self.count, key % self.count, value)

    def table(self, cells: AttributeCells) -> tuple[Tensor, Tensor]:
        """(entities, attributes) float32 values, 0 where an entity has none, and bool where it has one."""
        has = torch.zeros(self.entities, self.count, dtype=torch.bool, device=self.entity.device)
        values = torch.zeros(self.entities, self.count, device=self.entity.device)
        has[cells.entity, cells.attribute] = True
        values[cells.entity, cells.attribute] = cells.value
        return values, has

    def means(self) -> Tensor:
        """(attributes,) float32 mean value of each attribute."""
        times = torch.bincount(self.attribute, minlength=self.count).clamp(min=1)
        return self.value.new_zeros(self.count).index_add(0, self.attribute, self.value) / times


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


DRAWS = 50
"""How often a false triplet that turns out to be a training triplet is drawn again, before it is left out."""


@dataclass(frozen=True, eq=False)
class TranslatedEpoch:
    """An epoch, shuffled; a step is a slice of every column."""

    batch_size: int
    indices: Tensor  # (4, n) int64: fact, asked position, the false entity, and a fact whose tail is a number
    weights: Tensor  # (n,) float32 0 where no false triplet was found
    with_numbers: bool

    def __len__(self) -> int:
        return -(-self.indices.shape[1] // self.batch_size)

    def items(self, index: int) -> StepItems:
        """The triplets of a step, and its attribute triples."""
        here = slice(index * self.batch_size, (index + 1) * self.batch_size)
        weights = self.weights[here]
        return StepItems((len(weights), self.with_numbers), (self.indices[:, here], weights))


class TranslatedTriples(ItemStream):
    """The stream of TransEA: links beside false ones, and numbers of entities."""

    name: ClassVar[str] = "attribute triples"
    parts: ClassVar[tuple[str, ...]] = ("link", "number")

    def __init__(self, facts: FactTensors, batch_size: int, margin: float, attribute_weight: float) -> None:
        self.facts = facts = without_qualifiers(facts)
        self.batch_size, self.margin, self.attribute_weight = batch_size, margin, attribute_weight
        joined = torch.nonzero(~facts.tail_is_number).squeeze(1)
        key = self._keys(facts.head[joined].long(), facts.relation[joined].long(), facts.tail_entity[joined].long())
        self.known, which = torch.unique(key, return_inverse=True)  # sorted, so that membership is a binary search
        first = torch.full_like(self.known, len(facts)).scatter_reduce(0, which, joined, "amin")
        self.rows = first  # (n,) a fact for each distinct triplet
        self.numbers = torch.nonzero(facts.tail_is_number).squeeze(1)
        self.item_count = len(self.rows)
        self.tail_chance = _tail_chance(facts, self.rows)

    def epoch(self, seed: int, epoch: int) -> TranslatedEpoch:
        """Draws all false triplets at once. Everything is drawn on the CPU, so that every device gets the same."""
        generator, device = generator_for(seed, epoch, "triples"), self.facts.device
        rows = self.rows[torch.randperm(self.item_count, generator=generator).to(device)]
        coin = torch.rand(self.item_count, generator=generator, dtype=torch.float64).to(device)
        asked = torch.where(coin < self.tail_chance[self.facts.relation[rows].long()], TAIL, HEAD)
        false, found = self._false(rows, asked, generator)
        with_numbers = len(self.numbers) > 0
        numbers = rows
        if with_numbers:
            drawn = torch.randint(len(self.numbers), (self.item_count,), generator=generator)
            numbers = self.numbers[drawn.to(device)]
        return TranslatedEpoch(self.batch_size, torch.stack([rows, asked, false, numbers]), found.float(), with_numbers)

    def is_common(self, shape: Hashable) -> bool:
        """All steps but the last have this shape."""
        return isinstance(shape, tuple) and shape[0] == min(self.batch_size, self.item_count)

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Asks for the exchanged place of each triplet and compares the true answer with the false one."""
        assert isinstance(shape, tuple)
        rows, with_numbers = shape
        facts, margin, share = self.facts, self.margin, self.attribute_weight
        layout = layout_of([(rows, 0)])
        at = layout_index(layout, facts.device)

        def loss(model: Reader, tensors: tuple[Tensor, ...]) -> Loss:
            (row, asked, false, numeric), weights = tensors
            batch, answers = mask(facts, row, asked, layout, at)
            scores = model.score(model.read(batch), EntityIds(torch.stack([answers.entity, false], 1))).float()
            links = (torch.relu(margin + scores[:, 1] - scores[:, 0]) * weights).sum()
            link_count = weights.sum()
            numbers, number_count = links.new_zeros(()), links.new_zeros(())
            if with_numbers:
                batch, answers = mask(facts, numeric, torch.full_like(numeric, TAIL), layout, at)
                predicted = model.score(model.read(batch), ScaledNumber()).float()
                numbers = (predicted - answers.number).abs().sum()
                number_count = number_count + float(rows)
            total = (1 - share) * links / link_count.clamp(min=1) + share * numbers / number_count.clamp(min=1)
            return Loss(total, torch.stack([links, numbers]), torch.stack([link_count, number_count]))

        return loss

    def _false(self, rows: Tensor, asked: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(n,) entities that make no training triplet in place of the asked one, and (n,) whether one was found."""
        facts, entities = self.facts, self.facts.sizes.entities
        head, relation, tail = (x[rows].long() for x in (facts.head, facts.relation, facts.tail_entity))
        false = torch.zeros_like(rows)
        open_ = torch.arange(len(rows), device=rows.device)
        for _ in range(DRAWS):
            drawn = torch.randint(entities, (len(open_),), generator=generator).to(rows.device)
            false[open_] = drawn
            at_head = asked[open_] == HEAD
            key = self._keys(
                torch.where(at_head, drawn, head[open_]), relation[open_], torch.where(at_head, tail[open_], drawn)
            )
            place = torch.searchsorted(self.known, key).clamp(max=len(self.known) - 1)
            open_ = open_[self.known[place] == key]
            if not len(open_):
                break
        found = torch.ones_like(rows, dtype=torch.bool)
        found[open_] = False
        return false, found

    def _keys(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        sizes = self.facts.sizes
        return (relation * sizes.entities + head) * sizes.entities + tail


def _tail_chance(facts: FactTensors, rows: Tensor) -> Tensor:
    """(relations + 1,) how likely the tail is exchanged: more so where a tail has many heads, so that a false triplet
    is seldom a missing true one ("bern").

    With n triplets, n/heads tails a head and n/tails heads a tail, the share of the latter is heads/(heads + tails).
    """
    relation, size = facts.relation[rows].long(), facts.sizes.relations + 1

    def distinct(column: Tensor) -> Tensor:
        pairs = torch.unique(relation * facts.sizes.entities + column[rows].long())
        return torch.bincount(pairs // facts.sizes.entities, minlength=size).double()

    heads, tails = distinct(facts.head), distinct(facts.tail_entity)
    return heads / (heads + tails).clamp(min=1)
