"""Ranks equal the slow oracle on thousands of small graphs, whatever the chunk; properties hold for all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hynt.evaluation import tiles as ranks_module
from hynt.evaluation.metrics import ranks
from hynt.evaluation.tiles import KnownSlots, tally
from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import ENTITY_KIND, RELATION_KIND, components
from hynt.graph.known_answers import KnownAnswers
from tests.oracle.plain_facts import random_facts, table_of
from tests.oracle.ranking_oracle import known_answers, rank


def known_slots(index, keys) -> KnownSlots:
    start, counts = index.spans(keys)
    ends = torch.from_numpy(np.cumsum(counts))
    return KnownSlots(torch.from_numpy(index.known.answers), torch.from_numpy(start), ends, int(counts.sum()))


def ranked_graph(seed: int, chunk: int | None = None, ties: str = "realistic"):
    """(ranks, oracle ranks) of all questions of a random graph's test split under random scores with many ties."""
    rng = np.random.default_rng(seed)
    entities, is_number = int(rng.integers(2, 8)), rng.random(int(rng.integers(2, 5))) < 0.3
    sizes = (int(rng.integers(1, 9)), int(rng.integers(0, 3)), int(rng.integers(1, 4)))
    plain = {
        name: random_facts(rng, size, entities, is_number, 2)
        for name, size in zip(("train", "valid", "test"), sizes, strict=True)
    }
    tables = {name: table_of(facts) for name, facts in plain.items()}
    known = KnownAnswers.build(tables, is_number)
    parts = components(tables["test"], is_number)
    keys = question_keys(tables["test"], is_number)
    got, expected = [], []
    for kind, count in ((ENTITY_KIND, entities), (RELATION_KIND, len(is_number))):
        chosen = np.flatnonzero(parts.kind == kind)
        if not len(chosen):
            continue
        scores = torch.from_numpy(rng.integers(-2, 3, (len(chosen), count)).astype(np.float32))
        answer = torch.from_numpy((parts.entity, parts.relation)[kind][chosen].astype(np.int64))
        slots = known_slots(known.of_kind(kind), keys[chosen])
        found, _ = tally(lambda first, end, s=scores: s[:, first:end], count, answer, slots, chunk or count)
        got += ranks(found.better.numpy(), found.ties.numpy(), ties).tolist()
        assert (found.candidates.numpy() >= 1).all()
        for place, index in enumerate(chosen):
            fact, position = plain["test"][parts.row[index]], int(parts.position[index])
            truth = {int(one) for one in known_answers(plain, fact, position)}
            expected.append(rank(scores[place].tolist(), int(answer[place]), truth, ties))
            assert found.candidates[place] == count - len(truth - {int(answer[place])})
    return got, expected


@pytest.mark.parametrize("block", range(10))
def test_ranks_equal_the_oracle_on_thousands_of_graphs(block):
    for seed in range(300 * block, 300 * (block + 1)):
        chunk = None if seed % 3 else 1 + seed % 5
        got, expected = ranked_graph(seed, chunk, ties=("realistic", "hynt")[seed % 2])
        assert got == expected, f"seed {seed}"


def simple(scores, answer, known=(), chunk=None, allowed=None):
    """(better, ties, candidates) of one question with given scores, without and with constraints."""
    scores = torch.tensor([scores], dtype=torch.float32)
    answers = torch.tensor(sorted(known), dtype=torch.int32)
    slots = KnownSlots(answers, torch.zeros(1, dtype=torch.int64), torch.tensor([len(answers)]), len(answers))
    mask = None if allowed is None else torch.tensor([allowed])
    found = tally(
        lambda first, end: scores[:, first:end],
        scores.shape[1],
        torch.tensor([answer]),
        slots,
        chunk or scores.shape[1],
        mask,
    )
    return [None if one is None else (int(one.better), int(one.ties), int(one.candidates)) for one in found]


def test_known_answers_are_no_candidates():
    assert simple([5, 4, 3, 3, 9], answer=2) == [(3, 1, 5), None]
    assert simple([5, 4, 3, 3, 9], answer=2, known={2, 4}) == [(2, 1, 4), None]
    assert simple([5, 4, 3, 3, 9], answer=2, known={0, 1, 3, 4}) == [(0, 0, 1), None]


def test_only_allowed_candidates_count_and_the_answer_always_does():
    allowed = [True, False, True, True, False]
    assert simple([5, 4, 3, 3, 9], answer=2, known={0}, allowed=allowed)[1] == (0, 1, 2)
    assert simple([5, 4, 3, 3, 9], answer=1, known={0}, allowed=allowed)[1] == (0, 0, 3)
    assert simple([5, 4, 3, 3, 9], answer=1, known={1}, allowed=allowed)[1] == (1, 0, 4)


@given(scores=st.lists(st.sampled_from([-1.5, 0.0, 0.25, 2.0]), min_size=1, max_size=12), data=st.data())
def test_chunk_order_and_filter_behave(scores, data):
    answer = data.draw(st.integers(0, len(scores) - 1))
    known = data.draw(st.sets(st.integers(0, len(scores) - 1)))
    chunk = data.draw(st.integers(1, len(scores)))
    whole = simple(scores, answer, known)[0]
    assert simple(scores, answer, known, chunk)[0] == whole
    better, ties, candidates = whole
    assert min(better, ties) >= 0
    assert better + ties < candidates <= len(scores)
    assert simple([3 * one + 1 for one in scores], answer, known)[0] == whole  # only the order of scores matters
    assert simple(scores, answer, known | {answer})[0] == whole
    for other in range(len(scores)):  # one more known answer never makes a rank worse
        filtered = simple(scores, answer, known | {other})[0]
        assert filtered[0] <= better
        assert filtered[1] <= ties
    order = data.draw(st.permutations(range(len(scores))))
    moved = [scores[place] for place in order]
    assert simple(moved, order.index(answer), {order.index(one) for one in known})[0] == whole


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_seen(bad):
    for place in range(4):
        scores = torch.zeros(2, 4)
        scores[1, place] = bad
        none = torch.zeros(2, dtype=torch.int64)
        slots = KnownSlots(torch.zeros(0, dtype=torch.int32), none, none, 0)
        found, _ = tally(lambda a, b, s=scores: s[:, a:b], 4, torch.tensor([0, 1]), slots, 3)
        assert found.finite.tolist() == [True, False]


def test_ties_are_halved_and_hynt_floors_the_half():
    better, ties = np.array([0, 2, 5]), np.array([0, 1, 3])
    assert ranks(better, ties).tolist() == [1.0, 3.5, 7.5]
    assert ranks(better, ties, "hynt").tolist() == [1.0, 3.0, 7.0]


def test_long_lists_of_known_answers_are_looked_at_in_pieces(monkeypatch):
    whole = [ranked_graph(seed) for seed in range(40)]
    monkeypatch.setattr(ranks_module, "KNOWN_AT_ONCE", 2)
    assert [ranked_graph(seed) for seed in range(40)] == whole
