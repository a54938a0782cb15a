"""Composite relations: what a fact's relations are together, the primary one and the multiset of its qualifiers'.

RAM has a role for each position of each composite relation: head, tail, then qualifiers by the id of their relation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.known_facts import mixed


class CompositeRelations(nn.Module):
    """The composite relations met in training, and where the positions of each begin in one long table. Not learned."""

    key: Tensor  # (c,) int64 ascending
    first: Tensor  # (c,) int64 the first of its positions
    place: Tensor  # (positions,) int64 what each position is: head or tail of a relation, or value of a qualifier's
    arity_first: Tensor  # (longest arity + 1,) int64 where positions of facts of an arity begin in a table by arity
    arity_seen: Tensor  # (longest arity + 1,) bool

    def __init__(self, key: Tensor, first: Tensor, place: Tensor, arity_seen: Tensor) -> None:
        super().__init__()
        sizes = torch.arange(len(arity_seen), device=key.device) * arity_seen
        self.register_buffer("key", key)
        self.register_buffer("first", first)
        self.register_buffer("place", place)
        self.register_buffer("arity_seen", arity_seen)
        self.register_buffer("arity_first", sizes.cumsum(0) - sizes)
        self.arity_positions = int(sizes.sum())  # positions of all arities seen, end to end

    @classmethod
    def of(cls, facts: FactTensors) -> CompositeRelations:
        """Those of training facts."""
        count, relations, device = facts.qualifier_counts(), facts.sizes.relations, facts.device
        rows = torch.arange(len(facts), device=device)
        owner = torch.repeat_interleave(rows, count)
        qualifier, relation = facts.qualifier_relation[:-1].long(), facts.relation.long()
        keys = mixed(~relation).index_add(0, owner, mixed(qualifier))
        key, which = torch.unique(keys, return_inverse=True)
        example = torch.zeros_like(key).index_put((which,), rows)  # a fact that has this composite relation
        arity = count[example] + 2
        first = arity.cumsum(0) - arity
        place = torch.zeros(int(arity.sum()), dtype=torch.int64, device=device)
        place[first], place[first + 1] = relation[example], relations + relation[example]
        is_example = torch.zeros_like(rows).index_put((example,), torch.ones_like(example)).bool()
        slots = torch.nonzero(is_example[owner]).squeeze(1)
        of_key = which[owner[slots]]
        order = torch.argsort(of_key * relations + qualifier[slots])
        slots, of_key = slots[order], of_key[order]
        started = torch.cumsum(arity - 2, 0) - (arity - 2)
        within = torch.arange(len(slots), device=device) - started[of_key]
        place[first[of_key] + 2 + within] = 2 * relations + qualifier[slots]
        seen = torch.zeros(int(arity.max()) + 1, dtype=torch.bool, device=device)
        seen[arity] = True
        return cls(key, first, place, seen)

    def lookup(self, relation: Tensor, qualifier: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """(rows,) int64 where the positions of each row's composite relation begin, and (rows,) bool whether training
        had it; from (rows,) relations and (rows, most) those of qualifiers that are `present`.
        """
        key = mixed(~relation) + torch.where(present, mixed(qualifier), 0).sum(1)
        at = torch.searchsorted(self.key, key).clamp(max=len(self.key) - 1)
        return self.first[at], self.key[at] == key
