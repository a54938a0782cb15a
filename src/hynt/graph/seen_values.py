"""Which values are seen at each place of some facts, and which qualifiers are usual there: one index for all who ask
what could stand there.

A place is a position (head, tail, value of a qualifier) of a relation. For relations themselves it is a position and
the sort of relation; unless sorts are told, all relations are of one sort.

Every life expectancy has a date and none a currency. Asked otherwise, a question is like none that was held out, and
what was measured there promises nothing about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import (
    FIRST_QUALIFIER,
    HEAD,
    POSITION_GROUPS,
    RELATION,
    TAIL,
    FactTable,
    concatenate,
    position_group,
    qualifier_of,
)
from hynt.graph.vocabulary import Flags, Floats, Ids, Vocabulary, spread


@dataclass(frozen=True, eq=False)
class SeenValues:
    """The different values of `p` places, end to end."""

    sort: Ids  # (relations,)
    key: Ids  # (p,) the places, ascending
    offsets: Ids  # (p + 1,) the values of place i are offsets[i] … offsets[i + 1]
    value: Ids  # (v,) entity or relation ids, ascending within a place

    @classmethod
    def of(cls, tables: Iterable[FactTable], relation_is_number: Flags, sort: Ids | None = None) -> SeenValues:
        """All that these facts hold, but for numbers."""
        sort = np.zeros(len(relation_is_number), dtype=np.int64) if sort is None else sort
        found = []
        for table in tables:
            tail, pair = ~relation_is_number[table.relation], ~relation_is_number[table.qualifier_relation]
            found += [
                (HEAD, table.relation, table.head),
                (RELATION, table.relation, table.relation),
                (TAIL, table.relation[tail], table.tail_entity[tail]),
                (FIRST_QUALIFIER, table.qualifier_relation, table.qualifier_relation),
                (FIRST_QUALIFIER + 1, table.qualifier_relation[pair], table.qualifier_entity[pair]),
            ]
        width = max((int(value.max()) + 1 for _, _, value in found if len(value)), default=1)
        pairs = [
            place_keys(np.full(len(value), position, dtype=np.int64), relation, sort) * width + value
            for position, relation, value in found
        ]
        place, values = np.divmod(np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *pairs])), width)
        key, first = np.unique(place, return_index=True)
        return cls(sort, key, np.append(first, len(values)).astype(np.int64), values)

    def keys(self, position: Ids, relation: NDArray[np.integer]) -> Ids:
        """(n,) the places of components at these positions of these relations."""
        return place_keys(position, relation, self.sort)

    def spans(self, keys: Ids) -> tuple[Ids, Ids]:
        """(n,) where the values of each place start, and (n,) how many they are."""
        if not len(self.key):
            return np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        size = np.where(self.key[at] == keys, np.diff(self.offsets)[at], 0)
        return self.offsets[at], size

    def sizes(self, keys: Ids) -> Ids:
        """(n,) how many different values each place has."""
        return self.spans(keys)[1]

    def pairs(self, keys: Ids) -> tuple[Ids, Ids]:
        """(k,) which of the places, and (k,) a value seen there."""
        owner, slot = spread(*self.spans(keys))
        return owner, self.value[slot]

    def mask(self, keys: Ids, count: int) -> Flags:
        """(n, count) which of the ids 0 … count − 1 are seen in each place."""
        found = np.zeros((len(keys), count), dtype=np.bool_)
        found[self.pairs(keys)] = True
        return found

    def at(self, position: int, relation: int = 0) -> Ids:
        """The values of one place."""
        return self.pairs(self.keys(np.array([position]), np.array([relation])))[1]

    def of_entities(self) -> Ids:
        """The places that hold entities."""
        found: Ids = self.key[self.key % len(POSITION_GROUPS) % 2 == 0]
        return found

    def under_any_relation(self, position: int) -> Ids:
        """The values seen at a position, some of them several times."""
        group = position_group(np.array([position], dtype=np.int64))[0]
        return self.pairs(self.key[self.key % len(POSITION_GROUPS) == group])[1]

    def draw(self, keys: Ids, seed: int) -> Ids:
        """(n,) one of the values of each place, at random."""
        start, size = self.spans(keys)
        place = (np.random.default_rng(seed).random(len(keys)) * size).astype(np.int64)
        return self.value[start + np.minimum(place, size - 1)]


def place_keys(position: Ids, relation: NDArray[np.integer], sort: NDArray[np.generic]) -> Ids:
    """(n,) a number for the place of each component, given the sort of each relation (relations,)."""
    group = position_group(position)
    beside = np.where(group % 2 == 1, sort[relation], relation)
    return group + len(POSITION_GROUPS) * beside.astype(np.int64)


NEARLY_ALWAYS = 0.95
"""The share of a relation's facts that must carry a qualifier for it to belong to them."""
FEWEST_FACTS = 20
"""The least number of facts that show what a relation's facts usually say."""
_SHARED = 0.05
"""Of the facts that carry a qualifier: a number that fewer of them have says nothing about others."""
_SLACK = 0.1
"""Of the range of a qualifier's numbers: so far beyond it a question is still like them."""


