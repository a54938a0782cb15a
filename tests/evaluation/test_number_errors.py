"""What is told of numbers beside scaled errors: units, factors, and the training median as a yardstick."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import hynt
from hynt.evaluation.metrics import against_medians
from hynt.evaluation.tables import evaluation_tables, remarks, worse_than_trivial
from tests.evaluation.test_metrics import VOCABULARY, numbers
from tests.training.small_graph import small_graph

torch.set_num_threads(1)


def test_an_error_against_the_median_has_no_unit_and_no_single_answer_rules_it():
    truth, median = np.array([10.0, 10.0, 10.0, 10.0, 20.0]), np.array([20.0, 20.0, 20.0, 20.0, 20.0])
    said = np.array([10.0, 20.0, 15.0, 1e9, 20.0])
    scaled = (said - truth) / 100
    found = against_medians(said, truth, median, scaled)
    assert found == pytest.approx([0.0, 0.5, 1 / 3, 1.0, 0.5], abs=1e-6)
    same = against_medians(1e6 * said, 1e6 * truth, 1e6 * median, scaled)
    assert same == pytest.approx(found)
    nearly = against_medians(np.array([20.0000001]), truth[-1:], median[-1:], np.array([1e-9]))
    assert nearly.tolist() == [0.5]  # the median itself, in single precision


@pytest.fixture(scope="module")
def found():
    run = hynt.train(small_graph(), "relation-mean", device="cpu", progress=False)
    return run.evaluate()


def test_the_median_of_training_is_half_way(found):
    for scope in ("triplet", "all"):
        assert found["references"]["relation-median"]["number"][scope]["vs_median"] == pytest.approx(0.5)


def test_relations_are_told_in_their_units_and_without_any(found):
    rows = {row["relation"]: row for row in found["number"]["per_relation"]}
    row, truth = rows["height"], np.array([167.0, 169.0])  # of persons 17 and 19, in the test split
    said = np.mean([150.0 + index for index in range(16)])
    off = np.abs(said - truth)
    assert row["mae"] == pytest.approx(off.mean(), rel=1e-4)
    assert row["median_error"] == pytest.approx(np.median(off), rel=1e-4)
    assert row["median_relative_error"] == pytest.approx(np.median(off / truth), rel=1e-4)
    assert row["factor_off"] == pytest.approx(np.exp(np.median(np.log(truth / said))), rel=1e-4)
    assert row["worse_than_median"] == pytest.approx(0.5)  # mean and median of 150 … 165 are the same
    titles = [table.title for table in evaluation_tables(found.to_dict())]
    assert "numbers by relation, all" in titles
    (by_relation,) = (table for table in evaluation_tables(found.to_dict()) if table.title == titles[-1])
    (height,) = (cells for cells in by_relation.rows if cells[0] == "height")
    assert height[2].endswith("% of it")  # not to be taken for percents that a relation holds
    assert any("0.5 as good as the training median" in line for line in remarks(found.to_dict()))


def test_links_are_told_with_and_without_heads_of_numbers():
    run = hynt.train(small_graph(), "frequency", device="cpu", progress=False)
    link = run.evaluate(tasks="link")["link"]
    assert link["triplet"]["count"] - link["triplet_without_numbers"]["count"] == 2  # two heights are asked
    assert link["all"]["count"] - link["all_without_numbers"]["count"] == 2
    assert link["triplet"]["mrr"] != link["triplet_without_numbers"]["mrr"]


def test_relations_worse_than_their_median_are_named():
    rng = np.random.default_rng(0)
    questions = numbers(rng)
    assert replace(questions, median=None).metrics()["vs_median"] is None  # nobody looked the median up
    rows = questions.per_relation(VOCABULARY)
    rows = [{**row, "vs_median": value} for row, value in zip(rows, (0.7, 0.3), strict=True)]
    (said,) = worse_than_trivial({"number": {"per_relation": rows}}, {})
    assert said == "numbers of 1 of 2 relations are worse than relation-median, the median of training: height."


def test_tasks_that_ask_about_triplets_alone_are_told_together():
    found = {"protocol": {}} | {
        task: {scope: {"count": 3} for scope in ("triplet", "all")} for task in ("link", "relation")
    }
    assert remarks(found) == [
        "link, relation: every question is about a triplet; no qualifier of the split holds anything of this kind"
    ]
