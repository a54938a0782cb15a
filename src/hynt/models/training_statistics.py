"""Counts and means of a training split: all that the trivial reference models know, and what these models share."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hynt.batches.fact_slots import HEAD_ROLE, QUALIFIER_ROLE, ROLES, TAIL_ROLE
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import Task
from hynt.models.contract import EVERYWHERE, Capability, Part
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings

NUMBERS: frozenset[Capability] = frozenset(pair for pair in EVERYWHERE if pair[0] is Task.NUMBER)


class MadeAtOnce(nn.Module):
    """A statistic: it learns nothing by steps, and what it knows are tables of counts and means."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = ()
    reads: ClassVar[frozenset[Part]] = frozenset()

    def __init__(self, sizes: Sizes, **tables: Tensor) -> None:
        super().__init__()
        self.sizes = sizes
        for name, table in tables.items():
            self.register_buffer(name, table)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:  # noqa: ARG002
        """No phases: the model is made from the training facts at once."""
        return []


class TrainingNumbers(NamedTuple):
    """All numbers of some facts: tails, then qualifier values."""

    head: Tensor  # (k,) int64 the head entity of the fact that holds it
    relation: Tensor  # (k,) int64
    value: Tensor  # (k,) float64 scaled


class NeighbourSums(NamedTuple):
    """For the pairs of a relation and an entity whose neighbours have numbers of that relation."""

    key: Tensor  # (p,) int64 relation × entities + entity, ascending
    numbers: Tensor  # (p,) float64 how many numbers the neighbours have
    total: Tensor  # (p,) float64 their sum


NO_SUMS = NeighbourSums(torch.zeros(0, dtype=torch.int64), *torch.zeros(2, 0, dtype=torch.float64))


class AnswerCounts(NamedTuple):
    """For each place, relation × ROLES + (head, tail or qualifier value): the entities seen there."""

    offsets: Tensor  # ((relations + 1) × ROLES + 1,) int64
    entity: Tensor  # (e,) int64
    times: Tensor  # (e,) float32 how often


def numbers_of(facts: FactTensors) -> TrainingNumbers:
    facts = facts.to("cpu")
    owner = torch.repeat_interleave(torch.arange(len(facts)), facts.qualifier_counts())
    tails, values = facts.tail_is_number, facts.qualifier_is_number[:-1]
    return TrainingNumbers(
        torch.cat([facts.head[tails], facts.head[owner[values]]]).long(),
        torch.cat([facts.relation[tails], facts.qualifier_relation[:-1][values]]).long(),
        torch.cat([facts.tail_number[tails], facts.qualifier_number[:-1][values]]).double(),
    )


def relation_means(facts: FactTensors) -> Tensor:
    """(relations + 1,) float64 mean of each relation's numbers; where it has none, and for the masked one, of all."""
    numbers, size = numbers_of(facts), facts.sizes.relations + 1
    count = torch.bincount(numbers.relation, minlength=size)
    total = torch.bincount(numbers.relation, numbers.value, minlength=size)
    overall = numbers.value.mean() if len(numbers.value) else torch.tensor(0.5, dtype=torch.float64)
    return torch.where(count > 0, total / count.clamp(min=1), overall)


def number_ranges(facts: FactTensors) -> Tensor:
    """(2, relations + 1) float32 the least and the greatest of each relation's numbers; endless where it has none."""
    numbers, size = numbers_of(facts), facts.sizes.relations + 1
    found = torch.stack([torch.full((size,), float("inf")), torch.full((size,), float("-inf"))])
    value = numbers.value.float()
    found[0].scatter_reduce_(0, numbers.relation, value, "amin")
    found[1].scatter_reduce_(0, numbers.relation, value, "amax")
    return torch.where(found[0] <= found[1], found, -found)


def relation_medians(facts: FactTensors) -> Tensor:
    """(relations + 1,) float64, as `relation_means`, but medians."""
    numbers = numbers_of(facts)
    medians = relation_means(facts)
    for relation in torch.unique(numbers.relation).tolist():
        medians[relation] = float(np.median(numbers.value[numbers.relation == relation].numpy()))
    if len(numbers.value):
        medians[facts.sizes.mask_relation] = float(np.median(numbers.value.numpy()))
    return medians


