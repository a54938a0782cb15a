"""Questions to begin with, taken from the graph itself, so that an empty page is an invitation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hynt.graph.fact import DATE_UNIT, Fact, Number
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences, format_moment
from hynt.service.pages.questions import BLANK, AskedForm, address

ENTITIES = 8
MOST_QUALIFIERS = 3
TRENDS = 4
SERIES = 3
"""Values of one head over time from which on a trend is offered."""


def beginnings(graph: KnowledgeGraph, best: Sequence[tuple[int, int]] = ()) -> dict[str, Any]:
    """Well-known entities, questions of different kinds, and trends. `best` are held-out facts that the run answers
    well, by row and position; without them questions are of the commonest relations.
    """
    train = graph.split("train")
    held_out = graph.splits.get("valid")
    table = held_out if held_out is not None and len(held_out) else train
    questions = _best_questions(graph, best) if best else _questions(graph, table)
    return {"entities": _entities(graph, train), "questions": questions, "trends": _trends(graph, train)}


def _best_questions(graph: KnowledgeGraph, best: Sequence[tuple[int, int]]) -> list[dict[str, str]]:
    facts = graph.split("valid").take(np.array([row for row, _ in best], dtype=np.int64)).facts(graph.vocabulary)
    return [
        _example(graph, fact, ("head", "relation", "tail")[position])
        for fact, (_, position) in zip(facts, best, strict=True)
    ]


def _entities(graph: KnowledgeGraph, table: FactTable) -> list[dict[str, str]]:
    """The heads with the most different relations."""
    width = np.int64(graph.vocabulary.relation_count)
    couples = np.unique(table.head * width + table.relation)
    relations = np.bincount((couples // width).astype(np.int64), minlength=graph.vocabulary.entity_count)
    facts = np.bincount(table.head, minlength=graph.vocabulary.entity_count)
    order = np.lexsort((-facts, -relations))[:ENTITIES].tolist()
    return [{"id": graph.vocabulary.entities[one], "name": graph.entity_labels[one]} for one in order if facts[one]]


def _questions(graph: KnowledgeGraph, table: FactTable) -> list[dict[str, str]]:
    """A missing entity, a missing number and a missing relation, of facts with qualifiers where there are some."""
    is_number, counts = graph.vocabulary.relation_is_number, table.qualifier_counts()
    frequency = np.bincount(table.relation, minlength=len(graph.relations))[table.relation]
    fits = (counts > 0) & (counts <= MOST_QUALIFIERS)
    weight = np.bincount(graph.split("train").head, minlength=graph.vocabulary.entity_count)[table.head]
    taken: set[int] = set()
    heads: set[int] = set()
    found = []
    for numbers, place in ((False, "tail"), (True, "tail"), (False, "head"), (False, "relation")):
        of_kind = is_number[table.relation] == numbers
        fresh = ~np.isin(table.relation, list(taken)) & ~np.isin(table.head, list(heads))
        order = np.lexsort((np.arange(len(table)), -weight, -frequency, ~(fits & fresh), ~of_kind))
        if not len(order) or not of_kind[order[0]]:
            continue
        row = int(order[0])
        taken.add(int(table.relation[row]))
        heads.add(int(table.head[row]))
        (fact,) = table.take(np.array([row], dtype=np.int64)).facts(graph.vocabulary)
        found.append(_example(graph, fact, place))
    return found


def _example(graph: KnowledgeGraph, fact: Fact, place: str) -> dict[str, str]:
    words = Sentences(graph)
    shown = [words.entity(fact.head), words.relation(fact.relation), words.value(fact.tail)]
    shown[("head", "relation", "tail").index(place)] = BLANK
    pairs = tuple((pair.relation, written(pair.value)) for pair in fact.qualifiers[:MOST_QUALIFIERS])
    told = "; ".join(
        f"{words.relation(pair.relation)} {words.value(pair.value)}" for pair in fact.qualifiers[:MOST_QUALIFIERS]
    )
    form = AskedForm(fact.head, fact.relation, written(fact.tail), pairs).put(place, BLANK)
    return {"text": " · ".join(shown) + (f" ({told})" if told else ""), "address": form.address}


def written(value: str | Number) -> str:
    """A value as a field of the form takes it."""
    return value if isinstance(value, str) else written_number(value.value, value.unit)


def written_number(value: float, unit: str) -> str:
    """A number as a field takes it: a date as a date, where it is one that can be read back."""
    if unit != DATE_UNIT:
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if value >= 1:
        return format_moment(value)
    year = math.floor(value)  # astronomical, as dates are written: 0 is 1 BCE
    return f"-{-year:04d}" if year else "0000"


def _trends(graph: KnowledgeGraph, table: FactTable) -> list[dict[str, str]]:
    """The relations with the most numbers under a date, each with the head that has most; a head comes once."""
    is_date = np.array([relation.unit == DATE_UNIT for relation in graph.relations], dtype=np.bool_)
    rows = np.unique(table.qualifier_owner()[is_date[table.qualifier_relation]])
    rows = rows[graph.vocabulary.relation_is_number[table.relation[rows]]]
    width = np.int64(graph.vocabulary.relation_count)
    couples, counts = np.unique(table.head[rows] * width + table.relation[rows], return_counts=True)
    relations, heads = set[int](), set[int]()
    found = []
    for place in np.argsort(-counts, kind="stable").tolist():
        head, relation = divmod(int(couples[place]), int(width))
        if head in heads or relation in relations or counts[place] < SERIES:
            continue
        heads.add(head)
        relations.add(relation)
        parameters = [("head", graph.vocabulary.entities[head]), ("relation", graph.relations[relation].name)]
        text = f"{graph.entity_labels[head]}: {graph.relation_labels[relation]}"
        found.append({"text": text, "address": address("/trends", parameters)})
        if len(found) == TRENDS:
            break
    return found


def written_value(value: Mapping[str, Any]) -> str:
    return str(value["id"]) if "id" in value else written_number(float(value["number"]), str(value["unit"]))