@dataclass(frozen=True, eq=False)
class UsualQualifiers:
    """`p` pairs of a relation and the relation of a qualifier that its facts nearly always carry; and what they carry
    at all.
    """

    relations: int  # of the vocabulary
    key: Ids  # (p,) relation × relations + qualifier, ascending
    share: Floats  # (p,) of the relation's facts
    facts: Ids  # (p,) how many facts the relation has
    common: tuple[float | None, ...]
    """(p,) the commonest value, an entity's id or a number; of equally common ones the last. None where facts have
    numbers of their own."""
    carried: Ids  # (c,) such pairs of which there is any fact, ascending
    ends: Floats  # (2, c) the least and the greatest number of each; −∞ and ∞ of entities
    stands: Flags  # (relations,) which relations are those of a fact, not of qualifiers alone

    @classmethod
    def of(cls, tables: Sequence[FactTable], vocabulary: Vocabulary) -> UsualQualifiers:
        table, width = concatenate(list(tables)), vocabulary.relation_count
        owner = table.qualifier_owner()
        pair = table.relation[owner].astype(np.int64) * width + table.qualifier_relation
        once = np.unique(np.stack([owner, pair]), axis=1)[1] if len(owner) else pair
        carried, count = np.unique(once, return_counts=True)
        size = np.bincount(table.relation, minlength=width)
        facts = size[carried // width]
        usual = (facts >= FEWEST_FACTS) & (count >= NEARLY_ALWAYS * facts)
        key, count, facts = carried[usual], count[usual], facts[usual]
        is_number = vocabulary.relation_is_number[table.qualifier_relation]
        value = np.where(is_number, table.qualifier_number, table.qualifier_entity)
        order = np.argsort(pair, kind="stable")
        starts, ends = (np.searchsorted(pair[order], key, side=side) for side in ("left", "right"))
        common: list[float | None] = []
        for one, start, end in zip(key.tolist(), starts.tolist(), ends.tolist(), strict=True):
            values, times = np.unique(value[order[start:end]], return_counts=True)
            best = len(times) - 1 - int(np.argmax(times[::-1]))
            named = vocabulary.relations[one % width]
            own = named.kind == "number" and named.unit != DATE_UNIT and times[best] < _SHARED * (end - start)
            common.append(None if own else float(values[best]))
        ends = np.full((2, len(carried)), np.inf) * np.array([[-1.0], [1.0]])
        first = np.searchsorted(pair[order], carried)
        if len(carried):
            numeric = vocabulary.relation_is_number[carried % width]
            for row, least in enumerate((np.minimum, np.maximum)):
                ends[row, numeric] = least.reduceat(value[order], first)[numeric]
        every = (key, count / np.maximum(facts, 1), facts.astype(np.int64), tuple(common))
        return cls(width, *every, carried.astype(np.int64), ends, size > 0)

    def lacking(self, table: FactTable, row: int, position: int) -> Ids:
        """The pairs, by number, that the question in a row lacks which hides this position."""
        if position == RELATION:
            return np.zeros(0, dtype=np.int64)
        own = np.flatnonzero(self.key // self.relations == int(table.relation[row])).astype(np.int64)
        given = table.qualifier_relation[int(table.offsets[row]) : int(table.offsets[row + 1])]
        lacking = own[~np.isin(self.key[own] % self.relations, given)]
        # Where the relation of a qualifier is asked for, it may be the only one that is lacking.
        return lacking[:0] if position > TAIL and position % 2 == 1 and len(lacking) == 1 else lacking

    def unheard(self, table: FactTable, row: int, position: int) -> Ids:
        """The relations of qualifiers that the question in a row has which hides this position, and no fact of its
        relation; the relation itself where no fact has it.
        """
        relation = int(table.relation[row])
        if position == RELATION:
            return np.zeros(0, dtype=np.int64)
        if not self.stands[relation]:
            return np.array([relation])
        given = table.take(np.array([row])).qualifier_relation.astype(np.int64)
        odd = ~np.isin(relation * self.relations + given, self.carried)
        if position > TAIL and position % 2 == 1:
            odd[qualifier_of(position)] = False  # it is asked for
        return np.unique(given[odd])

    def beyond(self, table: FactTable, row: int, position: int) -> list[tuple[int, float, float, float]]:
        """Of each qualifier of the question in a row whose number lies far beyond those of all facts of its relation:
        its relation, the number, and the least and greatest of the facts.
        """
        slots, at = self._beyond(table.take(np.array([row])), np.array([position]))
        taken, ends = table.take(np.array([row])), self.ends[:, at]
        columns = (taken.qualifier_relation[slots], taken.qualifier_number[slots], *ends)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def is_beyond(self, table: FactTable, rows: Ids, position: Ids) -> Flags:
        """(n,) whether the questions in these rows, which hide these positions (n,), have such a qualifier."""
        taken = table.take(rows)
        found = np.zeros(len(rows), dtype=np.bool_)
        found[taken.qualifier_owner()[self._beyond(taken, position)[0]]] = True
        return found

    def _beyond(self, taken: FactTable, position: Ids) -> tuple[Ids, Ids]:
        """(k,) qualifiers of the questions, one for each row, and (k,) which of `carried` they are."""
        nothing = np.zeros(0, dtype=np.int64)
        if not len(self.carried):
            return nothing, nothing
        owner = taken.qualifier_owner()
        pair = taken.relation[owner].astype(np.int64) * self.relations + taken.qualifier_relation
        at = np.minimum(np.searchsorted(self.carried, pair), len(self.carried) - 1)
        low, high = self.ends[:, at]
        slack, value = _SLACK * (high - low), taken.qualifier_number
        out = (self.carried[at] == pair) & ((value < low - slack) | (value > high + slack))
        out &= ~self._asked_for(taken, owner, position) & (position[owner] != RELATION)
        slots = np.flatnonzero(out).astype(np.int64)
        return slots, at[slots].astype(np.int64)

    @staticmethod
    def _asked_for(taken: FactTable, owner: Ids, position: Ids) -> Flags:
        """Of each qualifier, whether it is the one that its question hides a part of."""
        here = np.arange(len(owner)) - taken.offsets[owner] == qualifier_of(position[owner])
        return np.asarray(here & (position[owner] > TAIL))

    def is_unusual(self, table: FactTable, rows: Ids, position: Ids) -> Flags:
        """(n,) whether the questions in these rows, which hide these positions (n,), are unlike all facts: whether
        they lack what facts nearly always say, or say what none does.
        """
        taken = table.take(rows)
        owner, count = taken.qualifier_owner(), len(rows)
        pair = taken.relation[owner].astype(np.int64) * self.relations + taken.qualifier_relation
        wanted = np.bincount(self.key // self.relations, minlength=self.relations)[taken.relation]
        usual = np.isin(pair, self.key)
        met = np.unique(owner[usual] * np.int64(self.relations) + taken.qualifier_relation[usual])
        lacks = np.bincount(met // self.relations, minlength=count) < wanted
        asked_for = self._asked_for(taken, owner, position) & (position[owner] % 2 == 1)
        odd = np.bincount(owner[~np.isin(pair, self.carried) & ~asked_for], minlength=count) > 0
        return np.asarray((position != RELATION) & (lacks | odd | ~self.stands[taken.relation]))
