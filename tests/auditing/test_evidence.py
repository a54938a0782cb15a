"""Evidence: what it is fitted on, how it grows, and how components make a fact's score."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from hynt.auditing.judges import joined_inverse_temperature
from hynt.auditing.judging import Judge, relation_sorts
from hynt.auditing.verdicts import evidence, of_facts
from hynt.evaluation.evaluator import Evaluator
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact_table import components, concatenate
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.log_scales import suited_to_logarithms
from hynt.graph.seen_values import SeenValues

RANDOM = np.random.default_rng(5)


def drawn(centre: float, count: int, parts: int = 4) -> tuple[np.ndarray, np.ndarray]:
    return RANDOM.normal(centre, 1.0, count), RANDOM.integers(0, parts, count)


class TestEvidence:
    def test_it_is_the_log_ratio_of_densities_where_that_is_a_line(self):
        """Two normal distributions a distance d apart have the log ratio d·x, if 0 is the middle."""
        (stored, part), (wrong, wrong_part) = drawn(-0.75, 40_000), drawn(0.75, 40_000)
        at = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
        found = evidence(np.concatenate([stored, at]), np.concatenate([part, [9] * 5]), wrong, wrong_part)[-5:]
        assert np.allclose(found * math.log(10), 1.5 * at, atol=0.1)

    def test_it_never_falls_and_never_exceeds_what_was_seen(self):
        (stored, part), (wrong, wrong_part) = drawn(-3, 500), drawn(3, 500)
        at = np.linspace(-40, 40, 200)
        found = evidence(np.concatenate([stored, at]), np.concatenate([part, [9] * 200]), wrong, wrong_part)[-200:]
        assert (np.diff(found) >= 0).all()
        assert found[-1] <= math.log10(500)

    def test_a_part_has_no_say_in_its_own_evidence(self):
        (stored, part), (wrong, wrong_part) = drawn(-1, 800), drawn(1, 800)
        before = evidence(stored, part, wrong, wrong_part)
        own = np.flatnonzero(part == 2)
        moved, shifted = stored.copy(), wrong.copy()
        moved[own[1:]] += 50.0
        shifted[wrong_part == 2] -= 50.0
        after = evidence(moved, part, shifted, wrong_part)
        assert after[own[0]] == before[own[0]]
        assert not np.allclose(after[part == 1], before[part == 1])

    def test_too_little_says_nothing(self):
        (stored, part), (wrong, wrong_part) = drawn(-1, 12), drawn(1, 12)
        assert not evidence(stored, part, wrong, wrong_part).any()

    def test_signals_that_tell_nothing_weigh_nothing(self):
        (stored, part), (wrong, wrong_part) = drawn(0, 20_000), drawn(0, 20_000)
        assert np.abs(evidence(stored, part, wrong, wrong_part)).max() < 0.1


def test_a_fact_is_as_suspicious_as_the_mean_of_its_ratios():
    score = np.array([0.0, 2.0, 1.0, -1.0, 3.0, 3.0])
    fact = np.array([4, 4, 4, 9, 7, 7])
    facts, found, worst = of_facts(score, fact)
    assert facts.tolist() == [4, 7, 9]
    assert np.allclose(found, [math.log10((1 + 100 + 10) / 3), 3.0, -1.0])
    assert worst.tolist() == [1, 4, 3]


def test_sharpness_is_the_geometric_mean_of_the_others():
    found = joined_inverse_temperature([{"link": 2.0, "relation": 3.0}, {"link": 8.0}])
    assert found == pytest.approx({"link": 4.0, "relation": 3.0})
    assert joined_inverse_temperature([]) == {"link": 1.0, "relation": 1.0}


def test_decoys_are_values_of_the_same_place(towns):
    table, is_number = concatenate(list(towns.splits.values())), towns.vocabulary.relation_is_number
    parts = components(table, is_number)
    named = parts.take(np.flatnonzero(parts.kind != 2))
    places = SeenValues.of([table], is_number, relation_sorts(towns.vocabulary))
    keys = places.keys(named.position, named.relation)
    value = np.where(named.kind == 0, named.entity, named.relation)
    seen: dict[int, set[int]] = {}
    for key, one in zip(keys.tolist(), value.tolist(), strict=True):
        seen.setdefault(key, set()).add(one)
    drawn_values = places.draw(keys, seed=1)
    assert all(one in seen[key] for key, one in zip(keys.tolist(), drawn_values.tolist(), strict=True))
    assert places.sizes(keys).tolist() == [len(seen[key]) for key in keys.tolist()]
    assert (drawn_values != places.draw(keys, seed=2)).any()


def test_a_judge_sees_what_the_evaluator_sees(predictor):
    """The same places, and the same numbers, for the test split of a run."""
    loaded, cpu = predictor.loaded, torch.device("cpu")
    graph = loaded.graph
    table, is_number = graph.split("test"), graph.vocabulary.relation_is_number
    first = len(graph) - len(table)
    facts = np.arange(first, len(graph))
    places = SeenValues.of(graph.splits.values(), is_number, relation_sorts(graph.vocabulary))
    judge = Judge(loaded, KnownAnswers.build(graph.splits, is_number), places, facts, table, table, cpu)
    evaluated = Evaluator(graph, loaded.scaling, "test", device=cpu, literals=loaded.literals).evaluate(loaded.model)
    for task in ("link", "relation"):
        found, expected = judge.ranked(task, 1.3), evaluated.per_question[task]
        assert np.array_equal(found.fact - first, expected.row)
        assert np.array_equal(found.position, expected.position)
        if task == "link":  # relations are judged among fewer candidates: see test_audit_units.py
            assert np.array_equal(found.place, 1 + expected.better + expected.ties / 2)
        assert (found.log_probability <= found.best_log_probability).all()
    numbers, expected = judge.numbers(), evaluated.per_question["number"]
    assert np.array_equal(numbers.predicted, expected.predicted)
    asked = sum(len(one) for one in evaluated.per_question.values())
    assert judge.questions() == asked


def test_probabilities_are_those_of_the_predictor(predictor):
    """Where a question has no other known answer, the judge's probability is the one that a person is told."""
    loaded, cpu = predictor.loaded, torch.device("cpu")
    graph, is_number = loaded.graph, loaded.graph.vocabulary.relation_is_number
    table = graph.split("test")
    known = KnownAnswers.build(graph.splits, is_number)
    places = SeenValues.of(graph.splits.values(), is_number, relation_sorts(graph.vocabulary))
    judge = Judge(loaded, known, places, np.arange(len(table)), table, table, cpu)
    found = judge.ranked("link", predictor.calibration.inverse_temperature("link", 2))
    fact = next(row for row, one in enumerate(table.facts(graph.vocabulary)) if one.relation == "P108")
    (place,) = np.flatnonzero((found.fact == fact) & (found.position == 2))
    told = next(iter(table.take(np.array([fact])).facts(graph.vocabulary)))
    answers = predictor.predict(head=told.head, relation="P108", tail="?", top=1000)
    (own,) = [answer for answer in answers if answer.id == told.tail]
    assert own.probability == pytest.approx(math.exp(found.log_probability[place]), rel=1e-5)
    assert answers[0].id == graph.vocabulary.entities[int(found.best[place])]


def test_log_scales_are_for_wide_positive_numbers():
    facts = [(f"e{i}", "population", 10.0 ** (1 + i % 6)) for i in range(60)]
    facts += [(f"e{i}", "height", 150.0 + i) for i in range(60)]
    facts += [(f"e{i}", "balance", -1.0 * 10.0 ** (i % 6)) for i in range(60)]
    graph = graph_from_facts({"train": facts})
    assert suited_to_logarithms(graph.vocabulary, graph.split("train")) == ("population",)
