"""The questions that missing facts raise: many relations together, so that scoring goes in full tiles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.columns import AskedFacts
from hynt.asking.predictor import Predictor
from hynt.asking.refusals import off_scale
from hynt.completion.missing_confidence import ExpectedPlaces
from hynt.evaluation.metrics import answerable
from hynt.graph.content_hash import question_keys
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import ENTITY_KIND, NUMBER_KIND, TAIL, FactTable, component_starts, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.seen_values import SeenValues
from hynt.graph.vocabulary import Ids
from hynt.models.contract import unpredictable

AT_ONCE = 16_384
"""Questions that are scored together."""


@dataclass(frozen=True, eq=False)
class MissingBatch:
    """Some questions for tails, and what peers say of them."""

    asked: AskedFacts  # (n,)
    share: NDArray[np.float64]  # (n,) of peers that have the relation
    peers: Ids  # (n,) how many there are

    def __len__(self) -> int:
        return len(self.share)


class MissingQuestions:
    """For each relation and each entity that lacks it."""

    def __init__(self, predictor: Predictor, peers: Peers, relations: Ids, lacking: Callable[[int], Lacking]) -> None:
        """`lacking` says of a relation which entities to ask about."""
        self._predictor, self._peers, self._relations, self._lacking = predictor, peers, relations, lacking
        self._looked = 0
        self.lacked = 0  # relations that someone lacks
        self.unasked = 0  # questions that the model cannot answer

    def done(self) -> float:
        """The share of the relations that was looked at, from 0 to 1."""
        return self._looked / max(1, len(self._relations))

    def batches(self) -> Iterator[MissingBatch]:
        """All questions, relation by relation, at most `AT_ONCE` together."""
        waiting: list[MissingBatch] = []
        for relation in self._relations.tolist():
            lacking = self._lacking(relation)
            usual = self._usual(relation) if len(lacking.entity) else None
            self._looked += 1
            self.lacked += bool(len(lacking.entity))
            self.unasked += len(lacking.entity) if usual is None else 0
            if usual is None:
                continue
            for first in range(0, len(lacking.entity), AT_ONCE):
                few = lacking.take(np.arange(first, min(first + AT_ONCE, len(lacking.entity))))
                if waiting and sum(len(one) for one in waiting) + len(few.entity) > AT_ONCE:
                    yield _joined(waiting)
                    waiting = []
                waiting.append(self._asked(usual, few))
        if waiting:
            yield _joined(waiting)

    def _usual(self, relation: int) -> FactTable | None:
        """A fact of the relation as it is usually written, for its tail to be asked; None where the model cannot."""
        graph, loaded = self._predictor.graph, self._predictor.loaded
        usual = usual_qualifiers(self._peers.facts, relation, graph)
        kind = ENTITY_KIND
        if graph.vocabulary.relation_is_number[relation]:  # the tail is a filler that nobody reads
            kind = NUMBER_KIND
            usual = replace(usual, tail_number=np.ones(1), tail_literal=pa.array(["1.0"], type=pa.string()))
        can = answerable(loaded.model, np.array([TAIL]), np.array([kind]))[0]
        can &= kind != NUMBER_KIND or not unpredictable(loaded.model, np.array([relation]))[0]
        return usual if can and not off_scale(loaded, usual) else None

    def _asked(self, usual: FactTable, lacking: Lacking) -> MissingBatch:
        """What is the tail of the usual fact, for each of these heads?"""
        count = len(lacking.entity)
        table = replace(usual.take(np.zeros(count, dtype=np.int64)), head=lacking.entity.astype(np.int32))
        position = np.full(count, TAIL, dtype=np.int64)
        asked = AskedFacts.of_triplets(table, position, self._predictor.graph.vocabulary.relation_is_number)
        return MissingBatch(asked, lacking.share, lacking.peers)


def _joined(parts: list[MissingBatch]) -> MissingBatch:
    return MissingBatch(
        AskedFacts.concatenated([part.asked for part in parts]),
        np.concatenate([part.share for part in parts]),
        np.concatenate([part.peers for part in parts]),
    )


# The qualifiers that a relation's facts usually carry: a question without them would ask for another kind of fact.

OF_DATES, OF_OTHERS = 1 / 3, 3 / 4
"""The share of a relation's heads that must carry the very same qualifiers for a question to be asked with them.

When a fact holds is what a question has to say, so a list of dates need not be very common. Any other qualifier may
be part of the answer (the length of a border, the height of the lowest point), unless nearly all share it.
"""


def usual_qualifiers(facts: FactTable, relation: int, graph: KnowledgeGraph) -> FactTable:
    """One fact of the relation with its usual qualifiers, or with none where no list of them is usual.

    The list, order aside, that the most heads carry; of equally common ones the shorter, then the one met first. Head
    and tail of the fact mean nothing.
    """
    own = facts.take(np.flatnonzero(facts.relation == relation).astype(np.int64))
    key = _qualifier_keys(own, graph.vocabulary.relation_is_number)
    _, first, back = np.unique(key, axis=0, return_index=True, return_inverse=True)
    heads = int(own.head.max()) + 1
    pairs = np.unique(back.reshape(-1).astype(np.int64) * heads + own.head)
    carried = np.bincount(pairs // heads, minlength=len(first)) / len(np.unique(own.head))
    lists = own.take(first.astype(np.int64))
    is_date = np.array([one.unit == DATE_UNIT for one in graph.relations], dtype=np.bool_)
    others = np.bincount(lists.qualifier_owner()[~is_date[lists.qualifier_relation]], minlength=len(lists))
    usual = np.flatnonzero(carried >= np.where(others > 0, OF_OTHERS, OF_DATES))
    if not len(usual):
        first_fact = own.take(np.zeros(1, dtype=np.int64))
        return first_fact.with_qualifiers(np.zeros(first_fact.qualifier_total, dtype=np.bool_))
    best = np.lexsort((first[usual], lists.qualifier_counts()[usual], -carried[usual]))[0]
    return lists.take(usual[best : best + 1].astype(np.int64))


def _qualifier_keys(own: FactTable, relation_is_number: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(n, 2) equal where the qualifiers are, whatever head and tail are."""
    same = replace(
        own,
        head=np.zeros_like(own.head),
        tail_entity=np.zeros_like(own.tail_entity),
        tail_number=np.zeros_like(own.tail_number),
    )
    keys: NDArray[np.uint64] = question_keys(same, relation_is_number)[component_starts(same)[:-1]]
    return keys


