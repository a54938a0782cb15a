"""How literals differ between head and tail of the training triplets: mean and variance for each attribute."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors

AT_ONCE = 1 << 16
SMALLEST_VARIANCE = 1e-6


class Differences(NamedTuple):
    """For all triplets together (1 row), or for each relation."""

    centre: Tensor  # (1 or relations, attributes) float32 mean of literal of the head minus that of the tail
    spread: Tensor  # (1 or relations, attributes) float32 variance, kept above 0


def literal_differences(facts: FactTensors, literals: Tensor, *, by_relation: bool) -> Differences:
    """From all triplets whose tail is an entity. `literals` (entities, attributes) reads 0 where there is none."""
    joined = ~facts.tail_is_number
    head, tail = facts.head[joined].long(), facts.tail_entity[joined].long()
    relation = facts.relation[joined].long() if by_relation else torch.zeros_like(head)
    groups = facts.sizes.relations if by_relation else 1
    total = torch.zeros(groups, literals.shape[1], dtype=torch.float64, device=literals.device)
    squares = torch.zeros_like(total)
    for start in range(0, len(head), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        apart = (literals[head[some]] - literals[tail[some]]).double()
        total.index_add_(0, relation[some], apart)
        squares.index_add_(0, relation[some], apart.square())
    times = torch.bincount(relation, minlength=groups).clamp(min=1).unsqueeze(1)
    centre = total / times
    variance = (squares / times - centre.square()).clamp(min=0) + SMALLEST_VARIANCE
    return Differences(centre.float(), variance.float())
