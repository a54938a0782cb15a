"""What the numbers of an entity's neighbours say of its own: of a town's latitude those of other towns of its region.

An entity lies where its neighbours do, in the mean. Edges of each relation count by what they tell: the less the
numbers differ of entities that they join to one and the same, the more. An entity without a number stands where its own
neighbours have it, so that numbers reach further than one step. Entities with numbers are dealt into folds, and each
is told by the numbers of other folds: its own never reach what is said of it.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors
from hynt.models.training_statistics import numbers_of

FEWEST = 10
"""Of fewer numbers than these nothing is said."""
FOLDS = 5
STEPS = 20
"""So often each entity is moved to where its neighbours lie."""
MOST_EDGES = 10**7
"""So many edges are followed, for all relations with numbers together; evenly taken where there are more."""
FROM_ALL = 5.0
"""How strongly what a relation's edges tell is drawn to nothing: as so many numbers would."""
SMALLEST = 0.002
"""Of the variance is left beside the surest edge."""
OF_NO_WORTH = 0.8
"""Of an edge that tells nothing, which would count 1, so much is taken off, as of all others."""
TO_MEAN = 0.1
"""The mean of all counts in every entity's as such an edge."""


class Estimates(NamedTuple):
    """What neighbours say of some entities."""

    entity: Tensor  # (k,) int64, ascending
    value: Tensor  # (k,) float64

    def at(self, entity: Tensor) -> Tensor:
        """(n,) of (n,) entities; 0 of the others."""
        if not len(self.entity):
            return torch.zeros(len(entity), dtype=torch.float64)
        place = torch.searchsorted(self.entity, entity).clamp(max=len(self.entity) - 1)
        return torch.where(self.entity[place] == entity, self.value[place], 0.0)


NOTHING = Estimates(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.float64))


def _matrix(row: Tensor, column: Tensor, value: Tensor, size: int) -> Tensor:
    """(size, size) sparse, of what is at these places; what is at the same one is added up."""
    order = row.argsort(stable=True)
    starts = torch.cat([row.new_zeros(1), torch.bincount(row, minlength=size).cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, column[order], value[order], (size, size), check_invariants=False)


class NumberNeighbours:
    """The entities that the primary triplets of some facts join."""

    def __init__(self, facts: FactTensors) -> None:
        self._sizes = facts.sizes
        joined = torch.nonzero(~facts.tail_is_number & (facts.head != facts.tail_entity)).squeeze(1).cpu()
        most = max(1, MOST_EDGES // max(1, len(torch.unique(numbers_of(facts).relation))))
        joined = joined[:: max(1, -(-len(joined) // most))]
        columns = (facts.relation, facts.head, facts.tail_entity)
        self._kind, self._head, self._tail = (one.cpu()[joined].long() for one in columns)

    def say(self, entity: Tensor, value: Tensor) -> Estimates:
        """What they say where (k,) entities have (k,) float64 numbers, which lie around 0."""
        count = torch.bincount(entity, minlength=self._sizes.entities)
        mean = torch.bincount(entity, value, minlength=self._sizes.entities) / count.clamp(min=1)
        if len(value) < FEWEST:
            return NOTHING
        worth = self._worth(mean, count > 0, float(value.square().mean()))[self._kind]
        tells = worth > 0
        if not tells.any():
            return NOTHING
        ends, worth = torch.cat([self._head[tells], self._tail[tells]]), worth[tells].repeat(2)
        met, here = torch.unique(ends, return_inverse=True)
        matrix = _matrix(here, here.roll(len(here) // 2), worth, len(met))
        whole = torch.bincount(here, worth).unsqueeze(1) + TO_MEAN
        known, own = count[met] > 0, mean[met].unsqueeze(1)
        dealt = torch.randperm(len(met), generator=torch.Generator().manual_seed(0)) % FOLDS  # ids may have an order
        fold = torch.where(known, dealt, FOLDS)  # in the last column none is left out
        fixed = known.unsqueeze(1) & (fold.unsqueeze(1) != torch.arange(FOLDS + 1))
        said = torch.where(fixed, own, 0.0)
        for _ in range(STEPS):
            said = torch.where(fixed, own, matrix @ said / whole)
        return Estimates(met, said.gather(1, fold.unsqueeze(1)).squeeze(1))

    def _worth(self, mean: Tensor, known: Tensor, variance: float) -> Tensor:
        """(relations,) what an edge counts: the inverse of the share of the variance that is left beside it."""
        square, count = (torch.zeros(self._sizes.relations, dtype=torch.float64) for _ in range(2))
        for here, hub in ((self._head, self._tail), (self._tail, self._head)):
            kept = known[here]
            value, kind = mean[here[kept]], self._kind[kept]
            key, at, met = torch.unique(
                kind * self._sizes.entities + hub[kept], return_inverse=True, return_counts=True
            )
            apart = value - (torch.bincount(at, value, minlength=len(key)) / met)[at]
            square += torch.bincount(kind, apart.square(), minlength=len(square))
            count += torch.bincount(key // self._sizes.entities, met - 1.0, minlength=len(square))
        both = known[self._head] & known[self._tail]
        apart = mean[self._head[both]] - mean[self._tail[both]]
        square += torch.bincount(self._kind[both], apart.square(), minlength=len(square))
        count += torch.bincount(self._kind[both], minlength=len(square))
        left = (square / max(variance, 1e-12) + FROM_ALL) / (count + FROM_ALL)
        return (1 / (left + SMALLEST) - OF_NO_WORTH).clamp(min=0.0)
