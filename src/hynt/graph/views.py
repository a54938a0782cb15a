"""What there is to see in a graph, as plain values: entities by name, their facts, relations and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.graph.entity_facts import MOST_SEARCHED, EntityFacts, EntityGroups, FactGroup, facts_of
from hynt.graph.fact import DATE_UNIT, Fact, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import POSITIONS, EntityPosition, NameLookup, NameSearch, folded
from hynt.graph.number_summary import NumberSummary, SortedNumbers, sorted_numbers, summarise_numbers
from hynt.graph.sentences import Sentences, format_stored
from hynt.graph.units.conversion import display_of
from hynt.graph.vocabulary import begins, offsets_of, spaced

_LONGEST = 200  # characters of a name that is written in the place of an id
_MOST_TYPED, _COMMON = 10_000, 0.1
"""Entities whose types are counted, and the least share for which a type is named."""
_SHOWN, _SUGGESTED, _TYPES = 10, 8, 2
"""What stands beside a relation, what is suggested, and the types that are named."""
BINS = 40
"""Of the distribution of a relation's numbers."""


class GraphViews:
    """Plain values for JSON and for pages, made from one graph. Nothing here takes more than some milliseconds."""

    def __init__(self, graph: KnowledgeGraph, added: Callable[[Fact], str] = lambda fact: "") -> None:
        """`added` says where a fact came from that is newer than the run; "" of any other."""
        self.graph, self._added = graph, added
        self._sentences = Sentences(graph)
        self._index = EntityIndex(graph)
        self._groups = EntityGroups(graph, self._index.table)
        self._search = NameSearch(graph.entity_labels, self._index.degree)
        self.names = NameLookup(graph, self._search)
        table, is_number = self._index.table, graph.vocabulary.relation_is_number
        count = graph.vocabulary.relation_count
        self._as_fact = np.bincount(table.relation, minlength=count)
        self._as_qualifier = np.bincount(table.qualifier_relation, minlength=count)
        self._numbers: SortedNumbers = sorted_numbers(table, is_number)
        self._summaries: dict[int, NumberSummary] = {
            summary.relation: summary for summary in summarise_numbers(table, is_number)
        }
        self._folded_relations = [folded(f"{one.label} {one.name}") for one in graph.relations]
        self._folded_meanings = [folded(f"{one.label} {one.name} {one.description}") for one in graph.relations]

    # ------------------------------------------------------------------ entities

    def entities(self, query: str, limit: int) -> dict[str, Any]:
        """The entities that a query may mean, best first."""
        found, more = self._search.find(query, limit)
        listed = [{**self._entity(one.identity), "match": one.match} for one in found]
        own = self.graph.vocabulary.entity_ids.get(query)
        if own is not None:  # an id as written is never wrong
            listed = [{**self._entity(own), "match": "exact"}, *(one for one in listed if one["id"] != query)][:limit]
        return {"query": query, "entities": listed, "more": more}

    def entity(self, name: str, offset: int, limit: int, position: EntityPosition | None) -> dict[str, Any]:
        """An entity by its id or name, and a page of its facts."""
        identity = self.names.entity(name)
        counts = self._index.counts(identity)
        rows, places = self._index.page(identity, offset, limit, position)
        origins = self._index.origins(rows)
        facts = self._index.table.take(rows).facts(self.graph.vocabulary)
        total = sum(counts.values()) if position is None else counts[position]
        return {
            "entity": self._entity(identity),
            "counts": counts,
            "total": total,
            "offset": offset,
            "series": self._series(identity),
            "facts": [
                {"split": split, "position": place, "added": self._added(fact), **self.fact(fact)}
                for (split, _), place, fact in zip(origins, places, facts, strict=True)
            ],
        }

    def entity_by_relation(
        self, name: str, position: EntityPosition | None, relation: str, words: str, offset: int, limit: int, few: int
    ) -> dict[str, Any]:
        """An entity by its id or name, and its facts in groups: `limit` groups from `offset` on with `few` facts each;
        or where a relation is named, `limit` facts of it.
        """
        identity = self.names.entity(name)
        rows, places = self._index.all(identity)
        if position is not None:
            chosen = places == POSITIONS.index(position)
            rows, places = rows[chosen], places[chosen]
        if relation:
            chosen = self._index.table.relation[rows] == self.names.relation(relation)
            rows, places = rows[chosen], places[chosen]
        groups = self._groups.groups(identity, rows, places, words)
        facts = sum(len(group.rows) for group in groups)
        if relation:
            shown = [(group, group.rows[offset : offset + limit]) for group in groups]
        else:
            shown = [(group, group.rows[:few]) for group in groups[offset : offset + limit]]
        return {
            "entity": self._entity(identity),
            "counts": self._index.counts(identity),
            "facts": facts,
            "searched": MOST_SEARCHED if words and len(rows) > MOST_SEARCHED else None,
            "total": facts if relation else len(groups),
            "groups": [self._group(group, rows) for group, rows in shown if len(rows)],
        }

    def _group(self, group: FactGroup, rows: NDArray[np.int64]) -> dict[str, Any]:
        told = self._index.table.take(rows).facts(self.graph.vocabulary)
        position = POSITIONS[group.position]
        return {
            "position": position,
            "relation": self._relation(group.relation),
            "count": len(group.rows),
            "series": self._groups.series(group),
            "facts": [
                {"split": split, "row": row, "position": position, "added": self._added(fact), **self.fact(fact)}
                for (split, row), fact in zip(self._index.origins(rows), told, strict=True)
            ],
        }

    def telling_facts(self, identity: int, limit: int) -> EntityFacts:
        """Some facts of an entity, of as many relations as fit, the telling ones first."""
        return facts_of(
            self.graph, identity, limit=limit, weight=self._groups.weights(self.graph.entities[identity].type)
        )

    def fact_place(self, split: str, row: int) -> dict[str, Any] | None:
        """The fact at a row of a split, and which one of its head's facts with its relation it is; None where there is
        no such row.
        """
        at = self._index.at(split, row)
        if at is None:
            return None
        identity = int(self._index.table.head[at])
        rows, places = self._index.all(identity)
        own = (self._index.table.relation[rows] == self._index.table.relation[at]) & (places == 0)
        (group,) = self._groups.groups(identity, rows[own], places[own])
        return {**self.fact(self._fact_at(at)), "place": int(np.flatnonzero(group.rows == at)[0])}

    def stored_fact(self, split: str, row: int) -> Fact | None:
        """The fact at a row of a split; None where there is no such row."""
        at = self._index.at(split, row)
        return None if at is None else self._fact_at(at)

    def _fact_at(self, row: int) -> Fact:
        return self._index.table.fact(row, self.graph.vocabulary)

    def _series(self, identity: int) -> list[str]:
        """The relations of numbers that this head has at more than one date."""
        groups = self._groups.groups(identity, *self._index.all(identity))
        found = sorted(group.relation for group in groups if self._groups.series(group))
        return [self.graph.relations[one].name for one in found]

    def _entity(self, identity: int) -> dict[str, Any]:
        one = self.graph.entities[identity]
        return {
            "id": one.name,
            "name": self.graph.entity_labels[identity],
            "type": one.type,
            "facts": int(self._index.degree[identity]),
        }

    def fact(self, fact: Fact) -> dict[str, Any]:
        """A fact in words and in parts."""
        return {
            "text": self._sentences.fact(fact),
            "head": self._value(fact.head),
            "relation": self._named(fact.relation),
            "tail": self._value(fact.tail),
            "qualifiers": [
                {"relation": self._named(pair.relation), "value": self._value(pair.value)} for pair in fact.qualifiers
            ],
        }

    def _value(self, value: Value) -> dict[str, Any]:
        if isinstance(value, str):
            return {"id": value, "name": self._sentences.entity(value)}
        return {"number": value.value, "literal": value.literal, "unit": value.unit, "text": format_stored(value)}

    def _named(self, relation: str) -> dict[str, str]:
        return {"id": relation, "name": self._sentences.relation(relation)}

    def relation_called(self, name: str) -> str:
        """What people call a relation, by its id."""
        return self._sentences.relation(name)

    def name_to_write(self, text: str, *, is_relation: bool = False) -> str:
        """An id as people would write it: the name, where it can be written and nobody else carries it."""
        vocabulary, graph = self.graph.vocabulary, self.graph
        known = (vocabulary.relation_ids if is_relation else vocabulary.entity_ids).get(text)
        if known is None:
            return text
        label = (graph.relation_labels if is_relation else graph.entity_labels)[known]
        called = self.names.relations_called(label) if is_relation else self.names.entities_called(label)
        plain = label.isprintable() and label.strip() == label and label not in ("", "?") and len(label) <= _LONGEST
        return label if plain and called == [known] else text

    # ------------------------------------------------------------------ relations

    def relations(self, query: str, kind: str | None, offset: int, limit: int) -> dict[str, Any]:
        """Relations with the most facts first: those whose id or name holds the query, then those whose description has
        all of its words; where there is none, those whose names or descriptions have most of them.
        """
        wanted, words = folded(query), folded(query).split()
        uses = self._as_fact + self._as_qualifier
        order = np.lexsort((np.arange(len(uses)), -uses)).tolist()
        fitting = [one for one in order if kind in (None, self.graph.relations[one].kind)]
        named = [one for one in fitting if wanted in self._folded_relations[one]]
        meant = [one for one in fitting if words and all(word in self._folded_meanings[one] for word in words)]
        chosen = list(dict.fromkeys([*named, *meant]))
        if not chosen and len(words) > 1:
            texts = [f"{self._folded_relations[one]} {self._folded_meanings[one]}" for one in fitting]
            found = [sum(word in text for word in words) for text in texts]
            most = max([1, *found])
            chosen = [one for one, count in zip(fitting, found, strict=True) if count == most]
        page = [self._relation(one) for one in chosen[offset : offset + limit]]
        return {"relations": page, "total": len(chosen), "offset": offset}

    def relation(self, name: str) -> dict[str, Any]:
        """A relation by its id or name; where it holds numbers, with their distribution."""
        identity = self.names.relation(name)
        return {**self._relation(identity), "numbers": self._distribution(identity)}

    def relation_in_use(self, name: str) -> dict[str, Any]:
        """A relation with what usually stands beside it: qualifiers, tails that several facts share, facts of
        different heads from all over the graph, and the relations whose facts it qualifies. Of a relation that only
        qualifies, its values stand for tails, and examples are facts that it qualifies.
        """
        identity = self.names.relation(name)
        table, graph = self._index.table, self.graph
        rows = np.flatnonzero(table.relation == identity)
        owner = table.qualifier_owner()
        own = np.flatnonzero(np.isin(owner, rows))
        pairs = np.unique(np.stack([owner[own], table.qualifier_relation[own]]), axis=1)[1]
        usual = [
            {"relation": self._named(graph.relations[one].name), "share": count / len(rows)}
            for one, count in _commonest(pairs, _SHOWN)
        ]
        is_number = graph.relations[identity].kind == "number"
        as_qualifier = np.flatnonzero(table.qualifier_relation == identity)
        values = table.tail_entity[rows] if len(rows) else table.qualifier_entity[as_qualifier]
        tails = [
            {**self._entity(one), "share": count / len(values)}
            for one, count in ([] if is_number else _commonest(values, _SHOWN))
            if count > 1
        ]
        carriers = table.relation[np.unique(owner[as_qualifier])]
        qualified = [self._relation(one) for one, _ in _commonest(carriers, _SHOWN)]
        types = {
            "head": self._types(table.head[rows]),
            "tail": [] if is_number else self._types(table.tail_entity[rows]),
        }
        first = rows[np.sort(np.unique(table.head[rows], return_index=True)[1])]
        spread = spaced(first if len(rows) else np.unique(owner[as_qualifier]), _SHOWN)
        examples = [self.fact(fact) for fact in table.take(spread).facts(graph.vocabulary)]
        beside = {"usual": usual, "tails": tails, "qualified": qualified, "types": types}
        return {**self.relation(name), **beside, "heads": len(first), "examples": examples}

    def _types(self, ids: NDArray[np.integer[Any]]) -> list[str]:
        """The commonest types of some entities, but for those that are rare."""
        some = np.unique(ids)[:_MOST_TYPED].tolist()
        counts = Counter(self.graph.entities[one].type for one in some)
        return [name for name, count in counts.most_common(_TYPES) if name and count >= _COMMON * len(some)]

    def suggested(self, wanted: str, head: str, relation: str, *, numbers: bool = False) -> list[dict[str, Any]]:
        """What may be meant by a field that is still empty, commonest first; `numbers`: of relations only those that
        hold them.

        `wanted` is a relation (of facts that `head` has, or of any), a qualifier (of facts with `relation`), a head (of
        facts with it), a tail or a value (of facts or qualifiers with it). A name that nobody has counts as not given.
        """
        table, graph = self._index.table, self.graph
        entity, own = self.names.entities_called(head), self.names.relations_called(relation)
        of_relation = np.isin(table.relation, own) if own else np.ones(len(table), dtype=np.bool_)
        if wanted == "relation":
            rows = np.isin(table.head, entity) if entity else np.ones(len(table), dtype=np.bool_)
            return self._commonest_relations(table.relation[rows], numbers=numbers)
        if wanted == "qualifier":
            rows = of_relation[table.qualifier_owner()]
            return self._commonest_relations(table.qualifier_relation[rows], numbers=numbers)
        if wanted == "head":
            return [self._entity(one) for one, _ in _commonest(table.head[of_relation], _SUGGESTED)]
        if not own or graph.relations[own[0]].kind == "number":
            return []
        values = table.tail_entity[of_relation]
        if wanted == "value":
            values = table.qualifier_entity[np.isin(table.qualifier_relation, own)]
        return [self._entity(one) for one, _ in _commonest(values, _SUGGESTED)]

    def _commonest_relations(self, ids: NDArray[np.integer[Any]], *, numbers: bool) -> list[dict[str, Any]]:
        if numbers:
            ids = ids[self.graph.vocabulary.relation_is_number[ids]]
        return [self._relation(one) for one, _ in _commonest(ids, _SUGGESTED)]

    def _relation(self, identity: int) -> dict[str, Any]:
        one = self.graph.relations[identity]
        return {
            "id": one.name,
            "name": self.graph.relation_labels[identity],
            "kind": one.kind,
            "unit": one.unit,
            "display_unit": display_of(one.unit),
            "is_date": one.unit == DATE_UNIT,
            "description": one.description,
            "facts": int(self._as_fact[identity]),
            "qualifiers": int(self._as_qualifier[identity]),
        }

    def _distribution(self, identity: int) -> dict[str, Any] | None:
        """Extremes, quantiles and a histogram, of the graph's numbers; None where there are none."""
        summary = self._summaries.get(identity)
        if summary is None:
            return None
        place = int(np.searchsorted(self._numbers.present, identity))
        begin = int(self._numbers.start[place])
        values = self._numbers.value[begin : begin + int(self._numbers.size[place])]
        edges, counts = _histogram(values, log=self.graph.relations[identity].scale == "log")
        return {
            "count": summary.frequency,
            "minimum": summary.minimum,
            "maximum": summary.maximum,
            "mean": summary.mean,
            "quantiles": {f"{share:g}": value for share, value in summary.quantiles.items()},
            "edges": edges.tolist(),
            "counts": counts.tolist(),
        }


