"""Which facts are true, as 64-bit keys: a fact with one component exchanged is looked up without being written down.

A key is a sum over the triplet and the qualifiers, so the order of qualifiers does not matter, no permutation is ever
stored, and exchanging one component is one subtraction and one addition.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import HEAD, RELATION, TAIL

_FIRST, _SECOND = 0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64)
_SALT = 0x1E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Exchange:
    """One component of each of `n` facts, and what stands there instead."""

    asked: Tensor  # (n,) int64 the position
    entity: Tensor  # (n,) int64 the new entity, or literal, where the position holds a value
    relation: Tensor  # (n,) int64 the new relation where the position holds one


@dataclass(frozen=True, eq=False)
class KnownFacts:
    """The keys of some facts."""

    facts: FactTensors
    of_fact: Tensor  # (n,) int64 the key of each fact
    ascending: Tensor  # (n,) int64 the same, sorted

    @classmethod
    def of(cls, facts: FactTensors) -> KnownFacts:
        """The keys of all facts. That any two of 10⁵ different ones share theirs has a chance below 10⁻⁹."""
        triplet = _triplet(facts.head.long(), facts.relation.long(), facts.tail_entity.long())
        pair = _pair(facts.qualifier_relation[:-1].long(), facts.qualifier_entity[:-1].long())
        rows = torch.arange(len(facts), device=facts.device)
        owner = torch.repeat_interleave(rows, facts.qualifier_counts())
        key = triplet.index_add(0, owner, pair)
        return cls(facts, key, key.sort().values)

    def holds(self, rows: Tensor, exchange: Exchange) -> Tensor:
        """(n,) bool: whether the facts at `rows` (n,) int64 are known once a component is exchanged."""
        key = self._key(rows, exchange)
        at = torch.searchsorted(self.ascending, key).clamp(max=len(self.ascending) - 1)
        return self.ascending[at] == key

    def _key(self, rows: Tensor, exchange: Exchange) -> Tensor:
        facts, asked = self.facts, exchange.asked
        head, relation, tail = facts.head[rows].long(), facts.relation[rows].long(), facts.tail_entity[rows].long()
        old = _triplet(head, relation, tail)
        new = _triplet(
            torch.where(asked == HEAD, exchange.entity, head),
            torch.where(asked == RELATION, exchange.relation, relation),
            torch.where(asked == TAIL, exchange.entity, tail),
        )
        in_qualifier = asked > TAIL
        slot = torch.where(in_qualifier, facts.offsets[rows] + (asked - 3) // 2, facts.qualifier_total)
        qualifier, value = facts.qualifier_relation[slot].long(), facts.qualifier_entity[slot].long()
        is_relation = asked % 2 == 1
        new_pair = _pair(
            torch.where(is_relation, exchange.relation, qualifier), torch.where(is_relation, value, exchange.entity)
        )
        change = torch.where(in_qualifier, new_pair - _pair(qualifier, value), new - old)
        return self.of_fact[rows] + change


def mixed(key: Tensor) -> Tensor:
    """Spreads every bit over all; arithmetic wraps around, and shifts are made logical."""
    key = (key ^ ((key >> 30) & ((1 << 34) - 1))) * _FIRST
    key = (key ^ ((key >> 27) & ((1 << 37) - 1))) * _SECOND
    return key ^ ((key >> 31) & ((1 << 33) - 1))


def _triplet(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    return mixed(mixed(mixed(head + _SALT) + relation) ^ tail)


def _pair(relation: Tensor, value: Tensor) -> Tensor:
    return mixed(mixed(~relation) ^ value)  # ~: a pair is never mistaken for the start of a triplet
