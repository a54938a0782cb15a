"""Metrics by hand and against the oracle; bootstrap, comparison and breakdowns on small results."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow.compute as compute
import pyarrow.parquet as parquet
import pytest

from hynt.errors import UsageError
from hynt.evaluation.bootstrap import compare, fact_sums, interval, intervals
from hynt.evaluation.metrics import checked_tasks, number_metrics, ranking_metrics
from hynt.evaluation.results import (
    Evaluation,
    NumberQuestions,
    RankedQuestions,
    by_entity_frequency,
    by_position,
    by_qualifier_count,
    by_relation,
    columns,
    entity_frequency,
    write_questions,
)
from hynt.graph.vocabulary import Relation, Vocabulary
from tests.oracle.plain_facts import table_of
from tests.oracle.ranking_oracle import metrics

VOCABULARY = Vocabulary(
    tuple(f"entity {index}" for index in range(30)),
    (Relation("born in", "entity"), Relation("height", "number", "m"), Relation("since", "number", "date")),
)


def ranked(rng, questions=200, shift=0) -> RankedQuestions:
    whole = {name: rng.integers(0, high, questions) for name, high in (("answer", 30), ("relation", 1), ("ties", 4))}
    row = np.sort(rng.integers(0, questions // 3, questions))
    return RankedQuestions(
        row=row,
        position=np.arange(questions) % 5,
        qualifiers=row % 4,
        better=rng.integers(0, 20, questions) + shift,
        candidates=np.full(questions, 60),
        **whole,
    )


def numbers(rng, questions=100, noise=0.1) -> NumberQuestions:
    truth = rng.random(questions)
    predicted = truth + noise * rng.standard_normal(questions)
    relation = 1 + np.arange(questions) % 2
    return NumberQuestions(
        row=np.arange(questions),
        position=2 + 2 * (np.arange(questions) % 2),
        relation=relation,
        head=relation,
        qualifiers=np.ones(questions, dtype=np.int64),
        truth=10 * truth,
        predicted=10 * predicted,
        expected=10 * predicted,
        truth_scaled=truth,
        predicted_scaled=predicted,
        expected_scaled=predicted,
        median=np.full(questions, 5.0),
    )


def evaluation(link, number=None, **protocol) -> Evaluation:
    tasks = {"link": link} | ({} if number is None else {"number": number})
    return Evaluation(VOCABULARY, tasks, None, "realistic", {"graph": "g", "split": "test", **protocol})


def test_ranking_metrics_by_hand_and_by_oracle():
    rank, candidates = np.array([1.0, 2.0, 4.0, 11.5]), np.array([11, 21, 31, 41])
    found = ranking_metrics(rank, candidates)
    assert found == pytest.approx(metrics(rank.tolist(), candidates.tolist()))
    assert found["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 4 + 1 / 11.5) / 4)
    assert (found["hits@1"], found["hits@3"], found["hits@10"]) == (0.25, 0.5, 0.75)
    assert found["amri"] == pytest.approx(1 - (4.625 - 1) / (13.5 - 1))


def test_amri_is_one_at_best_nothing_by_chance_and_minus_one_at_worst():
    candidates = np.array([5, 9, 101])
    assert ranking_metrics(np.ones(3), candidates)["amri"] == 1
    assert ranking_metrics((candidates + 1) / 2, candidates)["amri"] == 0
    assert ranking_metrics(candidates.astype(float), candidates)["amri"] == -1
    assert ranking_metrics(np.ones(2), np.ones(2, dtype=np.int64))["amri"] is None  # only one candidate each: no chance


def test_no_question_gives_no_number():
    empty = np.zeros(0)
    assert ranking_metrics(empty, empty.astype(np.int64)) == {
        "mrr": None,
        "hits@1": None,
        "hits@3": None,
        "hits@10": None,
        "mean_rank": None,
        "amri": None,
        "count": 0,
    }
    assert number_metrics(empty, empty) == {"rmse": None, "mae": None, "vs_median": None, "count": 0}


def test_number_metrics_by_hand():
    error = np.array([3.0, -4.0, 0.0, 0.0])
    found = number_metrics(error, error)
    assert found == {"rmse": 2.5, "mae": 1.75, "vs_median": None, "count": 4}


def test_the_mapping_has_the_documented_shape():
    rng = np.random.default_rng(0)
    mapping = evaluation(ranked(rng), numbers(rng)).to_mapping()
    ranking = {"mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "amri", "count"}
    assert set(mapping) == {"link", "number", "protocol"}
    assert {scope: set(found) for scope, found in mapping["link"].items()} == {"triplet": ranking, "all": ranking}
    assert set(mapping["number"]) == {"triplet", "all", "per_relation"}
    assert set(mapping["number"]["all"]) == {"rmse", "mae", "vs_median", "count"}
    assert mapping["number"]["triplet"]["count"] == 50
    height, since = mapping["number"]["per_relation"]
    assert (height["relation"], height["unit"], since["unit"]) == ("height", "m", "date")
    assert height["rmse"] == pytest.approx(10 * height["scaled_rmse"])


def test_one_metric_by_path():
    rng = np.random.default_rng(0)
    found = evaluation(ranked(rng), numbers(rng))
    assert found.metric("link.all.mrr") == found.to_mapping()["link"]["all"]["mrr"]
    with pytest.raises(KeyError):
        found.metric("link.some.mrr")


def test_intervals_hold_the_value_and_narrow_with_more_facts():
    rng = np.random.default_rng(3)
    widths = []
    for count in (100, 6400):
        questions = ranked(rng, count)
        value = questions.metrics()["mrr"]
        low, high = intervals(questions, samples=200)["mrr"]
        assert low < value < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 4  # 64 times the facts: about an eighth of the width
    assert intervals(questions, samples=50, seed=5) == intervals(questions, samples=50, seed=5)


def test_intervals_resample_facts_not_questions():
    questions = ranked(np.random.default_rng(1), 60)
    once = intervals(questions, samples=300)["mrr"]
    doubled = RankedQuestions(**{name: np.repeat(column, 2) for name, column in columns(questions).items()})
    assert intervals(doubled, samples=300)["mrr"] == pytest.approx(once)  # the same question twice adds no knowledge


def test_the_sums_of_facts_give_the_metrics():
    rng = np.random.default_rng(2)
    for questions in (ranked(rng), numbers(rng)):
        sums = fact_sums(questions)
        found = questions.metrics()
        assert sums.value() == pytest.approx([found[name] for name in sums.names])


def test_where_nothing_was_asked_there_is_no_interval_and_no_difference():
    """Of a graph with numbers in qualifiers alone, say: NaN would be no JSON."""
    from hynt.evaluation.bootstrap import _one_scope

    for questions in (ranked(np.random.default_rng(0)), numbers(np.random.default_rng(0))):
        only = type(questions)(**{name: column[questions.position > 2] for name, column in columns(questions).items()})
        assert intervals(only, "all", samples=20)
        assert intervals(only, "triplet", samples=20) == {}
        assert list(_one_scope(only, only, "triplet", "realistic", 20, 0.95, 0)) == ["questions"]


def test_bad_bootstrap_settings_are_refused():
    with pytest.raises(UsageError, match="at least one sample, not 0"):
        intervals(ranked(np.random.default_rng(0)), samples=0)
    with pytest.raises(UsageError, match="between 0 and 1"):
        interval(np.ones(3), 1.0)
    assert all(math.isnan(end) for end in interval(np.array([np.nan])))


def test_a_clear_difference_is_told_from_none():
    good, worse = ranked(np.random.default_rng(4)), ranked(np.random.default_rng(4), shift=3)
    found = compare(evaluation(good), evaluation(worse), samples=200)["link"]["all"]
    assert found["mrr"]["difference"] == pytest.approx(good.metrics()["mrr"] - worse.metrics()["mrr"])
    assert found["mrr"]["low"] > 0
    assert found["mrr"]["p_value"] < 0.02
    assert found["mean_rank"]["difference"] == pytest.approx(-3)
    assert found["mean_rank"]["lower_is_better"]
    assert found["questions"] == {"first_better": len(good), "second_better": 0, "equal": 0}
    same = compare(evaluation(good), evaluation(good), samples=50)["link"]["triplet"]
    assert (same["mrr"]["difference"], same["mrr"]["p_value"]) == (0, 1)


def test_numbers_are_compared_too():
    exact, rough = numbers(np.random.default_rng(4), noise=0.01), numbers(np.random.default_rng(4), noise=0.2)
    link = ranked(np.random.default_rng(4))
    found = compare(evaluation(link, exact), evaluation(link, rough), samples=100)["number"]["all"]
    assert found["rmse"]["high"] < 0
    assert found["rmse"]["lower_is_better"]


def test_what_may_not_be_compared_is_refused():
    rng = np.random.default_rng(0)
    one = ranked(rng)
    with pytest.raises(UsageError, match=r"protocol\.ties: the two runs may not be compared: ties is 'hynt' for the"):
        compare(evaluation(one, ties="hynt"), evaluation(one, ties="realistic"))
    with pytest.raises(UsageError, match="not asked the same link questions: they differ in 'row'"):
        compare(evaluation(one), evaluation(ranked(rng, 100)))


def test_breakdowns_cover_every_question_once():
    rng = np.random.default_rng(0)
    questions = ranked(rng)
    frequency = entity_frequency(table_of([(0, 0, 1, []), (0, 0, 2, [(0, 1)]), (0, 1, 1.5, [])]), VOCABULARY)
    assert frequency[:4].tolist() == [3, 2, 1, 0]
    for rows in (
        by_relation(questions, "realistic", VOCABULARY),
        by_position(questions, "realistic"),
        by_qualifier_count(questions, "realistic"),
        by_entity_frequency(questions, "realistic", frequency),
    ):
        assert sum(row["count"] for row in rows) == len(questions)
        weighted = sum(row["mrr"] * row["count"] for row in rows) / len(questions)
        assert weighted == pytest.approx(questions.metrics()["mrr"])
    names = [row["group"] for row in by_position(questions, "realistic")]
    assert names == ["head", "relation", "tail", "qualifier relation", "qualifier value"]
    assert [row["group"] for row in by_entity_frequency(questions, "realistic", frequency)] == ["0", "1–2", "3–9"]
    assert [row["group"] for row in by_relation(numbers(rng), "realistic", VOCABULARY)] == ["height", "since"]


def test_per_question_results_are_written_with_their_protocol(tmp_path):
    rng = np.random.default_rng(0)
    first = evaluation(ranked(rng), numbers(rng), ties="realistic")
    write_questions(first, tmp_path / "questions.parquet")
    table = parquet.read_table(tmp_path / "questions.parquet")
    for task, questions in first.per_question.items():
        rows = table.filter(compute.equal(table["task"], task))
        for name, column in columns(questions).items():
            assert rows[name].to_numpy().tolist() == np.asarray(column).tolist()
    meta = json.loads(table.schema.metadata[b"hynt-evaluation"])
    assert meta == {"schema": 1, "ties": "realistic", "tasks": ["link", "number"], "protocol": dict(first.protocol)}


def test_tasks_are_checked():
    assert checked_tasks(["number", "link", "link"]) == ("link", "number")
    assert checked_tasks("number, link,") == ("link", "number")
    with pytest.raises(UsageError, match="unknown task 'links'"):
        checked_tasks(["links"])
    with pytest.raises(UsageError, match="no task was given"):
        checked_tasks([])
