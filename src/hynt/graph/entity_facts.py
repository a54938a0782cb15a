"""The facts around one entity: as head, as tail, as the value of a qualifier. A mix of them where there are many.

Also how a notebook shows them, and a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.graph.fact import DATE_UNIT, Fact
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import POSITIONS, EntityPosition
from hynt.graph.sentences import Sentences
from hynt.graph.vocabulary import Vocabulary
from hynt.markup import Markup, shown
from hynt.notebook import SHOWN, box, more, pairs, quiet, table
from hynt.tables import Table

_LINES = 10
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with its bits well spread: products by it differ in all places."""


@dataclass(frozen=True)
class EntityFact:
    """A fact, the split it is in, and where the entity stands in it."""

    split: str
    position: EntityPosition
    fact: Fact


@dataclass(frozen=True, repr=False)
class EntityFacts(Table):
    """Some facts of an entity, and how many it has at each position: a sequence of facts, and a table."""

    entity: int
    counts: dict[EntityPosition, int]  # a fact that holds the entity twice counts at the first of head, tail, value
    facts: tuple[EntityFact, ...]
    graph: KnowledgeGraph = field(compare=False)
    table: FactTable = field(compare=False)  # the same facts, in columns

    def __len__(self) -> int:
        return len(self.facts)

    def __iter__(self) -> Iterator[Fact]:
        return (one.fact for one in self.facts)

    def __getitem__(self, place: int) -> Fact:
        return self.facts[place].fact

    def texts(self) -> list[str]:
        """Each fact on one line, for people."""
        from hynt.graph.sentences import Sentences

        words = Sentences(self.graph)
        return [words.fact(fact) for fact in self]

    def to_arrow(self) -> pa.Table:
        """A row per fact, with its split and where the entity stands in it."""
        from hynt.graph.columns import Names

        batch = Names(self.graph.vocabulary).with_units(self.table)
        split = pa.array([one.split for one in self.facts], pa.string())
        position = pa.array([one.position for one in self.facts], pa.string())
        return pa.table([split, position, *batch.columns], names=["split", "position", *batch.schema.names])

    def __repr__(self) -> str:
        """What it is, and its first facts in words."""
        lines = [f"<{self.total:,} facts of {self.graph.entity_labels[self.entity]}>", *self.texts()[:_LINES]]
        lines += [f"… and {self.total - _LINES:,} more"] if self.total > _LINES else []
        return shown("\n".join(lines))

    def _repr_html_(self) -> str:

        return entity_facts_html(self)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def left_out(self) -> int:
        return self.total - len(self.facts)


def facts_of(
    graph: KnowledgeGraph, entity: int, *, limit: int | None = None, positions: Sequence[EntityPosition] = POSITIONS
) -> EntityFacts:
    """The facts of an entity, by position and relation, those of a time series from the earliest to the latest; with a
    `limit`, as many different relations as fit in it.
    """
    found, places, splits = [], [], []
    for split, part in graph.splits.items():
        place = _position_in(part, entity, graph.vocabulary.relation_is_number)
        rows = np.flatnonzero(np.isin(place, [POSITIONS.index(position) for position in positions]))
        found.append(part.take(rows.astype(np.int64)))
        places.append(place[rows])
        splits += [split] * len(rows)
    every, place = concatenate(found), np.concatenate(places)
    asked = place * np.int64(graph.vocabulary.relation_count) + _relation_at(every, place, entity)
    chosen = _mixed(asked, place, every.qualifier_counts() > 0, limit)
    chosen = chosen[_in_time(asked[chosen], every.take(chosen), graph.vocabulary)]
    kept = every.take(chosen)
    facts = kept.facts(graph.vocabulary)
    return EntityFacts(
        entity,
        {position: int((place == POSITIONS.index(position)).sum()) for position in positions},
        tuple(
            EntityFact(splits[row], POSITIONS[place[row]], fact)
            for row, fact in zip(chosen.tolist(), facts, strict=True)
        ),
        graph,
        kept,
    )


def _position_in(table: FactTable, entity: int, relation_is_number: NDArray[np.bool_]) -> NDArray[np.int8]:
    """(n,) where the entity stands in each fact, as an index into POSITIONS; the last index + 1 where it does not."""
    place = np.full(len(table), len(POSITIONS), dtype=np.int8)
    values = (table.qualifier_entity == entity) & ~relation_is_number[table.qualifier_relation]
    place[table.qualifier_owner()[values]] = 2
    place[(table.tail_entity == entity) & ~relation_is_number[table.relation]] = 1
    place[table.head == entity] = 0
    return place


def _relation_at(table: FactTable, place: NDArray[np.int8], entity: int) -> NDArray[np.int32]:
    """(n,) the relation through which each fact meets the entity: the fact's own, or a qualifier's."""
    relation = table.relation.copy()
    owner = table.qualifier_owner()
    through = (place[owner] == 2) & (table.qualifier_entity == entity)
    relation[owner[through]] = table.qualifier_relation[through]
    return relation


