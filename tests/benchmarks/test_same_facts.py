"""Entities with the same training facts are counted, and told apart by names as far as these go."""

from __future__ import annotations

import hynt
from benchmarks.same_facts import same_facts

TRAIN = [
    ("Ulm Zoo", "in", "Ulm"),
    ("Bonn Zoo", "in", "Ulm"),
    ("Ulm", "near", "Bonn"),
    ("Ulm Zoo", "opened", 1900),
    ("Bonn Zoo", "opened", 1900),
    ("Tower", "in", "Ulm", [("height", 3)]),
    ("Spire", "in", "Ulm", [("height", 4)]),
]


def test_names_tell_two_apart_where_facts_do_not():
    found = same_facts(hynt.graph_from_facts(TRAIN, valid=[("Bonn", "has", "Bonn Zoo"), ("Bonn", "has", "Tower")]), {})
    assert (found["questions"], found["tied"], found["share"]) == (4, 1, 0.25)
    assert (found["reciprocal_rank_by_chance"], found["reciprocal_rank_by_name"]) == (1 / 1.5, 1.0)
    labels = {"Bonn Zoo": "animals", "Ulm Zoo": "Bonn Zoo"}  # of the wrong one
    misled = same_facts(hynt.graph_from_facts(TRAIN, valid=[("Bonn", "has", "Bonn Zoo")]), labels)
    assert (misled["tied"], misled["reciprocal_rank_by_name"]) == (1, 0.5)


def test_an_answer_that_is_known_too_is_no_candidate():
    asked = [("Bonn", "has", "Bonn Zoo"), ("Bonn", "has", "Ulm Zoo")]
    assert same_facts(hynt.graph_from_facts(TRAIN, valid=asked), {})["tied"] == 0
