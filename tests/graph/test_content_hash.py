"""Fingerprints agree with keys: equal exactly when the facts say the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hynt.graph.columns import ChunkStore
from hynt.graph.content_hash import Fingerprints, repeats
from hynt.graph.encoding import FactEncoder
from hynt.graph.fact import fact
from hynt.graph.fact_table import concatenate
from tests.graph.fact_strategies import facts


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
    assert repeats(np.array([0, 0, 0, 1, 0], dtype=np.int8), hashes).tolist() == [False, False, True, False, False]
