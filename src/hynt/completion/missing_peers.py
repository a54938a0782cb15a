"""Who lacks a relation that its peers have. No torch here.

The peers of an entity are the entities of its type. An entity without a type stands in several groups instead: one for
each place (a relation, and whether as its head, its tail or the value of a qualifier) that it is seen at. The share of
peers that have a relation as heads is counted in each group, and averaged over the groups of an entity. Counting
goes over memberships, one relation at a time: memory grows with the facts, and nothing is compared pair by pair.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph

FEWEST_PEERS = 5
"""A group with fewer entities says nothing about what is usual."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lacking:
    """Entities that lack one relation."""

    entity: Ids  # (n,) ascending
    share: NDArray[np.float64]  # (n,) of their peers, that have it
    peers: Ids  # (n,) how many peers each has in all its groups together


@dataclass(frozen=True, eq=False)
class Peers:
    """Memberships of entities in groups, entity by entity."""

    facts: FactTable  # that are known
    entity: Ids  # (m,) ascending
    group: Ids  # (m,) only groups that are large enough
    size: Ids  # (groups,) how many entities each has
    entity_count: int

    @classmethod
    def of(cls, graph: KnowledgeGraph, without: Collection[str] = ()) -> Peers:
        """By types, and by places where an entity has none; as if the splits `without` were not there."""
        facts = concatenate([table for name, table in graph.splits.items() if name not in without])
        count = graph.vocabulary.entity_count
        names = [entity.type for entity in graph.entities]
        typed = np.array([bool(name) for name in names], dtype=np.bool_)
        types, group_of = np.unique(np.array(names, dtype=object)[typed].astype(str), return_inverse=True)
        entity, place = _places(graph, facts)
        untyped = ~typed[entity]
        members = np.concatenate([np.flatnonzero(typed), entity[untyped]]).astype(np.int64)
        groups = np.concatenate([group_of, place[untyped] + len(types)]).astype(np.int64)
        size = np.bincount(groups, minlength=1).astype(np.int64)
        kept = np.flatnonzero(size[groups] >= FEWEST_PEERS)
        order = kept[np.argsort(members[kept], kind="stable")]
        return cls(facts, members[order], groups[order], size, count)

    def lacking(self, relation: int, share: float) -> Lacking:
        """The entities that have no fact with this relation, though at least this share of their peers has one."""
        has = np.zeros(self.entity_count, dtype=np.bool_)
        has[self.facts.head[self.facts.relation == relation]] = True
        holders = np.bincount(self.group[has[self.entity]], minlength=len(self.size))
        of_group = holders / np.maximum(self.size, 1)
        groups = np.bincount(self.entity, minlength=self.entity_count)
        total = np.bincount(self.entity, weights=of_group[self.group], minlength=self.entity_count)
        found = total / np.maximum(groups, 1)
        chosen = np.flatnonzero((groups > 0) & ~has & (found >= share)).astype(np.int64)
        peers = np.bincount(self.entity, weights=self.size[self.group] - 1, minlength=self.entity_count)
        return Lacking(chosen, found[chosen], peers[chosen].astype(np.int64))

    def relations(self) -> Ids:
        """The relations that some fact has, ascending."""
        return np.unique(self.facts.relation).astype(np.int64)


def _places(graph: KnowledgeGraph, facts: FactTable) -> tuple[Ids, Ids]:
    """(p,) entities and (p,) the places they are seen at, each pair once."""
    is_number = graph.vocabulary.relation_is_number
    tails, values = ~is_number[facts.relation], ~is_number[facts.qualifier_relation]
    entity = np.concatenate([facts.head, facts.tail_entity[tails], facts.qualifier_entity[values]]).astype(np.int64)
    places = [facts.relation, facts.relation[tails], facts.qualifier_relation[values]]
    place = np.concatenate([3 * relation.astype(np.int64) + kind for kind, relation in enumerate(places)])
    width = 3 * graph.vocabulary.relation_count
    pairs = np.unique(entity * width + place)
    return pairs // width, pairs % width
