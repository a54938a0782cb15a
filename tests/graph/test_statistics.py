"""Counts that the paper and the data's own notes state, and each count against a slow, obvious one."""

from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.formats.importing import read_graph
from hynt.graph.changes import seen_triplets
from hynt.graph.fact import Number, fact
from hynt.graph.statistics import graph_statistics, values_over_time
from tests.graph.small_graphs import assembled


def test_hn_yg_has_the_counts_of_the_paper(shared_data):
    graph = read_graph(shared_data / "HN-YG" / "raw", "hynt")
    found = graph_statistics(graph)
    counts = found.counts
    assert (counts.entities, counts.number_literals) == (12_439, 24_508)
    assert (counts.relations, counts.entity_relations, counts.number_relations) == (57, 31, 26)
    assert (counts.facts, counts.facts_with_qualifiers, counts.facts_without_qualifiers) == (76_383, 9_916, 66_467)
    assert (counts.entity_triplets, counts.number_triplets) == (45_001, 31_382)
    assert (counts.entity_qualifiers, counts.number_qualifiers) == (4, 8_008)
    assert {name: split["facts"] for name, split in found.splits.items()} == {
        "train": 61_105,
        "valid": 7_639,
        "test": 7_639,
    }
    assert len(found.numbers) == 26


def test_wd50k_shares_facts_and_has_names_that_train_lacks(shared_data):
    found = graph_statistics(read_graph(shared_data / "WD50K", "stare"))
    assert found.across_splits["train_and_valid"] == 272
    assert found.missing_from_train == {"entities": 1_339, "relations": 14}
    assert (found.counts.entities, found.counts.relations, found.counts.number_literals) == (47_155, 531, 0)


def test_wikipeople_shares_facts_between_all_splits(shared_data):
    found = graph_statistics(read_graph(shared_data / "WikiPeople-", "hynt"))
    assert found.across_splits == {"train_and_valid": 1_048, "train_and_test": 997, "valid_and_test": 368}
    assert found.seen_triplets == {"valid": 1_184, "test": 1_137}


def test_a_small_graph_by_hand():
    qualified = fact("glee", "seasons", 6, [("from", Number(2009.0, "2009", "date"))])
    facts = [
        qualified,
        fact("glee", "seasons", 6),  # the same triplet, another fact
        fact("glee", "seasons", Number(6.0, "6.0")),  # the same value, spelled in another way: a duplicate of the last
        fact("lost", "seasons", 6, [("from", Number(2009.0, "2009", "date")), ("on", "abc")]),
        fact("lost", "genre", "drama"),
    ]
    found = graph_statistics(assembled({"train": facts[:4], "test": [facts[4], qualified]}))
    counts = found.counts
    assert (counts.facts, counts.facts_with_qualifiers, counts.facts_without_qualifiers) == (5, 3, 2)
    assert (counts.triplets, counts.entity_triplets, counts.number_triplets) == (3, 1, 2)
    assert (counts.qualifiers, counts.entity_qualifiers, counts.number_qualifiers) == (2, 1, 1)
    assert (counts.number_literals, counts.qualifier_uses) == (2, 4)
    assert found.qualifiers_per_fact == {"0": 2, "1": 2, "2": 1}
    assert found.missing_from_train == {"entities": 1, "relations": 1}
    assert found.across_splits == {"train_and_test": 1}
    assert found.seen_triplets == {"test": 1}


def test_a_triplet_is_seen_whatever_its_qualifiers_and_however_its_number_is_written():
    train = [fact("glee", "seasons", 6, [("on", "fox")]), fact("lost", "on", "abc")]
    asked = [
        fact("glee", "seasons", Number(6.0, "6.0")),
        fact("glee", "seasons", 7),
        fact("lost", "on", "abc", [("from", Number(2004.0, "2004", "date"))]),
        fact("abc", "on", "lost"),
    ]
    graph = assembled({"train": train, "test": asked})
    assert seen_triplets(graph.split("test"), graph.split("train"), graph.vocabulary).tolist() == [
        fact in (asked[0], asked[2]) for fact in graph.facts("test")
    ]
    assert graph_statistics(graph).to_mapping(graph)["triplets_seen_in_train"] == {"test": {"facts": 2, "share": 0.5}}


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30))
def test_number_summary_equals_the_plain_one(values):
    graph = assembled({"train": [fact(f"e{at}", "r", value) for at, value in enumerate(values)]})
    (found,) = graph_statistics(graph).numbers
    largest = max(map(abs, values))
    assert (found.minimum, found.maximum, found.frequency) == (min(values), max(values), len(values))
    assert found.mean == pytest.approx(statistics.fmean(values), rel=1e-9, abs=largest * 1e-12)
    deviation = statistics.pstdev([value / (largest or 1.0) for value in values]) * (largest or 1.0)
    assert found.standard_deviation == pytest.approx(deviation, rel=1e-7, abs=largest * 1e-12)
    assert found.quantiles[0.5] == pytest.approx(statistics.median(values), rel=1e-12, abs=largest * 1e-15)


def test_huge_numbers_stay_finite():
    facts = [fact("a", "r", 1.7e308), fact("b", "r", -1.7e308), fact("c", "r", 1.6e308)]
    (found,) = graph_statistics(assembled({"train": facts})).numbers
    json.dumps([found.mean, found.standard_deviation, *found.quantiles.values()], allow_nan=False)
    assert found.mean == pytest.approx(1.6e308 / 3)


def test_statistics_are_plain_json_values():
    pairs = [(f"h{at}", f"t{at}") for at in range(12)]
    facts = [fact(head, "parent", tail) for head, tail in pairs] + [fact(tail, "child", head) for head, tail in pairs]
    graph = assembled({"train": [*facts, fact("h0", "age", 40)]})
    mapping = json.loads(json.dumps(graph_statistics(graph).to_mapping(graph), allow_nan=False))
    assert mapping["leakage"] == [
        {
            "rarer": "child",
            "other": "parent",
            "kind": "inverse",
            "shared": 12,
            "rarer_pairs": 12,
            "other_pairs": 12,
            "overlap": 1.0,
        }
    ]
    assert mapping["numbers"][0]["relation"] == "age"
    assert mapping["numbers"][0]["quantiles"]["0.5"] == 40.0


def test_a_graph_without_numbers_or_qualifiers():
    found = graph_statistics(assembled({"train": [fact("a", "r", "b")]}))
    assert found.numbers == ()
    assert (found.counts.number_literals, found.counts.qualifiers, found.counts.triplets) == (0, 0, 1)


def test_many_values_of_one_date_are_no_movement():
    facts = [("tin", "share", float(one), [("found", number(1922.0, "date"))]) for one in range(9)]
    facts += [("Chad", "people", float(one), [("when", number(1990.0 + one, "date"))]) for one in range(3)]
    facts += [("tin", "mass", float(one), [("found", number(1900.0 + one, "date")), ("of", one)]) for one in range(3)]
    span = [("from", number(1980.0, "date")), ("to", number(1990.0, "date"))]
    facts += [("Chad", "growth", 2.5, span), ("Chad", "growth", 3.5, [("to", number(1990.0, "date"))])]
    graph = graph_from_facts({"train": facts})
    width = len(graph.relations)
    couples = [divmod(one, width) for one in values_over_time(graph, "train").tolist()]
    names = [(graph.entity_labels[head], graph.relations[relation].name) for head, relation in couples]
    assert sorted(names) == [("Chad", "growth"), *[("Chad", "people")] * 3, ("tin", "share")]
