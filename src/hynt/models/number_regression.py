"""A number by least squares from other numbers of the training facts: a statistic, made at once.

Each relation has its own few weights. They weigh the means of its numbers beside the same relation, head, tail or
qualifier, what the head's neighbours say, the mean of those that the head's other facts leave free: of ranks 1 to 10,
say, 4 and 7, what other numbers the fact itself holds, of an office's end, say, its beginning, and what other numbers
the head has in other facts, or its neighbours have: of a country's area its population and its exports. All leave out
the number that is asked for and those of its fact, so that what is fitted on the training facts holds for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.models.contract import Candidates, Capability, EncodedQuestion, Part, ScaledNumber
from hynt.models.number_neighbours import Estimates, NumberNeighbours
from hynt.models.training_statistics import (
    NUMBERS,
    MadeAtOnce,
    NeighbourNumbers,
    NeighbourSums,
    are_too_many,
    head_sums,
    neighbour_sums,
    numbers_of,
    relation_means,
)

OTHERS = 128
"""The head's numbers are read for so many relations, those with most numbers."""
FITTED_ON = 20_000
"""Numbers of a relation that its weights are fitted on, at most."""
FITTED_LATER = 10**6
"""Training numbers that are kept until each relation is asked about; with more of them all weights are made at once."""
STRENGTH = 5.0
"""How strongly weights are drawn to 0: as so many numbers would."""
SMALLEST = 1e-6
"""What differs by less says nothing."""


class _Context(NamedTuple):
    """Where numbers stand, (n,) int64 each."""

    relation: Tensor  # beside the number
    primary: Tensor  # of the fact's triplet
    head: Tensor
    tail: Tensor  # the masked entity where it is a number
    qualifier: Tensor  # relation × (entities + 1) + entity, the least of the fact's; `_NONE` without one
    in_qualifier: Tensor  # 0 or 1


_NONE = 2**62


@dataclass(frozen=True, eq=False)
class NumberQuestion(EncodedQuestion):
    """A question for a number, and where it stands."""

    context: Tensor  # (rows, 6) int64 the columns of `_Context`
    beside: Tensor  # (rows, 2, others) float64 sums and counts, as `_Beside` has them


class _Beside(NamedTuple):
    """What other numbers stand in the same facts: by relation, as far as `_others` names it."""

    total: Tensor  # (n, others) float64 of what they differ from their relation's mean, in units of its spread
    numbers: Tensor  # (n, others) float64 how many


class _Means(NamedTuple):
    """Sums of what numbers differ from their relation's mean, by key."""

    key: Tensor  # (k,) int64, ascending
    numbers: Tensor  # (k,) float64 how many
    total: Tensor  # (k,) float64

    @classmethod
    def of(cls, key: Tensor, value: Tensor) -> _Means:
        keys, place = torch.unique(key, return_inverse=True)
        total = torch.zeros(len(keys), dtype=torch.float64).index_add_(0, place, value)
        return cls(keys, torch.bincount(place, minlength=len(keys)).double(), total)

    def at(self, key: Tensor, own: Tensor | None = None, count: Tensor | float = 1.0) -> Tensor:
        """(n,) the means at (n,) keys, drawn to 0 as by one number more; without `own`, (n,) sums of so many."""
        if not len(self.key):
            return torch.zeros(len(key), dtype=torch.float64)
        place = torch.searchsorted(self.key, key).clamp(max=len(self.key) - 1)
        met = self.key[place] == key
        left, less = (0.0, 0.0) if own is None else (count, own)
        return torch.where(met, (self.total[place] - less) / (self.numbers[place] - left + 1), 0.0)


class _NearMeans(NamedTuple):
    """The same of the numbers of neighbours, added up where they are asked for."""

    near: NeighbourNumbers
    mean: Tensor  # (relations + 1,) float64
    entities: int

    def at(self, key: Tensor) -> Tensor:
        """(n,) the means at (n,) keys, relation × entities + entity, drawn to 0 as by one number more."""
        relation = key // self.entities
        numbers, total = self.near.at(relation, key % self.entities)
        return torch.where(numbers > 0, (total - numbers * self.mean[relation]) / (numbers + 1), 0.0)