# Who lacks a relation that its peers have. No torch here.
#
# The peers of an entity are the entities of its type. An entity without a type stands in several groups instead: one
# for each place (a relation, and whether as its head, its tail or the value of a qualifier) that it is seen at. The
# share of peers that have a relation as heads is counted in each group, and averaged over the groups of an entity.
# Counting goes over memberships, one relation at a time: memory grows with the facts, and nothing is compared pair by
# pair.

FEWEST_PEERS = 5
"""A group with fewer entities says nothing about what is usual."""


@dataclass(frozen=True, eq=False)
class Lacking:
    """Entities that lack one relation."""

    entity: Ids  # (n,) ascending
    share: NDArray[np.float64]  # (n,) of their peers, that have it
    peers: Ids  # (n,) how many peers each has in all its groups together

    def take(self, kept: Ids) -> Lacking:
        """Those with these row numbers."""
        return Lacking(self.entity[kept], self.share[kept], self.peers[kept])

    def among(self, heads: Ids | None) -> Lacking:
        """Those of them that are `heads`; all where that is None."""
        return self if heads is None else self.take(np.flatnonzero(np.isin(self.entity, heads)))

    def at_most(self, count: int) -> Lacking:
        """Some of them, evenly chosen."""
        size = len(self.entity)
        return self.take(np.linspace(0, size - 1, min(size, count)).astype(np.int64))


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
        seen = SeenValues.of([facts], graph.vocabulary.relation_is_number)
        which, entity = seen.pairs(seen.of_entities())
        place = seen.of_entities()[which]
        untyped = ~typed[entity]
        members = np.concatenate([np.flatnonzero(typed), entity[untyped]]).astype(np.int64)
        groups = np.concatenate([group_of, place[untyped] + len(types)]).astype(np.int64)
        size = np.bincount(groups, minlength=1).astype(np.int64)
        kept = np.flatnonzero(size[groups] >= FEWEST_PEERS)
        order = kept[np.argsort(members[kept], kind="stable")]
        return cls(facts, members[order], groups[order], size, count)

    def lacking(self, relation: int, share: float) -> Lacking:
        """The entities that have no fact with this relation, though at least this share of their peers has one."""
        count, of_peers, expects = self._standing(relation, share)
        return self._chosen(expects & (count == 0), of_peers)

    def emptied(self, relation: int, share: float, kept: FactTable) -> Lacking:
        """The entities that have such facts, but none among those that are `kept`."""
        count, of_peers, expects = self._standing(relation, share)
        expects[kept.head[kept.relation == relation]] = False
        return self._chosen(expects & (count > 0), of_peers)

    def expected(self, share: float, kept: FactTable) -> ExpectedPlaces:
        """Every head and relation that at least this share of its peers has; `kept` are facts without validation."""
        heads, relations, facts, left = [], [], [], []
        for relation in self.relations().tolist():
            count, _, expects = self._standing(relation, share)
            heads.append(np.flatnonzero(expects).astype(np.int32))
            relations.append(np.full(len(heads[-1]), relation, dtype=np.int32))
            facts.append(count[heads[-1]])
            own = np.bincount(kept.head[kept.relation == relation], minlength=self.entity_count)
            left.append(own[heads[-1]])
        chance = 1.0 - len(kept) / len(self.facts)
        return ExpectedPlaces(
            np.concatenate(heads), np.concatenate(relations), np.concatenate(facts), np.concatenate(left), chance
        )

    def _standing(self, relation: int, share: float) -> tuple[Ids, NDArray[np.float64], NDArray[np.bool_]]:
        """(entities,) how many facts with the relation each has, which share of its peers has any, and whether that is
        at least `share`.
        """
        count = np.bincount(self.facts.head[self.facts.relation == relation], minlength=self.entity_count)
        holders = np.bincount(self.group[count[self.entity] > 0], minlength=len(self.size))
        of_group = holders / np.maximum(self.size, 1)
        groups = np.bincount(self.entity, minlength=self.entity_count)
        total = np.bincount(self.entity, weights=of_group[self.group], minlength=self.entity_count)
        found = total / np.maximum(groups, 1)
        return count, found, (groups > 0) & (found >= share)

    def _chosen(self, chosen: NDArray[np.bool_], share: NDArray[np.float64]) -> Lacking:
        entity = np.flatnonzero(chosen).astype(np.int64)
        peers = np.bincount(self.entity, weights=self.size[self.group] - 1, minlength=self.entity_count)
        return Lacking(entity, share[entity], peers[entity].astype(np.int64))

    def relations(self) -> Ids:
        """The relations that some fact has, ascending."""
        return np.unique(self.facts.relation).astype(np.int64)
