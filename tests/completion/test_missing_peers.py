"""Who lacks a relation that its peers have, and how a relation's facts are usually written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hynt import number
from hynt.completion.missing_facts import FittingTails
from hynt.completion.missing_questions import FEWEST_PEERS, Peers, usual_qualifiers
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import concatenate
from hynt.graph.vocabulary import Entity


def graph_of(facts, types=None):
    graph = graph_from_facts({"train": facts}, name="peers")
    if types is None:
        return graph
    return replace(
        graph, entities=tuple(Entity(one.name, one.label, types.get(one.name, "")) for one in graph.entities)
    )


def lacking(graph, relation, share):
    found = Peers.of(graph).lacking(graph.vocabulary.relation_ids[relation], share)
    names = [graph.vocabulary.entities[entity] for entity in found.entity.tolist()]
    return dict(zip(names, found.share.round(6).tolist(), strict=True)), found


CITIES = [f"c{index}" for index in range(8)]
FACTS = [(city, "country", "x") for city in CITIES] + [(city, "mayor", f"m{city}") for city in CITIES[:6]]
TYPES = dict.fromkeys(CITIES, "city") | {f"m{city}": "person" for city in CITIES} | {"x": "country"}


def test_peers_are_entities_of_the_same_type():
    graph = graph_of(FACTS, TYPES)
    shares, found = lacking(graph, "mayor", 0.75)
    assert shares == {"c6": 0.75, "c7": 0.75}
    assert found.peers.tolist() == [7, 7]
    assert lacking(graph, "mayor", 0.76)[0] == {}
    assert lacking(graph, "country", 0.1)[0] == {}  # six persons have none, and none of their peers has one


def test_a_small_group_says_nothing():
    assert len(CITIES[:FEWEST_PEERS]) == 5
    few = [fact for fact in FACTS if fact[0] in CITIES[:4]] + [("c4", "area", number(3, ""))]
    graph = graph_of(few, dict.fromkeys(CITIES[:4], "city"))
    assert lacking(graph, "mayor", 0.0)[0] == {}


def test_without_types_peers_share_places():
    """c6 and c7 stand as heads of `country`, where 6 of 8 have a mayor; persons stand as tails of `mayor`."""
    shares, _ = lacking(graph_of(FACTS), "mayor", 0.5)
    assert shares == {"c6": 0.75, "c7": 0.75}


def test_shares_are_averaged_over_the_places_of_an_entity():
    more = [*FACTS, *((f"t{index}", "twin", city) for index, city in enumerate(CITIES[1:]))]
    # c6 and c7 are tails of `twin` too, where 5 of 7 have a mayor
    shares, _ = lacking(graph_of(more), "mayor", 0.5)
    assert shares["c6"] == pytest.approx((6 / 8 + 5 / 7) / 2, abs=1e-6)


def test_hidden_splits_are_not_known():
    graph = graph_from_facts({"train": FACTS, "test": [("c6", "mayor", "mc0"), ("c6", "country", "x")]}, name="hidden")
    mayor = graph.vocabulary.relation_ids["mayor"]
    known, hidden = (Peers.of(graph, without).lacking(mayor, 0.5) for without in ((), ("test",)))
    names = [[graph.vocabulary.entities[entity] for entity in one.entity.tolist()] for one in (known, hidden)]
    assert names == [["c7"], ["c6", "c7"]]


def test_counting_is_as_slow_and_obvious(towns):
    """Against a loop over all entities."""
    peers, all_facts = Peers.of(towns), list(towns.facts())
    for relation, named in enumerate(towns.relations):
        has = {fact.head for fact in all_facts if fact.relation == named.name}
        places: dict[str, set[tuple[str, str]]] = {}
        for fact in all_facts:
            places.setdefault(fact.head, set()).add(("head", fact.relation))
            if isinstance(fact.tail, str):
                places.setdefault(fact.tail, set()).add(("tail", fact.relation))
            for pair in fact.qualifiers:
                if isinstance(pair.value, str):
                    places.setdefault(pair.value, set()).add(("value", pair.relation))
        expected = {}
        for entity, own in places.items():
            groups = [[one for one, its in places.items() if place in its] for place in own]
            shares = [len(has & set(group)) / len(group) for group in groups if len(group) >= FEWEST_PEERS]
            if shares and entity not in has and np.mean(shares) >= 0.2:
                expected[entity] = round(float(np.mean(shares)), 6)
        found = peers.lacking(relation, 0.2)
        names = [towns.vocabulary.entities[entity] for entity in found.entity.tolist()]
        assert dict(zip(names, found.share.round(6).tolist(), strict=True)) == expected


def dated(year):
    return ("point in time", number(year, DATE_UNIT, str(year)))


def usual(facts, relation="population"):
    graph = graph_of(facts)
    table = concatenate(list(graph.splits.values()))
    found = usual_qualifiers(table, graph.vocabulary.relation_ids[relation], graph)
    (fact,) = found.facts(graph.vocabulary)
    return [(pair.relation, getattr(pair.value, "value", pair.value)) for pair in fact.qualifiers]


def test_dates_are_usual_when_a_third_of_the_heads_carry_them():
    facts = [(f"c{index}", "population", number(index, ""), [dated(2000 + index % 3)]) for index in range(9)]
    assert usual(facts) == [("point in time", 2000.0)]
    spread = [(f"c{index}", "population", number(index, ""), [dated(2000 + index)]) for index in range(9)]
    assert usual(spread) == []


def test_other_qualifiers_are_usual_only_when_nearly_all_share_them():
    facts = [(f"c{index}", "population", number(index, ""), [("sex", "male")]) for index in range(9)]
    facts += [(f"c{index}", "population", number(index, ""), [("sex", "female")]) for index in range(6)]
    assert usual(facts) == [("sex", "male")]
    few = [(f"c{index}", "population", number(index, ""), [("length", number(index // 5, ""))]) for index in range(9)]
    assert usual(few) == []


def test_the_order_of_qualifiers_does_not_matter_and_fewer_win_a_tie():
    both = [dated(2000), ("sex", "male")]
    facts = [(f"c{index}", "population", number(index, ""), both if index % 2 else both[::-1]) for index in range(8)]
    assert sorted(usual(facts)) == [("point in time", 2000.0), ("sex", "male")]
    bare = [(f"c{index}", "population", number(index + 0.5, "")) for index in range(8)]
    assert usual(facts + bare) == []


def test_tails_fit_by_type_or_by_having_been_one():
    graph = graph_of(FACTS, {name: kind for name, kind in TYPES.items() if name not in ("mc4", "mc5", "c7")})
    ids, table = graph.vocabulary.entity_ids, graph.split("train")
    fitting = FittingTails(graph, table)
    tails = ["mc0", "c0", "x", "mc5", "c7"]
    heads = np.full(len(tails), ids["c6"], dtype=np.int32)
    mayor = graph.vocabulary.relation_ids["mayor"]
    found = fitting.fits(np.full(len(tails), mayor), heads, np.array([ids[name] for name in tails]))
    assert dict(zip(tails, found.tolist(), strict=True)) == {
        "mc0": True,
        "c0": False,
        "x": False,
        "mc5": True,
        "c7": False,
    }
    own = np.array([ids["mc0"]])
    assert not fitting.fits(np.array([mayor]), own.astype(np.int32), own)[
        0
    ]  # nobody is known to be the mayor of himself
