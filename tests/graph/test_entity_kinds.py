"""Which entities are unlike all that stand at a place, against a slow look at every fact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph import entity_kinds
from hynt.graph.entity_kinds import EntityKinds
from hynt.graph.fact_table import HEAD, RELATION, TAIL
from hynt.graph.vocabulary import Entity
from tests.town_graph import town_graph


def kinds_of(graph, types=()):
    entities = tuple(Entity(name, type=dict(types).get(name, "")) for name in graph.vocabulary.entities)
    return EntityKinds.of([graph.split("train")], graph.vocabulary, entities)


def zoo(animals=40, **more):
    """Animals weigh something and live in a country; countries have an area and border on one another."""
    facts = [(f"animal {index}", "weight", number(1.0 + index)) for index in range(animals)]
    facts += [(f"animal {index}", "lives in", f"country {index % 20}") for index in range(animals)]
    facts += [(f"country {index}", "area", number(10.0 + index)) for index in range(20)]
    facts += [(f"country {index}", "borders on", f"country {(index + 1) % 20}") for index in range(20)]
    facts += [("animal new", "lives in", "country 3"), ("country new", "borders on", "country 4")]
    return graph_from_facts({"train": facts, **more})


def asked(graph, head, relation, tail=None):
    """The question as a table of one row; a filler where a number is asked for."""
    entities, relations = graph.vocabulary.entity_ids, graph.vocabulary.relation_ids
    table = graph.split("train").take(np.zeros(1, dtype=np.int64))
    table.head[:], table.relation[:] = entities[head], relations[relation]
    table.tail_entity[:] = entities[tail] if tail else 0
    return table


def is_unlike(kinds, table, position):
    found = bool(kinds.is_unlike(table, np.array([0]), np.array([position]))[0])
    assert found == bool(list(kinds.told(table, 0, position)))
    return found


@pytest.mark.parametrize(
    ("head", "relation", "unlike"),
    [
        ("animal 1", "weight", False),
        ("animal new", "weight", False),
        ("country 1", "weight", True),
        ("country new", "weight", True),
        ("country new", "area", False),
        ("animal 1", "area", True),
        ("animal new", "area", True),
    ],
)
def test_a_head_of_another_kind_is_found(head, relation, unlike):
    graph = zoo()
    assert is_unlike(kinds_of(graph), asked(graph, head, relation), TAIL) == unlike


def test_a_tail_of_another_kind_is_found_where_it_is_given():
    graph = zoo()
    kinds = kinds_of(graph)
    assert is_unlike(kinds, asked(graph, "animal 1", "lives in", "animal 2"), HEAD)
    assert not is_unlike(kinds, asked(graph, "animal 1", "lives in", "animal 2"), TAIL)
    assert not is_unlike(kinds, asked(graph, "animal 1", "lives in", "country 2"), HEAD)
    assert not is_unlike(kinds, asked(graph, "animal 1", "lives in", "animal 2"), RELATION)


def test_what_tells_it_best_is_named():
    graph = zoo()
    relations = graph.vocabulary.relation_ids
    (one,) = kinds_of(graph).told(asked(graph, "country 1", "weight"), 0, TAIL)
    assert (one.position, one.relation, one.looked_at, one.having) == (HEAD, relations["weight"], 40, 0)
    assert one.trait in (
        (HEAD, relations["borders on"]),
        (TAIL, relations["lives in"]),
        (TAIL, relations["borders on"]),
    )
    typed = kinds_of(graph, {f"country {index}": "country" for index in range(20)} | {"country new": "country"})
    (one,) = typed.told(asked(graph, "country 1", "weight"), 0, TAIL)
    assert (one.having, one.trait) == (0, None)


def test_a_type_alone_tells_the_kind():
    """Things with one fact each, all of the same relation: only what they are declared to be tells them apart."""
    facts = [(f"{kind} {index}", "seen in", f"year {index}") for kind in ("ship", "star") for index in range(30)]
    facts += [(f"ship {index}", "crew", number(index)) for index in range(20)]
    graph = graph_from_facts({"train": facts})
    types = {name: name.split()[0] for name in graph.vocabulary.entities}
    star, ship = (asked(graph, f"{kind} 25", "crew") for kind in ("star", "ship"))
    assert not is_unlike(kinds_of(graph), star, TAIL)
    assert is_unlike(kinds_of(graph, types), star, TAIL)
    assert not is_unlike(kinds_of(graph, types), ship, TAIL)


def test_an_entity_of_which_no_fact_says_anything():
    graph = zoo(valid=[("stranger", "weight", number(3))])
    table = asked(graph, "stranger", "weight")
    assert is_unlike(kinds_of(graph), table, TAIL)
    assert is_unlike(kinds_of(graph, {"stranger": "animal"}), table, TAIL)
    (one,) = kinds_of(graph).told(table, 0, TAIL)
    assert not one.has_traits


def test_few_heads_show_nothing_and_enough_of_a_kind_excuse_it():
    for animals, unlike in ((4, False), (5, True)):
        graph = zoo(animals)
        assert is_unlike(kinds_of(graph), asked(graph, "country 19", "weight"), TAIL) == unlike
    facts = [(f"a {index}", "weight", number(index)) for index in range(1000)]
    facts += [(f"b {index}", "area", number(index)) for index in range(1000)]
    for both, unlike in ((9, True), (10, False)):
        graph = graph_from_facts({"train": [*facts, *[(f"b {index}", "weight", number(1)) for index in range(both)]]})
        table = asked(graph, "b 500", "weight")
        assert is_unlike(kinds_of(graph), table, TAIL) == unlike
        if unlike:
            assert next(kinds_of(graph).told(table, 0, TAIL)).having == 9


def slow(graph, entity, place):
    """The definition, fact by fact."""
    stands = {}
    for fact in graph.facts("train"):
        pairs = [(fact.head, (0, fact.relation))]
        pairs += [(fact.tail, (2, fact.relation))] * isinstance(fact.tail, str)
        pairs += [(pair.value, (4, pair.relation)) for pair in fact.qualifiers if isinstance(pair.value, str)]
        for name, where in pairs:
            stands.setdefault(name, set()).add(where)
    if entity not in stands:
        return True
    there = {name for name, where in stands.items() if place in where}
    if entity in there or len(there) < 5:
        return False
    total = 0.0
    for trait in stands[entity]:
        having = sum(trait in stands[name] for name in there)
        everywhere = sum(trait in where for where in stands.values())
        expected = len(there) * (everywhere - 1) / len(stands)
        ratio = math.log((having + 0.1) / (expected + 0.1))
        total += max(ratio, 0.0) if having >= 10 else ratio
    return total <= -2.0


@pytest.mark.parametrize("graph", [town_graph(), zoo()], ids=["towns", "zoo"])
def test_all_questions_at_once_get_what_a_slow_look_gives(graph):
    kinds, table = kinds_of(graph), graph.split("train")
    names, relations = graph.vocabulary.entities, graph.relations
    pairs = [(entity, relation) for entity in range(len(names)) for relation in range(len(relations))]
    rows = table.take(np.zeros(len(pairs), dtype=np.int64))
    rows.head[:], rows.relation[:] = np.array(pairs).T
    found = kinds.is_unlike(rows, np.arange(len(pairs)), np.full(len(pairs), TAIL))
    expected = [slow(graph, names[entity], (0, relations[relation].name)) for entity, relation in pairs]
    assert found.tolist() == expected
    assert 0 < found.sum() < len(found)


def test_of_a_crowded_place_some_are_looked_at(monkeypatch):
    monkeypatch.setattr(entity_kinds, "_MOST", 15)
    graph = zoo()
    (one,) = kinds_of(graph).told(asked(graph, "country 1", "weight"), 0, TAIL)
    assert one.looked_at == 15
    assert not is_unlike(kinds_of(graph), asked(graph, "animal new", "weight"), TAIL)


def test_without_facts_nothing_breaks():
    graph = graph_from_facts({"train": [("a", "knows", "b")]})
    kinds = EntityKinds.of([graph.split("train").take(np.zeros(0, np.int64))], graph.vocabulary, graph.entities)
    assert is_unlike(kinds, asked(graph, "a", "knows"), TAIL)
