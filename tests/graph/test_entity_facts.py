"""The facts of one entity: every one of them, or a mix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.graph.entity_facts import facts_of
from hynt.graph.fact import fact, number
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Entity, Relation, Vocabulary
from tests.graph.small_graphs import assembled
from tests.oracle.plain_facts import random_facts, table_of


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_all_facts_are_found_where_a_slow_search_finds_them(seed, limit):
    rng = np.random.default_rng(seed)
    is_number = np.array([False, True, False])
    plain = random_facts(rng, 25, 4, is_number)
    kinds = tuple(Relation(f"r{at}", "number" if number else "entity") for at, number in enumerate(is_number))
    names = tuple(f"e{at}" for at in range(4))
    splits = {"train": table_of(plain[:20]), "test": table_of(plain[20:])}
    graph = KnowledgeGraph(Vocabulary(names, kinds), splits, tuple(Entity(name) for name in names))
    expected = {"head": 0, "tail": 0, "value": 0}
    for one in graph.facts():
        if one.head == "e0":
            expected["head"] += 1
        elif one.tail == "e0":
            expected["tail"] += 1
        elif any(value == "e0" for _, value in one.qualifiers):
            expected["value"] += 1
    found = facts_of(graph, 0)
    assert found.counts == expected
    assert (len(found.facts), found.left_out) == (found.total, 0)
    few = facts_of(graph, 0, limit=limit)
    assert few.counts == expected
    assert len(few.facts) == min(limit, found.total)
    wanted = {item.fact.key() for item in found.facts}
    assert all(item.fact.key() in wanted for item in few.facts)


@pytest.fixture
def graph() -> KnowledgeGraph:
    series = [fact("a", "population", year, [("year", year)]) for year in range(1900, 1950)]
    others = [fact("a", f"r{at}", "b") for at in range(5)]
    return assembled({"train": [*series, fact("b", "in", "a"), fact("c", "at", "d", [("by", "a")]), *others]})


def test_a_mix_has_many_relations_and_positions(graph):
    found = facts_of(graph, graph.vocabulary.entity_ids["a"], limit=6)
    assert [(item.position, item.fact.relation) for item in found.facts] == [
        ("head", "population"),
        ("head", "r0"),
        ("head", "r1"),
        ("head", "r2"),
        ("tail", "in"),
        ("value", "at"),
    ]


def test_positions_narrow_the_search(graph):
    found = facts_of(graph, graph.vocabulary.entity_ids["a"], positions=("tail",))
    assert found.counts == {"tail": 1}
    assert [item.fact.head for item in found.facts] == ["b"]


def test_an_entity_without_facts_there(graph):
    found = facts_of(graph, graph.vocabulary.entity_ids["d"], positions=("head",))
    assert (found.facts, found.total) == ((), 0)


@pytest.mark.parametrize("unit", ["date", ""])
def test_a_series_is_told_in_time_whatever_splits_it_is_in(unit):
    def person(value, year, *more):
        return fact("a", "height", value, [*more, ("born" if unit else "age", number(year, unit))])

    women, men = ("sex", "female"), ("sex", "male")
    facts = {
        "train": [
            person(3, 1930),
            fact("a", "likes", "b"),
            person(7, 1920, men),
            person(1, 1910),
            person(6, 1910, men),
        ],
        "valid": [person(5, 1950), person(9, 1890, women)],
        "test": [person(0, 1900), person(4, 1940)],
    }
    graph = assembled(facts)
    told = [
        one.fact.tail.value
        for one in facts_of(graph, graph.vocabulary.entity_ids["a"], positions=("head",)).facts
        if one.fact.relation == "height"
    ]
    assert told == [0, 1, 3, 4, 5, 6, 7, 9]


def test_one_fact_is_called_one():
    graph = assembled([fact("Ann", "knows", "Bob"), fact("Cid", "knows", "Bob")])
    assert repr(facts_of(graph, graph.vocabulary.entity_ids["Ann"])).startswith("<1 fact of Ann>\n")
    assert repr(facts_of(graph, graph.vocabulary.entity_ids["Bob"])).startswith("<2 facts of Bob>\n")
    assert repr(graph).endswith("2 facts (train 2), 3 entities, 1 relation, 0 of them with numbers>")