def neighbour_sums(facts: FactTensors) -> NeighbourSums:
    """Numbers of the entities one or two steps away, over distinct edges of the primary triplets in either direction.

    An entity two steps away counts once for each way there. Steps back to the entity itself are taken off: its own
    numbers are not its neighbours'. One relation at a time, so memory stays at a few columns of entities.
    """
    numbers, entities = numbers_of(facts), facts.sizes.entities
    here, there = _edges(facts)
    degree = torch.bincount(here, minlength=entities).double()

    def step(column: Tensor) -> Tensor:
        return torch.zeros_like(column).index_add_(0, here, column[there])

    keys, counts, totals = [], [], []
    for relation in torch.unique(numbers.relation).tolist():
        chosen = numbers.relation == relation
        head, value = numbers.head[chosen], numbers.value[chosen]
        near = []
        for own in (torch.bincount(head, minlength=entities).double(), torch.bincount(head, value, minlength=entities)):
            once = step(own)
            near.append(once + step(once) - degree * own)
        met = torch.nonzero(near[0] > 0).squeeze(1)
        keys.append(relation * entities + met)
        counts.append(near[0][met])
        totals.append(near[1][met])
    none = torch.zeros(0, dtype=torch.float64)
    return NeighbourSums(torch.cat([none.long(), *keys]), torch.cat([none, *counts]), torch.cat([none, *totals]))


MOST_SUMS = 2**22
"""Pairs of a relation and an entity that are added up beforehand: with hubs nearly all of them have neighbours with
numbers, so that a table would grow with the relations times the entities.
"""


KEPT_SUMS = 2**24
"""Of entities' own and nearest numbers that are kept from one question to the next, of the relations with most."""


def are_too_many(facts: FactTensors) -> bool:
    """Whether there may be too many sums for a table."""
    return len(torch.unique(numbers_of(facts).relation)) * facts.sizes.entities > MOST_SUMS


