"""What observed facts say of a number near the one that is asked for: the values of the same relation that the head has
itself, that the tail has (beside an asked qualifier), and that the head's neighbours have. Also how often observed
facts name each entity and relation, by role.

All is looked up in lists that were sorted once. Which facts are observed is a mask over them, so a training step sorts
nothing and no shape depends on it. Sums are of whole numbers: exact in any order of adding.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors

CODES = 32
FEATURES = 3 * (2 + CODES)
"""How many numbers say what is known of the head, the tail and the head's neighbours."""

FINENESS = 2.0**32
"""Scaled values are summed as whole numbers of this fineness."""


class NeighbourLists(NamedTuple):
    """Who has which numbers, and who is whose neighbour, from some facts."""

    key: Tensor  # (n,) int64 ascending: entity × relations + relation of a number
    value: Tensor  # (n,) int64 the number, scaled, times FINENESS
    value_fact: Tensor  # (n,) int64 the fact that says so
    neighbour: Tensor  # (m,) int64 neighbours, those of an entity side by side
    neighbour_fact: Tensor  # (m,) int64
    start: Tensor  # (entities + 1,) int64 where the neighbours of each entity begin
    relations: int

    @classmethod
    def of(cls, facts: FactTensors) -> NeighbourLists:
        """A number belongs to the head of its fact; in a qualifier, also to the tail where that is an entity."""
        row = torch.arange(len(facts), device=facts.device)
        owner = torch.repeat_interleave(row, facts.qualifier_counts(), output_size=facts.qualifier_total)
        of_tail, linked = facts.tail_is_number, facts.tail_is_number.logical_not()
        of_head = facts.qualifier_is_number[:-1]
        beside = of_head & linked[owner]
        parts = [
            (facts.head[of_tail], facts.relation[of_tail], facts.tail_number[of_tail], row[of_tail]),
            *(
                (
                    entity[owner[chosen]],
                    facts.qualifier_relation[:-1][chosen],
                    facts.qualifier_number[:-1][chosen],
                    owner[chosen],
                )
                for entity, chosen in ((facts.head, of_head), (facts.tail_entity, beside))
            ),
        ]
        entity, relation, value, fact = (torch.cat(columns) for columns in zip(*parts, strict=True))
        key, order = torch.sort(entity.long() * facts.sizes.relations + relation.long(), stable=True)
        head, tail = facts.head[linked].long(), facts.tail_entity[linked].long()
        ends, by_end = torch.sort(torch.cat([head, tail]), stable=True)
        return cls(
            key,
            (value.double() * FINENESS).round().long()[order],
            fact[order],
            torch.cat([tail, head])[by_end],
            row[linked].repeat(2)[by_end],
            torch.searchsorted(ends, torch.arange(facts.sizes.entities + 1, device=facts.device)),
            facts.sizes.relations,
        )

    def seen(self, observed: Tensor) -> ObservedNeighbours:
        """With only the facts that `observed` (facts,) bool marks."""
        counted = observed[self.value_fact].long()
        # Lists, not a table of two columns: those a GPU adds up by one thread each, and reads by small groups.
        total, count = (_running(one) for one in (self.value * counted, counted))
        return ObservedNeighbours(self, total, count, observed[self.neighbour_fact])


class ObservedNeighbours(NamedTuple):
    """The same lists as far as they are observed."""

    lists: NeighbourLists
    total: Tensor  # (n + 1,) int64 the sum of the values before each place
    counted: Tensor  # (n + 1,) int64 how many there are
    is_neighbour: Tensor  # (m,) bool

    def features(self, head: Tensor, tail: Tensor, relation: Tensor, capacity: int | None = None) -> Tensor:
        """(k, FEATURES) float32 for numbers of `relation` (k,) int64 asked of facts with these heads and tails (k,)
        int64; an id that no entity has stands for none. Up to `capacity` neighbours of all heads together are looked
        at; None: all of them.
        """
        found = [self._of(head, relation), self._of(tail, relation), self._around(head, relation, capacity)]
        return torch.cat([_described(*sums) for sums in found], 1)

    def _of(self, entity: Tensor, relation: Tensor) -> tuple[Tensor, Tensor]:
        """(k,) int64 sum and count of the values of these relations that entities (k,) have."""
        known = entity < len(self.lists.start) - 1
        key = torch.where(known, entity * self.lists.relations + relation, -1)
        first, last = torch.searchsorted(self.lists.key, key), torch.searchsorted(self.lists.key, key, right=True)
        return self.total[last] - self.total[first], self.counted[last] - self.counted[first]

    def _around(self, entity: Tensor, relation: Tensor, capacity: int | None) -> tuple[Tensor, Tensor]:
        """(k,) int64 the same over the neighbours of entities (k,)."""
        lists = self.lists
        entities, total = len(lists.start) - 1, len(lists.neighbour)
        known = entity < entities
        place = torch.where(known, entity, 0)
        first = lists.start[place]
        ends = torch.where(known, lists.start[place + 1] - first, 0).cumsum(0)
        capacity = (int(ends[-1]) if len(ends) else 0) if capacity is None else capacity
        if not capacity or not total:
            return torch.zeros_like(ends), torch.zeros_like(ends)
        at = torch.arange(capacity, device=entity.device)
        row = torch.searchsorted(ends, at, right=True)
        there = row < len(entity)
        row = row.clamp(max=len(entity) - 1)
        begins = functional.pad(ends, (1, 0))[:-1]
        link = torch.where(there, first[row] + at - begins[row], 0).clamp(max=total - 1)
        there = there & self.is_neighbour[link]
        found = self._of(torch.where(there, lists.neighbour[link], entities), relation[row])
        begins, ends = begins.clamp(max=capacity), ends.clamp(max=capacity)
        sums, counts = (_running(one) for one in found)
        return sums[ends] - sums[begins], counts[ends] - counts[begins]