class _Free:
    """Which numbers of a relation, beside the same primary one, no other fact of the head holds: ranks, say, that are
    given once each.
    """

    def __init__(self, kind: Tensor, group: Tensor, apart: Tensor) -> None:
        """Of training numbers, (n,) each: relation and primary relation, the same with the head, and the number."""
        self._kind, of_kind = torch.unique(kind, return_inverse=True)
        self._group, of_group = torch.unique(group, return_inverse=True)
        value, at = torch.unique(apart, return_inverse=True)
        self._apart = apart
        _, same, times = torch.unique(of_kind * len(value) + at, return_inverse=True, return_counts=True)
        self._often = times[same].double()  # the kind has each of these numbers
        self._all = self._sums(of_kind, torch.ones_like(apart), len(self._kind))
        _, same, times = torch.unique(of_group * len(value) + at, return_inverse=True, return_counts=True)
        self._once = times[same] == 1  # the head has each of these numbers
        self._taken = self._sums(of_group, self._often / times[same], len(self._group))

    def _sums(self, at: Tensor, weight: Tensor, size: int) -> Tensor:
        """(size, 2) of weights, and of the numbers times these."""
        found = torch.zeros(size, 2, dtype=torch.float64)
        return found.index_add_(0, at, torch.stack([weight, weight * self._apart], 1))

    def mean(self, kind: Tensor, group: Tensor, rows: Tensor | None) -> Tensor:
        """(n,) of what is free, by how often there is each; without these training numbers themselves."""
        found = _row(self._kind, kind, self._all) - _row(self._group, group, self._taken)
        if rows is not None:
            # Where the head has it once, all but one of them are free without it; elsewhere it was not free.
            less = torch.where(self._once[rows], 1 - self._often[rows], 0.0)
            found = found - torch.stack([less, less * self._apart[rows]], 1)
        return torch.where(found[:, 0] > 0.5, found[:, 1] / found[:, 0].clamp(min=1.0), 0.0)


def _row(keys: Tensor, key: Tensor, table: Tensor) -> Tensor:
    """(n, columns) the table's rows at (n,) keys, of which it has one for each of `keys`, ascending; else 0."""
    if not len(keys):
        return table.new_zeros(len(key), table.shape[1])
    place = torch.searchsorted(keys, key).clamp(max=len(keys) - 1)
    return torch.where((keys[place] == key).unsqueeze(1), table[place], 0.0)