class NeighbourNumbers:
    """What `neighbour_sums` has, added up where it is asked for: it holds the edges and each entity's own numbers."""

    def __init__(self, facts: FactTensors) -> None:
        entities, own = facts.sizes.entities, head_sums(facts)
        here, self._there = _edges(facts)
        degree = torch.bincount(here, minlength=entities)
        self._offsets = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
        relation, self._holder = own.key // entities, own.key % entities
        self._sums = torch.stack([own.numbers, own.total], 1)
        self._of_relation = torch.searchsorted(relation, torch.arange(facts.sizes.relations + 2))
        most = self._of_relation.diff().argsort(descending=True, stable=True)
        self._often, self._kept = set(most[: KEPT_SUMS // max(1, entities)].tolist()), dict[int, Tensor]()

    def at(self, relation: Tensor, entity: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) float64 how many numbers of `relation` (n,) the neighbours of `entity` (n,) have, and their sum."""
        found = torch.zeros(len(relation), 2, dtype=torch.float64)
        asked, counts = torch.unique(relation, return_counts=True)
        for one, rows in zip(asked.tolist(), torch.split(relation.argsort(), counts.tolist()), strict=True):
            who, back = torch.unique(entity[rows], return_inverse=True)
            found[rows] = self._around(one, who)[back]
        return found[:, 0], found[:, 1]

    def _around(self, relation: int, entity: Tensor) -> Tensor:
        """(n, 2) for different entities (n,), by no more work than a few columns of edges."""
        own = slice(int(self._of_relation[relation]), int(self._of_relation[relation + 1]))
        holder, sums = self._holder[own], self._sums[own]
        if not len(holder):
            return torch.zeros(len(entity), 2, dtype=torch.float64)
        once = self._kept.get(relation)
        if once is None:
            of, there = self._neighbours(holder)
            once = torch.zeros(len(self._offsets) - 1, 2, dtype=torch.float64)
            once.index_add_(0, holder, sums).index_add_(0, there, sums[of])
            if relation in self._often:
                self._kept[relation] = once
        of, there = self._neighbours(entity)
        near = torch.zeros(len(entity), 2, dtype=torch.float64).index_add_(0, of, once[there])
        place = torch.searchsorted(holder, entity).clamp(max=len(holder) - 1)
        back = torch.bincount(of, minlength=len(entity)) * (holder[place] == entity)
        return near - back.unsqueeze(1) * sums[place]

    def _neighbours(self, entity: Tensor) -> tuple[Tensor, Tensor]:
        """(k,) which of the entities (n,), and (k,) a neighbour of it."""
        low, lengths = self._offsets[entity], self._offsets[entity + 1] - self._offsets[entity]
        of = torch.repeat_interleave(torch.arange(len(entity)), lengths)
        return of, self._there[torch.arange(len(of)) - (lengths.cumsum(0) - lengths)[of] + low[of]]


def head_sums(facts: FactTensors) -> NeighbourSums:
    """The numbers that entities themselves have, as `neighbour_sums` has those of their neighbours."""
    numbers = numbers_of(facts)
    key, place = torch.unique(numbers.relation * facts.sizes.entities + numbers.head, return_inverse=True)
    total = torch.zeros(len(key), dtype=torch.float64).index_add_(0, place, numbers.value)
    return NeighbourSums(key, torch.bincount(place, minlength=len(key)).double(), total)


def pair_counts(facts: FactTensors) -> AnswerCounts:
    """For each entity the entities it shares facts with, and as ids above theirs the relations that it stands beside;
    for each relation, from the id above a masked entity on, the relations that qualify it or that it qualifies.

    Values of qualifiers are in the company of head and tail, not of one another: the work grows with the facts' length.
    """
    facts = facts.to("cpu")
    entities, relations = facts.sizes.entities, facts.sizes.relations
    owner = torch.repeat_interleave(torch.arange(len(facts)), facts.qualifier_counts())
    head, tail, relation = facts.head.long(), facts.tail_entity.long(), facts.relation.long() + entities
    has_tail, has_value = ~facts.tail_is_number, ~facts.qualifier_is_number[:-1]
    value, beside = facts.qualifier_entity[:-1].long(), facts.qualifier_relation[:-1].long() + entities
    both = has_value & has_tail[owner]
    pairs = [
        (head[has_tail], tail[has_tail]),
        (head[owner][has_value], value[has_value]),
        (tail[owner][both], value[both]),
    ]
    pairs += [(there, here) for here, there in pairs]
    pairs += [
        (head, relation),
        (tail[has_tail], relation[has_tail]),
        (head[owner], beside),
        (tail[owner][has_tail[owner]], beside[has_tail[owner]]),
        (value[has_value], beside[has_value]),
        (relation[owner] + 1, beside),
        (beside + 1, relation[owner]),
    ]
    kinds = entities + relations
    keys = torch.cat([here * kinds + there for here, there in pairs])
    key, count = torch.unique(keys, return_counts=True)
    per_token = torch.bincount(key // kinds, minlength=kinds + 2)  # masked ones have no company
    return AnswerCounts(torch.cat([per_token.new_zeros(1), per_token.cumsum(0)]), key % kinds, count.float())


def answer_counts(facts: FactTensors) -> AnswerCounts:
    """How often train answers each place with each entity."""
    facts = facts.to("cpu")
    entities, places = facts.sizes.entities, (facts.sizes.relations + 1) * ROLES
    tails, values = ~facts.tail_is_number, ~facts.qualifier_is_number[:-1]
    place = torch.cat(
        [
            facts.relation.long() * ROLES + HEAD_ROLE,
            facts.relation[tails].long() * ROLES + TAIL_ROLE,
            facts.qualifier_relation[:-1][values].long() * ROLES + QUALIFIER_ROLE,
        ]
    )
    entity = torch.cat([facts.head, facts.tail_entity[tails], facts.qualifier_entity[:-1][values]]).long()
    key, count = torch.unique(place * entities + entity, return_counts=True)
    per_place = torch.bincount(key // entities, minlength=places)
    offsets = torch.cat([per_place.new_zeros(1), per_place.cumsum(0)])
    return AnswerCounts(offsets, key % entities, count.float())


def relation_counts(facts: FactTensors) -> Tensor:
    """(2, relations) float32 how often each relation stands in a primary triplet, and in a qualifier."""
    facts = facts.to("cpu")
    columns = (facts.relation, facts.qualifier_relation[:-1])
    return torch.stack([torch.bincount(column.long(), minlength=facts.sizes.relations).float() for column in columns])


def _edges(facts: FactTensors) -> tuple[Tensor, Tensor]:
    """Pairs of different entities that a primary triplet joins, each once in either direction."""
    facts = facts.to("cpu")
    joined = ~facts.tail_is_number
    head, tail = facts.head[joined].long(), facts.tail_entity[joined].long()
    keys = torch.cat([head * facts.sizes.entities + tail, tail * facts.sizes.entities + head])
    keys = torch.unique(keys)
    here, there = keys // facts.sizes.entities, keys % facts.sizes.entities
    different = here != there
    return here[different], there[different]
