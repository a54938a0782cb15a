"""Fingerprints agree with keys: equal exactly when the facts say the same."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hynt.graph import content_hash
from hynt.graph.changes import same_facts
from hynt.graph.columns import ChunkStore
from hynt.graph.content_hash import Fingerprints, distinct, repeats
from hynt.graph.encoding import FactEncoder
from hynt.graph.fact import fact
from hynt.graph.fact_table import concatenate
from tests.graph.fact_strategies import facts
from tests.training.small_graph import small_graph


def fingerprints(made):
    store = ChunkStore()
    encoder = FactEncoder(store)
    for one in made:
        encoder.add(one)
    relations = encoder.finish()
    is_number = np.array([relation.kind == "number" for relation in relations], dtype=bool)
    prints = Fingerprints(encoder.entity_ids, [relation.name for relation in relations], is_number)
    return prints.facts(concatenate(list(store)))


@given(st.lists(facts(), min_size=1, max_size=12))
def test_equal_exactly_when_the_keys_are(made):
    hashes = [tuple(row) for row in fingerprints(made)]
    for first, one in enumerate(made):
        for second, other in enumerate(made):
            assert (hashes[first] == hashes[second]) == (one.key() == other.key())


@given(st.lists(facts(), min_size=1, max_size=8), st.lists(facts(), max_size=8))
def test_other_facts_change_no_fingerprint(made, before):
    alone = fingerprints(made)
    assert np.array_equal(fingerprints(before + made)[len(before) :], alone)


def test_fingerprints_are_the_same_in_every_version():
    """Splits are drawn by them: a change here would move facts between the splits of every graph made so far."""
    made = [
        fact("Japan", "life expectancy", 84.5, [("point in time", 2020), ("sex", "female")]),
        fact("Japan", "capital", "Tokyo"),
    ]
    assert [[int(lane) for lane in row] for row in fingerprints(made)] == [
        [14593571179751487051, 8073333951119544002],
        [17830890189868019147, 3419335501225105625],
    ]


def test_repeats_marks_all_but_the_first_of_each_group():
    hashes = np.array([[1, 2], [3, 4], [1, 2], [1, 2], [1, 5]], dtype=np.uint64)
    assert repeats(hashes, np.array([0, 0, 0, 1, 0], dtype=np.int8)).tolist() == [False, False, True, False, False]


lanes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12).map(
    lambda rows: np.array(rows, dtype=np.uint64).reshape(-1, 2)
)


@given(lanes, lanes)
def test_rows_of_one_content_are_found_whatever_their_order(one, other):
    first, content = distinct(one)
    assert np.array_equal(one[first][content], one)
    assert all(not (one[:row] == one[row]).all(axis=1).any() for row in first.tolist())
    assert len(first) == len({tuple(row) for row in one.tolist()})
    there = {tuple(row) for row in other.tolist()}
    assert same_facts(one, other).tolist() == [tuple(row) in there for row in one.tolist()]


def test_statistics_hash_each_name_once(monkeypatch):
    graph, hashed = small_graph(60), []
    monkeypatch.setattr(content_hash, "blake2b", lambda text, **kind: hashed.append(text) or blake2b(text, **kind))
    graph.statistics()
    assert len(hashed) == graph.vocabulary.entity_count + graph.vocabulary.relation_count
