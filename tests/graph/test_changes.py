"""Entities kept out of training: by content, without hubs, each fact in one place."""

from __future__ import annotations

import numpy as np
import pytest

import hynt
from hynt.errors import UsageError
from hynt.formats.from_python import graph_from_facts
from hynt.graph.changes import HUBS, with_shuffled_numbers
from tests.training.small_graph import small_graph

GRAPH = small_graph(60)
HELD = GRAPH.hold_out(0.2, seed=1)


def facts(graph, *splits):
    return [fact.key() for split in splits or graph.splits for fact in graph.facts(split)]


def test_no_training_fact_names_a_held_out_entity_and_every_fact_is_somewhere():
    named = {
        name for fact in HELD.training.facts() for name in (fact.head, fact.tail, *(v for _, v in fact.qualifiers))
    }
    assert HELD.entities
    assert not named & set(HELD.entities)
    assert not set(HELD.training.vocabulary.entities) & set(HELD.entities)
    away = facts(HELD.asked, "valid", "test")
    observed = set(facts(HELD.asked, "train")) - set(facts(HELD.training, "train"))
    assert sorted([*facts(HELD.training), *away, *observed]) == sorted(facts(GRAPH))
    assert len(observed) > len(away) > 0


def test_hubs_are_left_alone():
    towns = sorted(range(4), key=lambda town: -len(list(GRAPH[f"town {town}"])))
    assert HUBS * len(GRAPH.entities) < 1  # one of them
    for seed in range(20):
        assert f"town {towns[0]}" not in GRAPH.hold_out(0.5, seed=seed).entities


def test_it_follows_names_content_and_seed_alone():
    again = GRAPH.hold_out(0.2, seed=1)
    assert again.entities == HELD.entities
    assert again.asked == HELD.asked
    assert GRAPH.hold_out(0.2, seed=2).entities != HELD.entities
    reversed_facts = {split: list(GRAPH.facts(split))[::-1] for split in GRAPH.splits}
    other = hynt.graph_from_facts(reversed_facts).hold_out(0.2, seed=1)
    assert set(other.entities) == set(HELD.entities)
    assert sorted(facts(other.asked, "test")) == sorted(facts(HELD.asked, "test"))


def test_both_graphs_are_saved_in_one_folder(tmp_path):
    HELD.save(tmp_path / "held")
    for name in ("training", "asked"):
        assert hynt.read_graph(tmp_path / "held" / name) == getattr(HELD, name)
    with pytest.raises(hynt.DataError, match="already exists"):
        HELD.save(tmp_path / "held")


def test_shares_that_make_no_sense_are_refused():
    with pytest.raises(UsageError, match="inductive: 1 is not a share"):
        GRAPH.hold_out(1.0)
    with pytest.raises(UsageError, match="observed: 0 is not a share"):
        GRAPH.hold_out(0.1, observed=0)
    with pytest.raises(UsageError, match="holding out 0 entities leaves 3 facts to train on and 0 to ask about"):
        hynt.graph_from_facts({"train": [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")]}).hold_out(0.001)


def test_about_the_share_that_was_asked_for_is_held_out():
    many = hynt.graph_from_facts({"train": [(f"e{i}", "r", f"e{(i * 7 + 1) % 1000}") for i in range(1000)]})
    count = len(many.hold_out(0.1).entities)
    assert 70 < count < 130
    assert np.isclose(count / len(many.entities), 0.1, atol=0.03)


def test_numbers_are_dealt_anew_within_their_relation_and_nothing_else_changes():
    facts = [(f"p{at}", "height", 150 + at, [("year", 2000 + at), ("in", f"t{at % 3}")]) for at in range(12)]
    facts += [(f"p{at}", "knows", f"p{at + 1}", [("year", 1990 + at)]) for at in range(5)]
    graph = graph_from_facts({"train": facts})
    table, is_number = graph.split("train"), graph.vocabulary.relation_is_number
    dealt = with_shuffled_numbers(table, is_number)
    assert dealt == with_shuffled_numbers(table, is_number)
    assert dealt != with_shuffled_numbers(table, is_number, seed=1)

    def numbers(one):
        found = {}
        for fact in one.facts(graph.vocabulary):
            pairs = [(fact.relation, fact.tail), *((pair.relation, pair.value) for pair in fact.qualifiers)]
            for relation, value in pairs:
                if not isinstance(value, str):
                    found.setdefault(relation, []).append((value.value, value.literal))
        return found

    before, after = numbers(table), numbers(dealt)
    assert before != after
    assert {name: sorted(values) for name, values in before.items()} == {n: sorted(v) for n, v in after.items()}
    for name in ("head", "relation", "tail_entity", "offsets", "qualifier_relation", "qualifier_entity"):
        assert np.array_equal(getattr(table, name), getattr(dealt, name))
