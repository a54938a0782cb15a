"""Attributes and literals: the numbers that training triplets give to entities, for models that know no qualifiers.

An attribute is a relation whose tail is a number in some training triplet. Numbers in qualifiers are not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors

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
