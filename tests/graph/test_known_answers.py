"""Known answers equal a slow oracle, whatever the order of qualifiers, and say which splits hold them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import ENTITY_KIND, NUMBER_KIND, component_starts, components, position_name
from hynt.graph.known_answers import AnswerIndex, KnownAnswers
from tests.oracle.plain_facts import component, random_facts, table_of, with_blank
from tests.oracle.ranking_oracle import known_answers

IS_NUMBER = np.array([False, True, False, True])


def test_components_are_those_of_the_facts():
    facts = random_facts(np.random.default_rng(1), 50, 6, IS_NUMBER)
    table = table_of(facts)
    parts = components(table, IS_NUMBER)
    starts = component_starts(table)
    assert len(parts) == sum(3 + 2 * len(fact[3]) for fact in facts) == starts[-1]
    for index in range(len(parts)):
        row, position = int(parts.row[index]), int(parts.position[index])
        assert starts[row] + position == index
        expected = component(facts[row], position)
        got = (parts.entity, parts.relation, parts.number)[parts.kind[index]][index]
        assert got == expected
        assert (parts.kind[index] == NUMBER_KIND) == isinstance(expected, float)


def test_positions_have_names():
    assert [position_name(place) for place in range(7)] == [
        "head",
        "relation",
        "tail",
        "relation of qualifier 1",
        "value of qualifier 1",
        "relation of qualifier 2",
        "value of qualifier 2",
    ]


@pytest.mark.parametrize("seed", range(30))
def test_keys_agree_exactly_when_questions_do(seed):
    facts = random_facts(np.random.default_rng(seed), 40, 3, IS_NUMBER)
    table = table_of(facts)
    parts = components(table, IS_NUMBER)
    keys = question_keys(table, IS_NUMBER)
    seen = {}
    for index in range(len(parts)):
        question = with_blank(facts[parts.row[index]], int(parts.position[index]))
        assert seen.setdefault(question, tuple(keys[index])) == tuple(keys[index])
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize("seed", range(20))
def test_lookup_equals_the_oracle(seed):
    rng = np.random.default_rng(seed)
    plain = {name: random_facts(rng, 12, 3, IS_NUMBER, 2) for name in ("train", "valid", "test")}
    tables = {name: table_of(facts) for name, facts in plain.items()}
    known = KnownAnswers.build(tables, IS_NUMBER)
    parts = components(tables["test"], IS_NUMBER)
    for kind in range(3):
        chosen = np.flatnonzero(parts.kind == kind)
        lists = known.lookup(tables["test"], chosen, kind)
        for place, index in enumerate(chosen):
            expected = known_answers(plain, plain["test"][parts.row[index]], int(parts.position[index]))
            span = slice(lists.offsets[place], lists.offsets[place + 1])
            got = zip(lists.answers[span].tolist(), lists.splits[span].tolist(), strict=True)
            assert {answer: set(known.split_names(bits)) for answer, bits in got} == expected


def test_the_order_of_qualifiers_does_not_matter_but_repeats_do():
    orders = ([(2, 5), (1, 0.5)], [(1, 0.5), (2, 5)], [(2, 5), (2, 5), (1, 0.5)])
    one = table_of([(0, 0, 1, qualifiers) for qualifiers in orders])
    keys = question_keys(one, IS_NUMBER)
    starts = component_starts(one)
    assert np.array_equal(keys[starts[0] : starts[0] + 3], keys[starts[1] : starts[1] + 3])
    assert np.array_equal(keys[starts[0] + 4], keys[starts[1] + 6])  # the value of (2, 5), wherever it stands
    assert not np.array_equal(keys[starts[0]], keys[starts[2]])


def test_a_number_and_an_entity_with_the_same_digits_differ():
    table = table_of([(0, 0, 1, []), (0, 1, 1.0, []), (0, 1, -0.0, []), (0, 1, 0.0, [])])
    keys = question_keys(table, IS_NUMBER).reshape(4, 3, 2)
    assert not np.array_equal(keys[0, 1], keys[1, 1])  # (0, ?, entity 1) and (0, ?, 1.0)
    assert np.array_equal(keys[2, 0], keys[3, 0])  # -0.0 and 0.0 are one number


def test_the_filler_in_the_hole_is_never_read():
    tables = [table_of([(0, 0, tail, [(2, value)])]) for tail, value in ((1, 5), (9, 5), (1, 7))]
    keys = [question_keys(table, IS_NUMBER) for table in tables]
    assert np.array_equal(keys[0][2], keys[1][2])
    assert np.array_equal(keys[0][4], keys[2][4])


def test_questions_that_share_half_a_key_are_told_apart():
    keys = np.array([[7, 1], [7, 2], [7, 2], [7, 3], [9, 1]], dtype=np.uint64)
    index = AnswerIndex.build(keys, np.array([10, 30, 20, 40, 50], dtype=np.int32), np.ones(5, dtype=np.uint8))
    lists = index.lookup(np.array([[7, 3], [7, 2], [7, 4], [9, 1], [8, 1], [10, 0], [7, 0]], dtype=np.uint64))
    assert lists.offsets.tolist() == [0, 1, 3, 3, 4, 4, 4, 4]
    assert lists.answers.tolist() == [40, 20, 30, 50]
    assert lists.question().tolist() == [0, 1, 1, 3]


def test_nothing_known_is_no_error():
    empty = KnownAnswers.build({"train": table_of([])}, IS_NUMBER)
    asked = table_of([(0, 0, 1, [])])
    lists = empty.lookup(asked, np.array([0, 2]), ENTITY_KIND)
    assert lists.offsets.tolist() == [0, 0, 0]
    assert len(lists.answers) == 0


def test_a_quarter_million_facts_are_indexed_in_seconds():
    rng = np.random.default_rng(0)
    facts = table_of(random_facts(rng, 2_000, 50_000, np.zeros(500, dtype=np.bool_)))
    table = facts.take(rng.integers(0, 2_000, 236_000))
    table.head[:] = rng.integers(0, 50_000, len(table))
    started = time.perf_counter()
    known = KnownAnswers.build({"train": table}, np.zeros(500, dtype=np.bool_))
    parts = components(table, np.zeros(500, dtype=np.bool_))
    lists = known.lookup(table, np.flatnonzero(parts.kind == ENTITY_KIND), ENTITY_KIND)
    assert time.perf_counter() - started < 30  # about 2 s; a loop over facts would take minutes
    assert (np.diff(lists.offsets) >= 1).all()