class NumberRegression(MadeAtOnce):
    """A number is what least squares make of other numbers."""

    _training: tuple[_Context, Tensor, Tensor]

    answers: ClassVar[frozenset[Capability]] = NUMBERS
    reads: ClassVar[frozenset[Part]] = frozenset({Part.QUALIFIERS})

    def __init__(self, facts: FactTensors) -> None:
        facts = facts.to("cpu")
        super().__init__(facts.sizes)
        self._mean = relation_means(facts)
        context, value, fact = _of_facts(facts)
        apart = value - self._mean[context.relation]
        groups = facts.sizes.relations + 1
        counts = torch.bincount(context.relation, minlength=groups)
        square = torch.bincount(context.relation, apart.square(), minlength=groups)
        self._spread = (square / counts.clamp(min=1)).sqrt() + SMALLEST
        self._others = counts.argsort(descending=True, stable=True)[: min(OTHERS, int((counts > 0).sum()))]
        self._column = torch.full((groups,), len(self._others))  # of what is not among them
        self._column[self._others] = torch.arange(len(self._others))
        self._qualifiers = torch.unique(context.qualifier)
        self._with_qualifier = torch.unique(self._qualified(context))
        self._means = [_Means.of(key, apart) for key in self._keys(context)]
        self._own = self._centred(head_sums(facts))
        self._near, self._neighbours = NumberNeighbours(facts), dict[int, Estimates]()
        self._free = _Free(*self._groups(context), apart)
        self._prepare(context, apart, fact)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: object) -> NumberRegression:  # noqa: ARG003
        """The weights of every relation with numbers in the training facts."""
        return cls(train)

    def read(self, batch: MaskedBatch) -> NumberQuestion:
        """What stands beside the number; a masked one is never looked at."""
        sizes, rows = self.sizes, len(batch)
        tail = torch.where(batch.tail_is_number, sizes.mask_entity, batch.tail_entity)
        qualifier = torch.full((rows,), _NONE, device=batch.head.device)
        if batch.layout.slots:
            known = batch.qualifier_present & ~batch.qualifier_is_number
            key = batch.qualifier_relation * (sizes.entities + 1) + batch.qualifier_entity
            key = torch.where(known, key, _NONE)
            qualifier = qualifier.scatter_reduce(0, batch.places.slot_row, key, "amin")
        relation = batch.asked_relation()
        context = _Context(relation, batch.relation, batch.head, tail, qualifier, batch.asks_qualifier.long())
        seen = batch.tail_is_number & ~batch.tail_number_masked
        of_slot = batch.qualifier_present & batch.qualifier_is_number & ~batch.qualifier_number_masked
        beside = self._of_rows(
            rows,
            torch.cat([torch.nonzero(seen).squeeze(1), batch.places.slot_row[of_slot]]).cpu(),
            torch.cat([batch.relation[seen], batch.qualifier_relation[of_slot]]).cpu(),
            torch.cat([batch.tail_number[seen], batch.qualifier_number[of_slot]]).cpu().double(),
        )
        beside_here = torch.stack(beside, 1).to(batch.tail_number.device)
        return NumberQuestion(batch.tail_number.new_zeros(rows, 0), relation, torch.stack(context, 1), beside_here)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows,) scaled numbers."""
        if not isinstance(candidates, ScaledNumber) or not isinstance(question, NumberQuestion):
            raise ValueError(f"this model answers numbers it has read itself, not {type(candidates).__name__}")
        device, context = question.relation.device, _Context(*question.context.cpu().t().contiguous())
        group = 2 * context.relation + context.in_qualifier
        self._fit(torch.unique(group).tolist())
        weights = self._weights[group]
        beside = _Beside(*question.beside.cpu().unbind(1))
        apart = (self._features(context, beside) * weights).sum(1) * self._spread[context.relation]
        apart = apart.clamp(self._least[context.relation], self._most[context.relation])
        return (self._mean[context.relation] + apart).float().to(device)

    def _prepare(self, context: _Context, apart: Tensor, fact: Tensor) -> None:
        groups = len(self._mean)
        self._weights = torch.zeros(2 * groups, len(self._means) + 3 + 2 * len(self._others), dtype=torch.float64)
        self._least, self._most = (torch.zeros(groups, dtype=torch.float64) for _ in range(2))
        self._least.scatter_reduce_(0, context.relation, apart, "amin")
        self._most.scatter_reduce_(0, context.relation, apart, "amax")
        group = 2 * context.relation + context.in_qualifier
        parts = torch.split(group.argsort(stable=True), torch.bincount(group).tolist())
        self._training, self._unfitted = (context, apart, fact), {n: rows for n, rows in enumerate(parts) if len(rows)}
        if len(apart) > FITTED_LATER:
            self._fit(list(self._unfitted))
            del self._training

    def _fit(self, groups: list[int]) -> None:
        """Makes the weights of relations, where they are not made yet: most questions are about few of them."""
        for group in groups:
            rows = self._unfitted.get(group)
            if rows is None:
                continue
            context, apart, fact = self._training
            rows = rows[:: -(-len(rows) // FITTED_ON)]
            some, own = _Context(*(one[rows] for one in context)), apart[rows]
            features = self._features(some, self._in_same_facts(context, apart, fact, rows), rows)
            pull = STRENGTH * torch.eye(self._weights.shape[1], dtype=torch.float64)
            target = features.t() @ (own / self._spread[some.relation])
            self._weights[group] = torch.linalg.solve(features.t() @ features + pull, target)
            self._unfitted.pop(group, None)  # last of all: another thread may ask for it meanwhile

    def _in_same_facts(self, context: _Context, apart: Tensor, fact: Tensor, rows: Tensor) -> _Beside:
        """Of the training numbers `rows`: the others of their facts."""
        place = torch.full((int(fact.max()) + 1,), -1)
        facts = torch.unique(fact[rows])
        place[facts] = torch.arange(len(facts))
        there = torch.nonzero(place[fact] >= 0).squeeze(1)
        relation = context.relation[there]
        every = self._of_rows(len(facts), place[fact[there]], relation, apart[there] + self._mean[relation])
        at, own, column = place[fact[rows]], torch.arange(len(rows)), self._column[context.relation[rows]]
        known = column < len(self._others)
        own, column, value = own[known], column[known], (apart / self._spread[context.relation])[rows][known]
        less = [torch.zeros(len(rows), len(self._others), dtype=torch.float64) for _ in range(2)]
        less[0][own, column], less[1][own, column] = value, 1.0
        return _Beside(every.total[at] - less[0], every.numbers[at] - less[1])

    def _of_rows(self, rows: int, row: Tensor, relation: Tensor, value: Tensor) -> _Beside:
        """Scaled numbers `value` (k,) of relations (k,) that stand in the rows `row` (k,), added up."""
        found = torch.zeros(2, rows, len(self._others) + 1, dtype=torch.float64)
        where = (row, self._column[relation])
        found[0].index_put_(where, (value - self._mean[relation]) / self._spread[relation], accumulate=True)
        found[1].index_put_(where, torch.ones_like(value), accumulate=True)
        return _Beside(found[0, :, :-1], found[1, :, :-1])

    def _features(self, context: _Context, beside: _Beside, rows: Tensor | None = None) -> Tensor:
        """(n, features) float64, in units of the spread; of the training numbers `rows` without their own share."""
        spread = self._spread[context.relation]
        own = None if rows is None else self._training[1][rows]
        found = [means.at(key, own) / spread for means, key in zip(self._means, self._keys(context), strict=True)]
        free, near, said = self._from_neighbours(context, rows)
        known = context.head < self.sizes.entities  # a masked head would be taken for another relation's first entity
        key = self._others * self.sizes.entities + context.head.unsqueeze(1)
        scale, shape = self._spread[self._others], key.shape
        less = (None, 1.0) if own is None else ((beside.total * scale).flatten(), beside.numbers.flatten())
        others = self._own.at(key.flatten(), *less).view(shape) / scale
        others = torch.where(others != 0, others, said)
        others = torch.where(known.unsqueeze(1) & (self._others != context.relation.unsqueeze(1)), others, 0.0)
        same = beside.total / beside.numbers.clamp(min=1)
        return torch.cat([torch.stack([*found, free, near, torch.ones_like(spread)], 1), others, same], 1)

    def _from_neighbours(self, context: _Context, rows: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The mean (n,) of what the head's other facts leave free, and what its neighbours say of the number (n,) and
        of the other relations' numbers (n, others), in units of the spreads.
        """
        spread = self._spread[context.relation]
        near = torch.zeros_like(spread)
        for one in torch.unique(context.relation).tolist():
            asked = context.relation == one
            near[asked] = self._said_near(one, context.head[asked])
        heads, at = torch.unique(context.head, return_inverse=True)
        said = [self._said_near(one, heads) for one in self._others.tolist()]
        return self._free.mean(*self._groups(context), rows) / spread, near, torch.stack(said, 1)[at]

    def _said_near(self, relation: int, head: Tensor) -> Tensor:
        """(n,) what neighbours of (n,) heads say of a relation's numbers, in units of its spread."""
        if relation not in self._neighbours:
            context, apart, _ = self._training
            of_relation = context.relation == relation
            self._neighbours[relation] = self._near.say(context.head[of_relation], apart[of_relation])
        return self._neighbours[relation].at(head) / self._spread[relation]

    def _groups(self, context: _Context) -> tuple[Tensor, Tensor]:
        """(n,) one number for relation, primary relation and part of the fact, and one for these and the head."""
        kind = 2 * (context.relation * (self.sizes.relations + 1) + context.primary) + context.in_qualifier
        return kind, kind * (self.sizes.entities + 1) + context.head

    def _centred(self, sums: NeighbourSums) -> _Means:
        mean = self._mean[sums.key // self.sizes.entities]
        return _Means(sums.key, sums.numbers, sums.total - sums.numbers * mean)

    def _qualified(self, context: _Context) -> Tensor:
        """(n,) one number for relation and qualifier."""
        place = torch.searchsorted(self._qualifiers, context.qualifier)
        met = self._qualifiers[place.clamp(max=len(self._qualifiers) - 1)] == context.qualifier
        return context.relation * (len(self._qualifiers) + 1) + torch.where(met, place, len(self._qualifiers))

    def _keys(self, context: _Context) -> list[Tensor]:
        """What a number shares with others, (n,) int64 each."""
        entities, pair = self.sizes.entities + 1, context.relation * (self.sizes.relations + 1) + context.primary
        qualified = self._qualified(context)
        place = torch.searchsorted(self._with_qualifier, qualified)  # a new one meets nothing below
        met = self._with_qualifier[place.clamp(max=len(self._with_qualifier) - 1)] == qualified
        place = torch.where(met, place, len(self._with_qualifier))
        kinds = len(self._with_qualifier) + 1
        return [
            pair,
            context.relation * entities + context.head,
            pair * entities + context.head,
            context.relation * entities + context.tail,
            pair * entities + context.tail,
            place,
            pair * kinds + place,
            place * entities + context.head,
        ]


class PlainNumberRegression(NumberRegression):
    """The same with the plain mean of the head's neighbours instead: what weights of earlier runs were fitted for."""

    def __init__(self, facts: FactTensors) -> None:
        self._sums = NeighbourNumbers(facts) if are_too_many(facts) else neighbour_sums(facts)
        super().__init__(facts)

    def _from_neighbours(self, context: _Context, rows: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:  # noqa: ARG002
        spread = self._spread[context.relation]
        near = self._means_near.at(context.relation * self.sizes.entities + context.head) / spread
        near = torch.where(context.head < self.sizes.entities, near, 0.0)
        return torch.zeros_like(near), near, near.new_zeros(len(near), len(self._others))

    @cached_property
    def _means_near(self) -> _Means | _NearMeans:
        if isinstance(self._sums, NeighbourNumbers):
            return _NearMeans(self._sums, self._mean, self.sizes.entities)
        return self._centred(self._sums)


def _of_facts(facts: FactTensors) -> tuple[_Context, Tensor, Tensor]:
    """Where the numbers of facts stand, in the order of `numbers_of`, (n,) float64 the numbers, (n,) their facts."""
    owner = torch.repeat_interleave(torch.arange(len(facts)), facts.qualifier_counts())
    tails, values = facts.tail_is_number, facts.qualifier_is_number[:-1]
    key = facts.qualifier_relation[:-1].long() * (facts.sizes.entities + 1) + facts.qualifier_entity[:-1].long()
    key = torch.where(values, _NONE, key)
    qualifier = torch.full((len(facts),), _NONE).scatter_reduce(0, owner, key, "amin")
    tail = torch.where(tails, facts.sizes.mask_entity, facts.tail_entity.long())
    fact = torch.cat([torch.nonzero(tails).squeeze(1), owner[values]])
    numbers = numbers_of(facts)
    in_qualifier = (torch.arange(len(fact)) >= int(tails.sum())).long()
    primary = facts.relation.long()[fact]
    context = _Context(numbers.relation, primary, numbers.head, tail[fact], qualifier[fact], in_qualifier)
    return context, numbers.value, fact
