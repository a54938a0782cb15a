"""Decoys: for each stored value another one that could stand in its place, drawn at random.

How a model scores decoys beside stored values says what its scores are worth at each place: where it cannot tell the
two apart, a low score means little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hynt.evaluation.questions import position_group
from hynt.graph.components import ENTITY_KIND, RELATION_KIND, Components
from hynt.graph.vocabulary import Vocabulary

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Places:
    """The different values seen in each place of a graph. A place is a position and, for values, its relation; for
    relations, the sort of value beside them.
    """

    sort: Ids  # (relations,) of the values that each relation carries
    key: Ids  # (p,) ascending
    start: Ids  # (p,) where its values begin
    size: Ids  # (p,) how many they are
    value: Ids  # (v,) entity or relation ids

    @classmethod
    def of(cls, parts: Components, vocabulary: Vocabulary) -> Places:
        """Of all entities and relations among these components."""
        sort = relation_sorts(vocabulary)
        named = (parts.kind == ENTITY_KIND) | (parts.kind == RELATION_KIND)
        chosen = parts.take(np.flatnonzero(named).astype(np.int64))
        pairs = np.unique(np.stack([place_keys(chosen, sort), _values(chosen)], axis=1), axis=0)
        key, start, size = np.unique(pairs[:, 0], return_index=True, return_counts=True)
        return cls(sort, key, start.astype(np.int64), size.astype(np.int64), pairs[:, 1])

    def keys(self, parts: Components) -> Ids:
        """(n,) a number for the place of each component."""
        return place_keys(parts, self.sort)

    def sizes(self, keys: Ids) -> Ids:
        """(n,) how many different values each place has."""
        return self.size[np.searchsorted(self.key, keys)]

    def seen(self, keys: Ids, count: int) -> Flags:
        """(n, count) which of the ids 0 … count − 1 are seen in each place."""
        found = np.zeros((len(keys), count), dtype=np.bool_)
        for row, at in enumerate(np.searchsorted(self.key, keys).tolist()):
            found[row, self.value[self.start[at] : self.start[at] + self.size[at]]] = True
        return found

    def draw(self, keys: Ids, seed: int) -> Ids:
        """(n,) one of the values of each place; it may be the stored one."""
        at = np.searchsorted(self.key, keys)
        place = (np.random.default_rng(seed).random(len(keys)) * self.size[at]).astype(np.int64)
        return self.value[self.start[at] + np.minimum(place, self.size[at] - 1)]


def relation_sorts(vocabulary: Vocabulary) -> Ids:
    """(relations,) equal where relations can stand beside the same values: those that carry entities, and those that
    carry numbers of one unit. A number in degrees is never a population, whatever a model makes of it.
    """
    sorts: dict[tuple[str, str], int] = {}
    return np.array(
        [sorts.setdefault((one.kind, one.unit), len(sorts)) for one in vocabulary.relations], dtype=np.int64
    )


def place_keys(parts: Components, sort: Ids | Flags) -> Ids:
    """(n,) a number for the place of each component, with the sort of each relation (relations,)."""
    beside = np.where(parts.kind == RELATION_KIND, sort[parts.relation], parts.relation)
    return position_group(parts.position) + 5 * beside.astype(np.int64)


def _values(parts: Components) -> Ids:
    return np.where(parts.kind == ENTITY_KIND, parts.entity, parts.relation).astype(np.int64)