def _commonest(ids: NDArray[np.integer[Any]], count: int) -> list[tuple[int, int]]:
    """The ids that come most often, with how often; of equals the lower first."""
    found, counts = np.unique(ids, return_counts=True)
    order = np.lexsort((found, -counts))[:count]
    return list(zip(found[order].tolist(), counts[order].tolist(), strict=True))


def _histogram(values: NDArray[np.float64], *, log: bool) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(bins + 1,) edges and (bins,) counts, from the least to the greatest; on a log scale where the relation has one.

    `values` ascend, so that the counts are differences of places.
    """
    low, high = float(values[0]), float(values[-1])
    if low == high:
        return np.array([low, high]), np.array([len(values)], dtype=np.int64)
    share = np.linspace(0.0, 1.0, BINS + 1)
    if log and low > 0:
        edges = np.exp(np.log(low) * (1 - share) + np.log(high) * share)
    else:
        edges = low * (1 - share) + high * share  # not low + share * (high - low): that may overflow
    edges[0], edges[-1] = low, high
    inner = np.searchsorted(values, edges[1:-1], side="left")
    return edges, np.diff(np.concatenate([[0], inner, [len(values)]])).astype(np.int64)


# Which facts hold an entity, found without looking through all of them: sorted once, read by page.


class EntityIndex:
    """The facts of each entity of a graph, by position and relation, as everybody pages through them."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        self.table = graph.columns()
        self._split_end = np.cumsum([len(table) for table in graph.splits.values()])
        self._split_names = list(graph.splits)
        table, is_number = self.table, graph.vocabulary.relation_is_number
        rows = np.arange(len(table), dtype=np.int64)
        tails, values = ~is_number[table.relation], ~is_number[table.qualifier_relation]
        owner = table.qualifier_owner()
        entity = np.concatenate([table.head, table.tail_entity[tails], table.qualifier_entity[values]])
        row = np.concatenate([rows, rows[tails], owner[values]])
        relation = np.concatenate([table.relation, table.relation[tails], table.qualifier_relation[values]])
        place = np.repeat(np.arange(3, dtype=np.int8), [len(rows), int(tails.sum()), int(values.sum())])
        # A fact that holds an entity twice is listed at the first of head, tail, value.
        order = np.lexsort((place, row, entity))
        entity, row, relation, place = entity[order], row[order], relation[order], place[order]
        first = begins(entity, row)
        entity, row, relation, place = entity[first], row[first], relation[first], place[first]
        order = np.lexsort((row, relation, place, entity))
        self._row, self._place = row[order], place[order]
        self.degree = np.bincount(entity, minlength=graph.vocabulary.entity_count).astype(np.int64)
        self._start = offsets_of(self.degree)

    def counts(self, entity: int) -> dict[EntityPosition, int]:
        """How many facts it has at each position."""
        found = np.bincount(self._place[self._start[entity] : self._start[entity + 1]], minlength=len(POSITIONS))
        return dict(zip(POSITIONS, found.tolist(), strict=True))

    def page(
        self, entity: int, offset: int, limit: int, position: EntityPosition | None = None
    ) -> tuple[NDArray[np.int64], list[EntityPosition]]:
        """(facts,) rows of `table`, and where the entity stands in each."""
        begin, end = int(self._start[entity]), int(self._start[entity + 1])
        if position is not None:  # within an entity, positions ascend
            wanted = POSITIONS.index(position)
            low, high = np.searchsorted(self._place[begin:end], [wanted, wanted + 1])
            begin, end = begin + int(low), begin + int(high)
        chosen = slice(min(begin + offset, end), min(begin + offset + limit, end))
        return self._row[chosen], [POSITIONS[place] for place in self._place[chosen].tolist()]

    def all(self, entity: int) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """(facts,) the rows of all its facts, and where it stands in each, as an index into POSITIONS."""
        own = slice(int(self._start[entity]), int(self._start[entity + 1]))
        return self._row[own], self._place[own]

    def origins(self, rows: NDArray[np.int64]) -> list[tuple[str, int]]:
        """The split that each row is of, and which row of it."""
        places = np.searchsorted(self._split_end, rows, side="right")
        starts = np.append(0, self._split_end)[places]
        return [
            (self._split_names[place], row)
            for place, row in zip(places.tolist(), (rows - starts).tolist(), strict=True)
        ]

    def at(self, split: str, row: int) -> int | None:
        """The row of `table` that a row of a split is; None where the split has none such."""
        if split not in self._split_names:
            return None
        place = self._split_names.index(split)
        start = int(np.append(0, self._split_end)[place])
        return start + row if 0 <= row < int(self._split_end[place]) - start else None
