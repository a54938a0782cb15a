"""The altered copies that audits are measured on, and the measures themselves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks.audit_quality import average_precision, quality, roc_auc
from benchmarks.corrupted_copy import KINDS, corrupted
from benchmarks.trivial_detectors import trivial_scores
from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact_table import HEAD, RELATION, TAIL, components, concatenate
from hynt.graph.storage import load_graph
from tests.conftest import ROOT

MEASURED = sorted((ROOT / "docs" / "results" / "raw").glob("audit-*.json"))


@pytest.fixture(scope="module")
def world():
    return load_graph("world")


@pytest.fixture(scope="module")
def copy(world):
    return corrupted(world, 0.02, seed=3)


def whole(graph):
    return concatenate(list(graph.splits.values()))


def test_two_percent_are_changed_in_four_equal_kinds(world, copy):
    altered, changes, _ = copy
    assert len(changes) == round(0.02 * len(world))
    assert len({change.fact for change in changes}) == len(changes)
    counts = Counter(change.kind for change in changes)
    assert set(counts) == set(KINDS)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert altered.vocabulary == world.vocabulary
    assert {name: len(table) for name, table in altered.splits.items()} == {
        name: len(table) for name, table in world.splits.items()
    }


def test_only_the_listed_components_differ(world, copy):
    altered, changes, _ = copy
    is_number = world.vocabulary.relation_is_number
    before, after = components(whole(world), is_number), components(whole(altered), is_number)
    assert np.array_equal(before.row, after.row)
    assert np.array_equal(before.kind, after.kind)
    differs = before.entity != after.entity
    differs |= before.number != after.number
    differs |= (before.relation != after.relation) & (before.position == RELATION)
    found = set(zip(before.row[differs].tolist(), before.position[differs].tolist(), strict=True))
    assert found == {(change.fact, change.position) for change in changes}


def test_changes_are_what_their_kind_says(world, copy):
    altered, changes, _ = copy
    table, relations = whole(world), world.relations
    triplets = {fact[:3] for fact in world.facts()}
    made = list(whole(altered).facts(world.vocabulary))
    heads = {relation: set() for relation in range(len(relations))}
    for head, relation in zip(table.head.tolist(), table.relation.tolist(), strict=True):
        heads[relation].add(head)
    for change in changes:
        fact = made[change.fact]
        if change.kind == "magnitude":
            ratio = float(change.now) / float(change.was)
            assert ratio == pytest.approx(10) or ratio == pytest.approx(0.1)
        elif change.kind == "relation":
            kinds = [relations[world.vocabulary.relation_ids[name]] for name in (change.was, change.now)]
            assert (kinds[0].kind, kinds[0].unit) == (kinds[1].kind, kinds[1].unit)
            assert fact[:3] not in triplets
        elif change.kind == "entity" and change.position == HEAD:
            assert world.vocabulary.entity_ids[change.now] in heads[int(table.relation[change.fact])]
            assert fact[:3] not in triplets
        elif change.kind == "entity" and change.position == TAIL:
            assert fact.tail == change.now
            assert fact[:3] not in triplets
        assert change.was != change.now


def test_where_nothing_fits_another_fact_is_drawn_and_counted(world, copy):
    """UTC offset is the only relation in seconds: no other could stand beside its numbers."""
    assert set(copy.passed_over) == set(KINDS)
    assert copy.passed_over["relation"] > 0
    units = Counter(relation.unit for relation in world.relations if relation.kind == "number")
    swapped = {change.was for change in copy.changes if change.kind == "relation"}
    alone = {one.name for one in world.relations if one.kind == "number" and units[one.unit] == 1}
    assert "UTC offset" in alone
    assert not swapped & alone


def test_a_copy_is_made_even_of_a_graph_where_no_relation_fits():
    facts = [(f"p{i % 30}", "height", number(150.0 + i, "cm"), [("born in", f"t{i % 3}")]) for i in range(90)]
    altered = corrupted(graph_from_facts({"train": facts}), 0.5, seed=0)
    counts = Counter(change.kind for change in altered.changes)
    assert counts == {"entity": 15, "number": 15, "magnitude": 15}
    assert altered.passed_over["relation"] == 87


def test_another_seed_changes_other_facts(world, copy):
    other = corrupted(world, 0.02, seed=4).changes
    same = {change.fact for change in copy.changes} & {change.fact for change in other}
    assert len(same) < 0.1 * len(other)


def test_measures_equal_their_slow_definitions():
    random = np.random.default_rng(0)
    score, wrong = random.integers(0, 30, 200).astype(float), random.random(200) < 0.2
    pairs = [(a > b) + 0.5 * (a == b) for a in score[wrong] for b in score[~wrong]]
    assert roc_auc(score, wrong) == pytest.approx(np.mean(pairs))
    precisions = []
    order = sorted(range(200), key=lambda index: (-score[index], wrong[index]))
    for place, index in enumerate(order, 1):
        if wrong[index]:
            precisions.append(sum(wrong[one] for one in order[:place]) / place)
    assert average_precision(score, wrong) == pytest.approx(np.mean(precisions))


def test_a_perfect_detector_has_perfect_marks(world, copy):
    changes = copy.changes
    score = np.zeros(len(world))
    score[[change.fact for change in changes]] = 1.0
    found = quality(score, changes, 0.02)
    assert (found["precision_at_share"], found["roc_auc"], found["average_precision"]) == (1.0, 1.0, 1.0)
    assert all(one["found_at_share"] == one["average_precision"] == 1.0 for one in found["kinds"].values())


def test_trivial_detectors_see_what_is_far_off(world, copy):
    altered, changes, _ = copy
    found = {name: quality(score, changes, 0.02) for name, score in trivial_scores(altered).items()}
    assert found["robust z-score"]["kinds"]["magnitude"]["roc_auc"] > 0.8
    assert found["both"]["roc_auc"] > 0.55
