"""What a statistic is worth is told by validation facts that its weights were not fitted on."""

from __future__ import annotations

import torch

from benchmarks.statistics_worth import halves, worth
from hynt.runs.opening import load_run
from hynt.training.run import start, train
from tests.evaluation.test_combining import series_graph
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")


def test_halves_share_no_fact_and_leave_the_test_split_out():
    graph = series_graph()
    one, other = halves(graph)
    assert one.split("valid") is other.split("test")
    assert one.split("test") is other.split("valid")
    assert len(one.split("valid")) + len(one.split("test")) == len(graph.split("valid"))
    assert set(one.facts("valid")) | set(one.facts("test")) == set(graph.facts("valid"))


def test_curves_are_worth_much_where_numbers_lie_on_some(tmp_path):
    run = train(start(series_graph(), tiny_settings("relation-mean"), tmp_path / "run", CPU), CPU)
    loaded = load_run(run.path)
    assert worth(loaded, ())["number rmse"] < worth(loaded, {"number-series", "neighbour-regression"})["number rmse"]
