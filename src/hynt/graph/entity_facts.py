"""The facts around one entity: as head, as tail, as the value of a qualifier. A mix of them where there are many, as a
notebook shows them; or, as a page tells them, a group per relation, those that most entities of its type have first,
with the numbers that make a series, and narrowed to facts that hold certain words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.graph.fact import DATE_UNIT, Fact, Number
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import POSITIONS, EntityPosition, folded
from hynt.graph.sentences import Sentences
from hynt.graph.vocabulary import Flags, Floats, Ids, Vocabulary, begins, spread
from hynt.markup import Markup, shown
from hynt.names import plural
from hynt.results import SHOWN, Table, box, more, notebook_table, pairs, quiet

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
        words = Sentences(self.graph)
        return [words.fact(fact) for fact in self]

    def to_dict(self) -> dict[str, Any]:
        """The entity, how many facts it has at each position, and these facts, as plain values that JSON can hold."""
        words, one = Sentences(self.graph), self.graph.entities[self.entity]
        return {
            "entity": {"id": one.name, "label": self.graph.entity_labels[self.entity], "type": one.type},
            "counts": dict(self.counts),
            "left_out": self.left_out,
            "facts": [
                {"split": found.split, "position": found.position, **words.plain(found.fact)} for found in self.facts
            ],
        }

    def to_arrow(self) -> pa.Table:
        """A row per fact, with its split and where the entity stands in it."""
        from hynt.graph.columns import Names

        batch = Names(self.graph.vocabulary).with_units(self.table)
        split = pa.array([one.split for one in self.facts], pa.string())
        position = pa.array([one.position for one in self.facts], pa.string())
        return pa.table([split, position, *batch.columns], names=["split", "position", *batch.schema.names])

    def __repr__(self) -> str:
        """What it is, and its first facts in words."""
        title = f"<{plural(self.total, 'fact')} of {self.graph.entity_labels[self.entity]}>"
        lines = [title, *self.texts()[:_LINES]]
        lines += [f"… and {self.total - _LINES:,} more"] if self.total > _LINES else []
        return shown("\n".join(lines))

    def _repr_html_(self) -> str:
        name, few = self.graph.entity_labels[self.entity], self.facts[:SHOWN]
        if not few:
            return box(name, quiet("No facts."))
        shown = facts_table(self.graph, [one.fact for one in few], [one.split for one in few])
        return box(name, shown, more(self.total - len(few), "facts"))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def left_out(self) -> int:
        return self.total - len(self.facts)


def facts_of(
    graph: KnowledgeGraph,
    entity: int,
    *,
    limit: int | None = None,
    positions: Sequence[EntityPosition] = POSITIONS,
    weight: Floats | None = None,
) -> EntityFacts:
    """The facts of an entity, by position and relation, those of a time series from the earliest to the latest; with a
    `limit`, as many different relations as fit in it, those of greater `weight` (relations,) first.
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
    weighed = np.zeros(len(every)) if weight is None else weight[asked % graph.vocabulary.relation_count]
    chosen = _mixed(asked, place, every.qualifier_counts() > 0, weighed, limit)
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
    is_date, owner, relation = vocabulary.relation_is_date, table.qualifier_owner(), table.qualifier_relation
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
    group: NDArray[np.int64],
    position: NDArray[np.int8],
    qualified: NDArray[np.bool_],
    weight: Floats,
    limit: int | None,
) -> NDArray[np.int64]:
    """Rows by position and group, in order of first appearance. Where there are more than `limit`: one of each group,
    then a second, …, with three groups of heads to one of tails and one of values; of those qualified facts first, then
    those of greater `weight` (n,).
    """
    order = np.lexsort((~qualified, group))
    names, first, size = np.unique(group, return_index=True, return_counts=True)
    turn = np.empty(len(group), dtype=np.int64)  # (n,) which one of its group a row is
    turn[order] = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
    place = position[first]  # (groups,)
    bare = ~np.logical_or.reduceat(qualified[order], np.cumsum(size) - size) if len(order) else ~qualified
    by_place = np.lexsort((first, -weight[first], bare, place))
    rank = np.empty(len(names), dtype=np.int64)  # (groups,) which group of its position it is
    rank[by_place] = np.arange(len(names)) - np.searchsorted(place[by_place], place[by_place])
    own = np.searchsorted(names, group)
    share = np.where(position == 0, rank[own] // 3, rank[own])
    chosen = np.lexsort((rank[own], position, share, turn))[:limit]
    return chosen[np.lexsort((chosen, first[own][chosen], -weight[chosen], position[chosen]))].astype(np.int64)


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
    return notebook_table(["head", "relation", "tail", "qualifiers", *([] if splits is None else ["split"])], rows)


MOST_SEARCHED = 10_000
"""Facts of an entity that are looked through for words."""
MOST_POINTS = 400
MOST_LINES = 4


@dataclass(frozen=True)
class FactGroup:
    """Facts of an entity with one relation, at one position; the newest first where they are dated."""

    position: int
    relation: int
    rows: Ids  # (facts,)


class EntityGroups:
    """Groups the facts of entities of one graph."""

    def __init__(self, graph: KnowledgeGraph, table: FactTable) -> None:
        self.graph, self.table = graph, table
        self._sentences = Sentences(graph)
        self._usages: dict[str, tuple[Ids, Ids]] = {}  # by type

    def groups(self, entity: int, rows: Ids, places: NDArray[np.int8], words: str = "") -> list[FactGroup]:
        """(facts,) rows of the table and where the entity stands in each, as groups: those of heads first, and of one
        position the relations that most entities of its type have.
        """
        if words.strip():
            rows, places = rows[:MOST_SEARCHED], places[:MOST_SEARCHED]
            hit = self._holds(rows, words)
            rows, places = rows[hit], places[hit]
        if not len(rows):
            return []
        relation = self.table.relation[rows]
        weight = self.weights(self.graph.entities[entity].type)[relation]
        order = np.lexsort((rows, -self._dates(rows), relation, -weight, places))
        rows, places, relation = rows[order], places[order], relation[order]
        cuts = np.flatnonzero(begins(relation, places))[1:]
        return [
            FactGroup(int(places[part[0]]), int(relation[part[0]]), rows[part])
            for part in np.split(np.arange(len(rows)), cuts)
        ]

    def series(self, group: FactGroup) -> list[list[tuple[float, float]]]:
        """The lines that a head's numbers draw over time, each from (date, value) to (date, value); entities among the
        qualifiers tell lines apart. None where no line has two dates. A fact with another number beside its date, such
        as an isotope's mass number, is no point of a line.
        """
        if group.position or not self.graph.vocabulary.relation_is_number[group.relation]:
            return []
        lines: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
        for fact in self.table.take(group.rows[:MOST_POINTS]).facts(self.graph.vocabulary):
            named = tuple(sorted((name, value) for name, value in fact.qualifiers if isinstance(value, str)))
            numbers = [value for _, value in fact.qualifiers if isinstance(value, Number)]
            dates = [one.value for one in numbers if one.unit == DATE_UNIT]
            if dates and len(dates) == len(numbers) and isinstance(fact.tail, Number):
                lines.setdefault(named, {})[max(dates)] = fact.tail.value
        return [sorted(one.items()) for one in lines.values() if len(one) > 1][:MOST_LINES]

    # ------------------------------------------------------------------ how

    def weights(self, type_name: str) -> Floats:
        """(relations,) how telling each is: in tenths, the share of heads of a type that have it; of equals first those
        that name about one entity per head, which say what a thing is, then those with the most facts.
        """
        heads, facts = self._usage(type_name)
        share = np.round(10 * heads / max(float(heads.max(initial=0)), 1.0))
        says_what = ~self.graph.vocabulary.relation_is_number & (facts < 2 * heads)
        return np.asarray(share + np.where(says_what, 0.9, 0.8 * facts / max(float(facts.max(initial=0)), 1.0)))

    def _usage(self, type_name: str) -> tuple[Ids, Ids]:
        """(relations,) heads of the type that have each relation, and the facts that these are."""
        if type_name not in self._usages:
            head, relation, facts = self._couples
            of_type, width = self._types[head] == type_name, self.graph.vocabulary.relation_count
            heads = np.bincount(relation[of_type], minlength=width)
            counts = np.bincount(relation[of_type], facts[of_type], minlength=width).astype(np.int64)
            self._usages[type_name] = heads, counts
        return self._usages[type_name]

    @cached_property
    def _types(self) -> NDArray[np.object_]:
        return np.array([one.type for one in self.graph.entities], dtype=np.object_)

    @cached_property
    def _couples(self) -> tuple[Ids, Ids, Ids]:
        """Every head and relation that stand in a fact together, and in how many."""
        width = np.int64(self.graph.vocabulary.relation_count)
        found, counts = np.unique(self.table.head * width + self.table.relation, return_counts=True)
        return found // width, found % width, counts

    def _dates(self, rows: Ids) -> NDArray[np.float64]:
        """(facts,) the latest date among the qualifiers of each; least where there is none."""
        found = np.full(len(rows), -np.inf)
        owner, slot = spread(self.table.offsets[:-1][rows], self.table.qualifier_counts()[rows])
        dated = self.graph.vocabulary.relation_is_date[self.table.qualifier_relation[slot]]
        np.maximum.at(found, owner[dated], self.table.qualifier_number[slot[dated]])
        return found

    def _holds(self, rows: Ids, words: str) -> Flags:
        """(facts,) whether every word is in what the fact says."""
        wanted = folded(words).split()
        facts = self.table.take(rows).facts(self.graph.vocabulary)
        texts = (folded(self._sentences.fact(fact), None) for fact in facts)
        return np.array([all(word in text for word in wanted) for text in texts], dtype=np.bool_)
