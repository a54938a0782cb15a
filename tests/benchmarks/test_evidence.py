"""What a row tells beyond its metrics: groups that add up, intervals and probabilities, and outcomes by question."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.evidence import GROUPINGS, from_answers, from_asking
from benchmarks.result_file import Outcomes, row_of_trial
from hynt.comparison.trial import Trial, TrialPlace, run_trial
from tests.training.small_graph import small_graph

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evidence") / "run"
    place = TrialPlace(small_graph(people=40), CPU)
    trial = Trial("transea", changes=("schedule.epochs=1", "model.dimension=8"))
    return folder, run_trial(place, trial, folder, further=from_answers)


def test_groups_and_outcomes_are_those_of_the_metrics(trained):
    _, row = trained
    link = row["test"]["realistic"]["link"]["all"]
    for grouping in GROUPINGS:
        groups = row["breakdowns"]["link"][grouping]
        assert sum(one["count"] for one in groups) == link["count"]
        assert sum(one["count"] * one["mrr"] for one in groups) / link["count"] == pytest.approx(link["mrr"])
    ranks = Outcomes.unpacked(row["outcomes"]["link"]).value
    assert (1 / ranks).mean() == pytest.approx(link["mrr"])
    errors = Outcomes.unpacked(row["outcomes"]["number"]).value
    assert np.sqrt((errors**2).mean()) == pytest.approx(row["test"]["realistic"]["number"]["all"]["rmse"])


def test_probabilities_intervals_and_shuffled_numbers_are_told(trained):
    folder, row = trained
    found = from_asking(folder, CPU)
    assert set(found["calibration"]) == {"link", "number", "shuffled_literals"}
    assert 0 <= found["calibration"]["link"]["after"] <= 1
    made = row_of_trial(row | found, "small transea", "small", "cpu")
    assert made.runs[0].calibration == found["calibration"]


def test_what_fails_is_told(tmp_path):
    assert "no run" in from_asking(tmp_path / "nothing", CPU)["calibration"]["failed"]