def _running(x: Tensor) -> Tensor:
    """(n + 1,) the sum of what stands before each place of (n,)."""
    return functional.pad(x.cumsum(0), (1, 0))


def _described(total: Tensor, count: Tensor) -> Tensor:
    """(k, 2 + CODES) float32: whether there are values, how many, and codes of their mean, 0 where there are none."""
    has = (count > 0).float().unsqueeze(1)
    mean = (total.double() / FINENESS / count.clamp(min=1)).float().unsqueeze(1)
    codes = (mean * CODES - torch.arange(CODES, device=mean.device)).clamp(0, 1)
    return torch.cat([has, torch.log1p(count.float()).unsqueeze(1) / 3, codes * has], 1)


class Degrees(NamedTuple):
    """How often each entity and relation is met in observed facts."""

    entity: Tensor  # (entities, 3) float32 as head, as tail, as a qualifier's value
    relation: Tensor  # (relations, 3) float32 of entities, of numbers, of qualifiers

    @property
    def seen(self) -> Tensor:
        """(entities,) bool: some observed fact names it."""
        return self.entity.sum(1) > 0


class _Met(NamedTuple):
    """Which fact each meeting of a fact and a key is of, by key."""

    fact: Tensor  # (n,) int64
    start: Tensor  # (keys + 1,) int64 where the facts of each key begin

    @classmethod
    def of(cls, keys: int, key: list[Tensor], fact: list[Tensor]) -> _Met:
        """From keys below `keys` and their facts, (n,) in all."""
        ordered, order = torch.sort(torch.cat(key).to(torch.int32))
        bounds = torch.arange(keys + 1, dtype=torch.int32, device=ordered.device)
        return cls(torch.cat(fact)[order], torch.searchsorted(ordered, bounds))

    def times(self, observed: Tensor) -> Tensor:
        """(keys / 3, 3) float32 how many facts of each key `observed` (facts,) bool marks."""
        return torch.diff(_running(observed[self.fact])[self.start]).view(-1, 3).float()


class DegreeLists(NamedTuple):
    """Which facts name each entity and relation, by role: sorted once, counted for any of the facts."""

    entity: _Met  # keys: entity × 3 + 0, 1, 2, as in `Degrees`
    relation: _Met

    @classmethod
    def of(cls, facts: FactTensors) -> DegreeLists:
        row = torch.arange(len(facts), device=facts.device)
        owner = torch.repeat_interleave(row, facts.qualifier_counts(), output_size=facts.qualifier_total)
        linked, is_entity = facts.tail_is_number.logical_not(), facts.qualifier_is_number[:-1].logical_not()
        primary, qualifier = 3 * facts.relation + facts.tail_is_number, 3 * facts.qualifier_relation[:-1] + 2
        tail, value = 3 * facts.tail_entity[linked] + 1, 3 * facts.qualifier_entity[:-1][is_entity] + 2
        return cls(
            _Met.of(3 * facts.sizes.entities, [3 * facts.head, tail, value], [row, row[linked], owner[is_entity]]),
            _Met.of(3 * facts.sizes.relations, [primary, qualifier], [row, owner]),
        )

    def seen(self, observed: Tensor) -> Degrees:
        """With only the facts that `observed` (facts,) bool marks."""
        return Degrees(self.entity.times(observed), self.relation.times(observed))


def degrees_of(facts: FactTensors, rows: Tensor) -> Degrees:
    """Counts over the facts at `rows` (k,) int64, each there once."""
    return DegreeLists.of(facts).seen(marked(facts, rows))


def marked(facts: FactTensors, rows: Tensor) -> Tensor:
    """(facts,) bool: the facts at `rows` (k,) int64."""
    return torch.zeros(len(facts), dtype=torch.bool, device=facts.device).index_fill_(0, rows, True)
