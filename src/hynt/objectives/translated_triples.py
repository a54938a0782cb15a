"""The stream "attribute triples" as TransEA takes it: each triplet once an epoch with a false one beside it, and as
many attribute triples, drawn with replacement.

    L = (1 − α)·mean max(0, γ + score(false) − score(true)) + α·mean |number − its prediction|
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from hynt.batches.buckets import layout_index, layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masking import mask
from hynt.batches.question_groups import without_qualifiers
from hynt.batches.questions import EntityIds, Reader, ScaledNumber
from hynt.batches.seeds import generator_for
from hynt.graph.fact_table import HEAD, TAIL
from hynt.objectives.streams import ItemStream, Loss, LossFunction, StepItems

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
