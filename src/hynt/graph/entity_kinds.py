"""Whether an entity is of the kind that stands at a place: a country has no melting point.

A place is the head, the tail or a qualifier's value of a relation. Where else an entity stands, and its type, are its
traits. Of each it is counted how many of those at a place have it, and how many would if the place were open to all.
Where traits that the entity has are too rare there, it is unlike all that stand there, and what was measured on their
questions promises nothing about it. Of a place with few entities little is known, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hynt.graph.fact_table import HEAD, POSITION_GROUPS, RELATION, TAIL, FactTable
from hynt.graph.seen_values import SeenValues
from hynt.graph.vocabulary import Entity, Flags, Floats, Ids, Vocabulary, offsets_of, spaced, spread

_UNLIKE = -2.0
"""The logarithm of how many times as common an entity's traits are at a place as they would be if it were open to all,
from which down the entity is unlike what stands there. This and the next two were chosen on validation splits, by
benchmarks/unlike_heads.py."""
_DRAWN = 0.1
"""How many entities, as common there as elsewhere, each count is drawn to."""
_ENOUGH = 10
"""Entities of a place that share a trait, from which on it speaks against no other: questions like theirs were among
those that errors were measured on."""
_FEWEST = 5
"""Entities of a place from which on they show what stands there."""
_MOST = 4096
"""Entities of a place that are looked at; of more, so many spaced evenly."""


class Unlike(NamedTuple):
    """An entity that is unlike those at its place in a question, and the trait that tells it best."""

    entity: int
    position: int  # HEAD or TAIL
    relation: int
    has_traits: bool  # false where no fact says anything of it: then what follows says nothing
    looked_at: int  # entities that stand there
    having: int  # how many of these have the trait
    trait: tuple[int, int] | None  # that it stands at this place, a position group of a relation; None: its type


@dataclass(frozen=True, eq=False)
class EntityKinds:
    """The traits of all entities: first places, by their number, then types."""

    seen: SeenValues
    relation_is_number: Flags  # (relations,)
    places: Ids  # (p,) the keys of the places that hold entities, ascending
    entities: int  # that stand anywhere
    offsets: Ids  # (entities of the vocabulary + 1,) the traits of entity i are offsets[i] … offsets[i + 1]
    trait: Ids  # (t,) ascending within an entity
    size: Ids  # (traits,) how many entities have each
    counted: dict[int, _Counted] = field(default_factory=dict)  # of the places that were asked about

    @classmethod
    def of(cls, tables: Sequence[FactTable], vocabulary: Vocabulary, entities: Sequence[Entity]) -> EntityKinds:
        """From the facts that are known, and all entities with their types."""
        seen = SeenValues.of(tables, vocabulary.relation_is_number)
        places = seen.of_entities()
        trait, owner = seen.pairs(places)
        stands = np.bincount(owner, minlength=len(entities)) > 0
        names = {name: len(places) + number for number, name in enumerate(sorted({one.type for one in entities}))}
        typed = np.flatnonzero(stands & np.array([one.type != "" for one in entities], dtype=np.bool_))
        types = np.array([names[entities[one].type] for one in typed.tolist()], dtype=np.int64)
        owner, trait = np.concatenate([owner, typed]), np.concatenate([trait, types])
        order = np.lexsort((trait, owner))
        offsets = offsets_of(np.bincount(owner, minlength=len(entities)))
        size = np.bincount(trait, minlength=len(places) + len(names)).astype(np.int64)
        known = max(int(stands.sum()), 1)
        return cls(seen, vocabulary.relation_is_number, places, known, offsets, trait[order], size)

    def is_unlike(self, table: FactTable, rows: Ids, position: Ids) -> Flags:
        """(n,) whether the questions in these rows, which hide these positions (n,), have a head or a tail that is
        unlike those that stand there in the facts.
        """
        found = np.zeros(len(rows), dtype=np.bool_)
        for own in (HEAD, TAIL):
            asked, entity, place = self._given(table, rows, position, own)
            new = ~self._stands(entity, place)
            pairs, which = np.unique(place[new] * len(self.offsets) + entity[new], return_inverse=True)
            places, entities = np.divmod(pairs, len(self.offsets))
            found[asked[new]] |= (self._ratio(entities, places) <= _UNLIKE)[which]
        return found

    def told(self, table: FactTable, row: int, position: int) -> Iterator[Unlike]:
        """The head and the tail of the question in a row, which hides this position, where they are so."""
        for own in (HEAD, TAIL):
            _, entity, place = self._given(table, np.array([row]), np.array([position]), own)
            if len(entity) and not self._stands(entity, place)[0] and self._ratio(entity, place)[0] <= _UNLIKE:
                yield self._most_telling(entity, int(place[0]), own, int(table.relation[row]))

    # ------------------------------------------------------------------ how

    def _given(self, table: FactTable, rows: Ids, position: Ids, own: int) -> tuple[Ids, Ids, Ids]:
        """(k,) which of the questions say what entity stands at their `own` position, (k,) the entity and its place."""
        relation = table.relation[rows].astype(np.int64)
        says = (position != own) & (position != RELATION)
        if own == TAIL:
            says &= ~self.relation_is_number[relation]
        asked = np.flatnonzero(says).astype(np.int64)
        entity = (table.head if own == HEAD else table.tail_entity)[rows[asked]].astype(np.int64)
        return asked, entity, self.seen.keys(np.full(len(asked), own, dtype=np.int64), relation[asked])

    def _ratio(self, entity: Ids, place: Ids) -> Floats:
        """(n,) the logarithm of how many times as common the traits of entities (n,) are at places (n,), ascending,
        where they do not stand, as they would be if these were open to all; −∞ of entities of which no fact says
        anything.
        """
        found: Floats = np.where(np.diff(self.offsets)[entity] > 0, 0.0, -np.inf)
        keys, first, size = np.unique(place, return_index=True, return_counts=True)
        for key, start, end in zip(keys.tolist(), first.tolist(), (first + size).tolist(), strict=True):
            owner, _, ratio = self._ratios(entity[start:end], key)
            found[start:end] += np.bincount(owner, ratio, end - start)
        return found

    def _stands(self, entity: Ids, place: Ids) -> Flags:
        """(n,) whether a fact has these entities (n,) at these places (n,)."""
        wanted, last = place * len(self.offsets) + entity, len(self._known) - 1
        if last < 0:
            return np.zeros(len(entity), dtype=np.bool_)
        return np.asarray(self._known[np.minimum(np.searchsorted(self._known, wanted), last)] == wanted)

    @cached_property
    def _known(self) -> Ids:
        """Who stands where, as one ascending number each."""
        owner, value = self.seen.pairs(self.places)
        found: Ids = self.places[owner] * len(self.offsets) + value
        return found

    def _ratios(self, entity: Ids, place: int) -> tuple[Ids, Ids, Floats]:
        """Of each trait of some entities: whose it is, which it is, and the logarithm for it alone."""
        owner, slot = spread(self.offsets[entity], np.diff(self.offsets)[entity])
        trait, at_place = self.trait[slot], self._counted(place)
        expected, having = at_place.looked_at * (self.size[trait] - 1) / self.entities, at_place.having(trait)
        ratio = np.log((having + _DRAWN) / (expected + _DRAWN))
        says_nothing = (having >= _ENOUGH) | (at_place.looked_at < _FEWEST)
        return owner, trait, np.where(says_nothing, np.maximum(ratio, 0.0), ratio)

    def _most_telling(self, entity: Ids, place: int, position: int, relation: int) -> Unlike:
        _, trait, ratio = self._ratios(entity, place)
        if not len(trait):
            return Unlike(int(entity[0]), position, relation, False, 0, 0, None)
        least = trait[[len(trait) - 1 - int(np.argmin(ratio[::-1]))]]  # of equally telling ones the type
        where = None
        if least[0] < len(self.places):
            beside, group = np.divmod(self.places[least[0]], len(POSITION_GROUPS))
            where = int(group), int(beside)
        at_place = self._counted(place)
        having = int(at_place.having(least)[0])
        return Unlike(int(entity[0]), position, relation, True, at_place.looked_at, having, where)

    def _standing(self, place: int) -> Ids:
        return self.seen.pairs(np.array([place]))[1]

    def _counted(self, place: int) -> _Counted:
        if place not in self.counted:
            some = spaced(self._standing(place), _MOST)
            slot = spread(self.offsets[some], np.diff(self.offsets)[some])[1]
            self.counted[place] = _Counted(len(some), *np.unique(self.trait[slot], return_counts=True))
        return self.counted[place]


class _Counted(NamedTuple):
    """How common traits are at one place."""

    looked_at: int  # entities
    trait: Ids  # (k,) that any of them has, ascending
    times: Ids  # (k,) how many of them have it

    def having(self, trait: Ids) -> Ids:
        """(n,) how many have these traits (n,)."""
        if not len(self.trait):
            return np.zeros(len(trait), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.trait, trait), len(self.trait) - 1)
        return np.where(self.trait[at] == trait, self.times[at], 0)