def _in_time(group: NDArray[np.int64], table: FactTable, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """The rows (n,), which come group by group, with those of a group series by series and each series in time: the
    splits that the facts are in say nothing to a reader. Entities among the qualifiers tell series apart. The time is a
    qualifier's date, or where a fact has none, a qualifier's number: not every graph has marked its dates.
    """
    is_date = np.array([relation.unit == DATE_UNIT for relation in vocabulary.relations], dtype=np.bool_)
    owner, relation = table.qualifier_owner(), table.qualifier_relation
    named = ~vocabulary.relation_is_number[relation]
    when, has_date = np.full(len(table), -np.inf), np.zeros(len(table), dtype=np.bool_)
    has_date[owner[is_date[relation]]] = True
    telling = is_date[relation] | ~(named | has_date[owner])
    np.maximum.at(when, owner[telling], table.qualifier_number[telling])
    pair = relation[named].astype(np.uint64) * _MIX + table.qualifier_entity[named].astype(np.uint64) + np.uint64(1)
    marks = np.zeros(len(table), dtype=np.uint64)  # a sum over the pairs of a row: equal where they are the same
    np.add.at(marks, owner[named], pair * _MIX ^ (pair * _MIX >> np.uint64(29)))
    first = [np.unique(one, return_index=True, return_inverse=True)[1:] for one in (group, marks)]
    return np.lexsort((when, *(index[inverse] for index, inverse in reversed(first)))).astype(np.int64)


def _mixed(
    group: NDArray[np.int64], position: NDArray[np.int8], qualified: NDArray[np.bool_], limit: int | None
) -> NDArray[np.int64]:
    """Rows by position and group, in order of first appearance. Where there are more than `limit`: one of each group,
    then a second, …, with three groups of heads to one of tails and one of values, and qualified facts first.
    """
    order = np.lexsort((~qualified, group))
    names, first, size = np.unique(group, return_index=True, return_counts=True)
    turn = np.empty(len(group), dtype=np.int64)  # (n,) which one of its group a row is
    turn[order] = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
    place = position[first]  # (groups,)
    bare = ~np.logical_or.reduceat(qualified[order], np.cumsum(size) - size) if len(order) else ~qualified
    by_place = np.lexsort((first, bare, place))
    rank = np.empty(len(names), dtype=np.int64)  # (groups,) which group of its position it is
    rank[by_place] = np.arange(len(names)) - np.searchsorted(place[by_place], place[by_place])
    own = np.searchsorted(names, group)
    share = np.where(position == 0, rank[own] // 3, rank[own])
    chosen = np.lexsort((rank[own], position, share, turn))[:limit]
    return chosen[np.lexsort((chosen, first[own][chosen], position[chosen]))].astype(np.int64)


FEW = 5
"""Facts that stand for a whole graph."""


def graph_html(graph: KnowledgeGraph) -> str:
    """What a graph holds, and its first facts."""
    numeric = int(graph.vocabulary.relation_is_number.sum())
    listed = ", ".join(f"{name} {len(part):,}" for name, part in graph.splits.items())
    about = [
        ("facts", f"{len(graph):,} ({listed})"),
        ("entities", f"{len(graph.entities):,}"),
        ("relations", f"{len(graph.relations):,}, {numeric:,} of them with numbers"),
    ]
    about += [(name, value) for name, value in (("licence", graph.manifest.licence),) if value]
    first = facts_table(graph, list(islice(graph.facts(), FEW)))
    return box(f"graph {graph.name or 'without a name'}", pairs(about), first, more(len(graph) - FEW, "facts"))


def entity_facts_html(found: EntityFacts) -> str:
    """The facts of an entity, up to a screenful."""
    graph, few = found.graph, found.facts[:SHOWN]
    shown = facts_table(graph, [one.fact for one in few], [one.split for one in few])
    return (
        box(graph.entity_labels[found.entity], shown, more(found.total - len(few), "facts"))
        if few
        else box(graph.entity_labels[found.entity], quiet("No facts."))
    )


def facts_table(graph: KnowledgeGraph, facts: list[Fact], splits: list[str] | None = None) -> Markup:
    """Facts in words, a row each."""
    words = Sentences(graph)
    rows = [
        [
            words.entity(fact.head),
            words.relation(fact.relation),
            words.value(fact.tail),
            "; ".join(f"{words.relation(name)} {words.value(value)}" for name, value in fact.qualifiers),
            *([] if splits is None else [splits[place]]),
        ]
        for place, fact in enumerate(facts)
    ]
    return table(["head", "relation", "tail", "qualifiers", *([] if splits is None else ["split"])], rows)
