"""False facts to learn from: a true fact with one component exchanged. What makes a training fact is drawn anew.

By default the new value comes from those met in training beside the same relation, at the same place (head, tail or
qualifier value): a negative should be wrong, not absurd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from hynt.batches.fact_slots import HEAD_ROLE, QUALIFIER_ROLE, ROLES, TAIL_ROLE, role_at
from hynt.batches.fact_tensors import FactTensors
from hynt.config.declarations import Count, Share
from hynt.graph.fact_table import HEAD, RELATION, TAIL

# Which facts are true, as 64-bit keys: a fact with one component exchanged is looked up without being written down.
#
# A key is a sum over the triplet and the qualifiers, so the order of qualifiers does not matter, no permutation is ever
# stored, and exchanging one component is one subtraction and one addition.

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
        slot = facts.qualifier_at(rows, asked)
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


ROUNDS = ((1, True), (1, True), (2, True), (4, True), (8, True), (84, False))
"""How many values are drawn at once, and whether from those seen in the place: where sixteen of these make training
facts, any value may follow. The fewer facts are left, the more draws at once: a device that is asked after every draw
whether one is left spends its time on being asked. A fact for which none was false gets no negative.
"""

Pool: TypeAlias = Literal["seen", "all", "answers"]
"""Where new values come from: those seen beside the same relation in the same place, all, or those among which an
answer is looked for, which are all entities for an entity and those seen in the place for a number.
"""

LossKind: TypeAlias = Literal["logistic", "softmax"]
"""How a fact is set against its negatives: each of them is told true from false by itself, or the fact is chosen among
them, for which all of a fact's negatives exchange the same component: they are false answers to one question.

Told one by one, a tail comes with the more false facts (of other heads) the more frequent it is, and its being frequent
teaches nothing; where it is chosen among answers to one question, it does.
"""


@dataclass(frozen=True)
class Corruption:
    """How negatives are drawn, and what is made of them."""

    negatives: Count = 1  # for each fact
    relations: Share | None = None  # share that exchanges relations; None: relations among ids
    coin: Literal["step", "fact"] = "step"  # what decides together whether relations or values are exchanged
    pool: Pool = "seen"
    loss: LossKind = "logistic"


class Corrupted(NamedTuple):
    """A negative for each of `n` facts."""

    exchange: Exchange
    false: Tensor  # (n,) bool: false where every draw made a training fact


class Corrupter:
    """Draws negatives of training facts. Draws are made on the CPU, so every device gets the same."""

    def __init__(self, facts: FactTensors, corruption: Corruption) -> None:
        self.facts, self.corruption = facts, corruption
        self.known = KnownFacts.of(facts)
        self.tokens = facts.sizes.entities + facts.sizes.literals
        self.pool, self.offsets = _pools(facts)

    @property
    def relation_share(self) -> float:
        """How many of the negatives exchange a relation."""
        share, relations = self.corruption.relations, self.facts.sizes.relations
        return relations / (relations + self.tokens) if share is None else share

    def draw(self, rows: Tensor, of_relation: Tensor, where: Tensor, generator: torch.Generator) -> Corrupted:
        """A negative for each fact in `rows` (n,) int64: one of its relations is exchanged where `of_relation` (n,)
        bool says so, else one of its values; which of them, `where` (n,) float64 in [0, 1) says.
        """
        facts, device = self.facts, self.facts.device
        asked = self._position(rows, of_relation, where)
        place = relation_at(self.facts, rows, asked) * ROLES + role_at(asked)
        start, size = self.offsets[place], self.offsets[place + 1] - self.offsets[place]
        in_place, others = self._ranges(rows, asked)
        entity, relation = torch.zeros_like(rows), torch.zeros_like(rows)
        waiting = torch.arange(len(rows), device=device)
        for tries, in_pool in ROUNDS:
            uniform = torch.rand(tries, len(waiting), generator=generator, dtype=torch.float64).to(device)
            seen = (size[waiting] > 1) & in_place[waiting] & in_pool
            choice = (uniform * torch.where(seen, size[waiting], others[waiting])).long()  # (tries, waiting)
            at = torch.where(seen, start[waiting] + choice, 0)
            # The id between entities and literals stands for masked ones and is no value.
            anything = choice + (choice >= facts.sizes.mask_entity).long()
            drawn = Exchange(
                asked[waiting].expand_as(choice),
                torch.where(seen, self.pool[at], anything),
                (uniform * facts.sizes.relations).long(),
            )
            true = self.known.holds(rows[waiting].expand_as(choice), drawn)
            first_false = true.long().argmin(0, keepdim=True)  # the first of all where none is
            entity[waiting] = drawn.entity.gather(0, first_false).squeeze(0)
            relation[waiting] = drawn.relation.gather(0, first_false).squeeze(0)
            waiting = waiting[true.all(0)]
            if not len(waiting):
                break
        false = torch.ones_like(of_relation).index_fill(0, waiting, False)
        return Corrupted(Exchange(asked, entity, relation), false)

    def _position(self, rows: Tensor, of_relation: Tensor, uniform: Tensor) -> Tensor:
        """(n,) int64 where to exchange: any pair of a relation and a value; head and tail both have the primary one."""
        pairs = 2 + self.facts.offsets[rows + 1] - self.facts.offsets[rows]
        pair = (uniform * pairs).long().clamp(max=pairs - 1)
        return torch.where(of_relation, torch.where(pair < 2, RELATION, 2 * pair - 1), 2 * pair)

    def _ranges(self, rows: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) bool: whether the new value is one seen in such a place; and (n,) int64: from how many others it comes
        if not, counted from the first entity.
        """
        every = torch.full_like(rows, self.tokens)
        if self.corruption.pool != "answers":
            return torch.full_like(rows, self.corruption.pool == "seen", dtype=torch.bool), every
        is_number = value_at(self.facts, rows, asked) > self.facts.sizes.mask_entity
        return is_number, torch.where(is_number, every, self.facts.sizes.entities)


def value_at(facts: FactTensors, rows: Tensor, asked: Tensor) -> Tensor:
    """(n,) int64 the entity or literal beside each position `asked` (n,); a primary relation's is the tail."""
    of_triplet = torch.where(asked == HEAD, facts.head[rows], facts.tail_entity[rows])
    return torch.where(asked > TAIL, facts.qualifier_entity[facts.qualifier_at(rows, asked)], of_triplet).long()


def relation_at(facts: FactTensors, rows: Tensor, asked: Tensor) -> Tensor:
    """(n,) int64 the relation at or beside each position `asked` (n,)."""
    of_qualifier = facts.qualifier_relation[facts.qualifier_at(rows, asked)]
    return torch.where(asked > TAIL, of_qualifier, facts.relation[rows]).long()


def _pools(facts: FactTensors) -> tuple[Tensor, Tensor]:
    """Values by place, each once: (v,) int64 end to end and (relations × ROLES + 1,) int64 where each place starts."""
    head, tail, qualifier = facts.head.long(), facts.relation.long(), facts.qualifier_relation[:-1].long()
    place = torch.cat([tail * ROLES + HEAD_ROLE, tail * ROLES + TAIL_ROLE, qualifier * ROLES + QUALIFIER_ROLE])
    value = torch.cat([head, facts.tail_entity.long(), facts.qualifier_entity[:-1].long()])
    ids = facts.sizes.entities + 1 + facts.sizes.literals
    key = torch.unique(place * ids + value)
    counts = torch.bincount(key // ids, minlength=facts.sizes.relations * ROLES)
    return key % ids, torch.cat([counts.new_zeros(1), counts.cumsum(0)])
