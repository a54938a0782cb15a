"""An entity's facts as a page tells them: a group per relation, those that most entities of its type have first, with
the numbers that make a series, and narrowed to facts that hold certain words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact import DATE_UNIT, Number
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.name_search import folded
from hynt.graph.sentences import Sentences
from hynt.graph.vocabulary import Flags, Ids, spread

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
        self._is_date = np.array([one.unit == DATE_UNIT for one in graph.relations], dtype=np.bool_)

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
        weight = self._weights(self.graph.entities[entity].type)[relation]
        order = np.lexsort((rows, -self._dates(rows), relation, -weight, places))
        rows, places, relation = rows[order], places[order], relation[order]
        cuts = np.flatnonzero((np.diff(relation) != 0) | (np.diff(places) != 0)) + 1
        return [
            FactGroup(int(places[part[0]]), int(relation[part[0]]), rows[part])
            for part in np.split(np.arange(len(rows)), cuts)
        ]

    def series(self, group: FactGroup) -> list[list[tuple[float, float]]]:
        """The lines that a head's numbers draw over time, each from (date, value) to (date, value); entities among the
        qualifiers tell lines apart. None where no line has two dates.
        """
        if group.position or not self.graph.vocabulary.relation_is_number[group.relation]:
            return []
        lines: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
        for fact in self.table.take(group.rows[:MOST_POINTS]).facts(self.graph.vocabulary):
            named = tuple(sorted((name, value) for name, value in fact.qualifiers if isinstance(value, str)))
            numbers = [value for _, value in fact.qualifiers if isinstance(value, Number)]
            dates = [one.value for one in numbers if one.unit == DATE_UNIT]
            if dates and isinstance(fact.tail, Number):
                lines.setdefault(named, {})[max(dates)] = fact.tail.value
        return [sorted(one.items()) for one in lines.values() if len(one) > 1][:MOST_LINES]

    # ------------------------------------------------------------------ how

    def _weights(self, type_name: str) -> NDArray[np.float64]:
        """(relations,) how telling each is: in tenths, the share of heads of a type that have it; of equals first those
        that name about one entity a head, which say what a thing is, then those with the most facts.
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
        owner, slot = _slots(self.table, rows)
        dated = self._is_date[self.table.qualifier_relation[slot]]
        np.maximum.at(found, owner[dated], self.table.qualifier_number[slot[dated]])
        return found

    def _holds(self, rows: Ids, words: str) -> Flags:
        """(facts,) whether every word is in what the fact says."""
        wanted = folded(words).split()
        facts = self.table.take(rows).facts(self.graph.vocabulary)
        texts = (folded(self._sentences.fact(fact), None) for fact in facts)
        return np.array([all(word in text for word in wanted) for text in texts], dtype=np.bool_)


def _slots(table: FactTable, rows: Ids) -> tuple[Ids, Ids]:
    """(qualifiers,) which of the rows owns each qualifier, and where it stands in the table."""
    return spread(table.offsets[:-1][rows], table.qualifier_counts()[rows])
