"""How often observed facts name each entity and relation, by role."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors


class Degrees(NamedTuple):
    """How often each entity and relation is met in observed facts."""

    entity: Tensor  # (entities, 3) float32 as head, as tail, as a qualifier's value
    relation: Tensor  # (relations, 3) float32 of entities, of numbers, of qualifiers

    @property
    def seen(self) -> Tensor:
        """(entities,) bool: some observed fact names it."""
        return self.entity.sum(1) > 0


def degrees_of(facts: FactTensors, rows: Tensor) -> Degrees:
    """Counts over the facts at `rows` (k,) int64, each there once."""
    observed = torch.zeros(len(facts), dtype=torch.bool, device=facts.device).index_fill_(0, rows, True)
    of_qualifier = torch.repeat_interleave(observed, facts.qualifier_counts(), output_size=facts.qualifier_total)
    nowhere, no_relation = 3 * facts.sizes.entities, 3 * facts.sizes.relations
    is_number = facts.qualifier_is_number[:-1]
    head = torch.where(observed, 3 * facts.head, nowhere)
    tail = torch.where(observed & facts.tail_is_number.logical_not(), 3 * facts.tail_entity + 1, nowhere)
    value = torch.where(of_qualifier & is_number.logical_not(), 3 * facts.qualifier_entity[:-1] + 2, nowhere)
    primary = torch.where(observed, 3 * facts.relation + facts.tail_is_number.to(torch.int32), no_relation)
    qualifier = torch.where(of_qualifier, 3 * facts.qualifier_relation[:-1] + 2, no_relation)
    return Degrees(
        _counted(torch.cat([head, tail, value]), nowhere), _counted(torch.cat([primary, qualifier]), no_relation)
    )


def _counted(key: Tensor, keys: int) -> Tensor:
    """(keys / 3, 3) float32 how often each key below `keys` occurs: whole numbers, exact in any order of adding."""
    ones = torch.ones((), device=key.device).expand(len(key))
    return torch.zeros(keys + 1, device=key.device).index_add_(0, key, ones)[:keys].view(-1, 3)
