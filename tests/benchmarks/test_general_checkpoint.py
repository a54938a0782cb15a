"""Training on several graphs at once and asking about one that was left out, on graphs of a few facts."""

from __future__ import annotations

import torch

from benchmarks.general_checkpoint import FIGURES, Lengths, Trainings, left_out, side_by_side, table
from benchmarks.generated_graph import long_graph
from tests.town_graph import town_graph
from tests.training.small_graph import small_graph

TINY = (
    "model.dimension=8",
    "model.layers=1",
    "model.heads=2",
    "model.feedforward=8",
    "model.bins=11",
    "batch_size=16",
    "schedule.epoch_steps=2",
)


def test_graphs_lie_side_by_side_without_touching():
    one, other = small_graph(), town_graph()
    both = side_by_side({"people": one, "towns": other})
    assert len(both.split("train")) == len(one.split("train")) + len(other.split("train"))
    assert both.vocabulary.relation_count == len(one.relations) + len(other.relations)
    facts = list(both.facts("train"))
    assert facts[0].head == f"people: {next(iter(one.facts('train'))).head}"
    last = list(other.facts("train"))[-1]
    assert (facts[-1].head, facts[-1].relation) == (f"towns: {last.head}", f"towns: {last.relation}")


def test_a_graph_that_was_left_out_is_asked_every_way(tmp_path):
    graphs = {"people": small_graph(), "towns": town_graph(), "made": long_graph(60, 3)}
    rows = dict(left_out("towns", graphs, Lengths(1, 1, 0.3, 40), Trainings(tmp_path, torch.device("cpu"), TINY)))
    assert rows["zero-shot"]["facts"] < sum(len(graphs[name].split("train")) for name in ("people", "made"))
    assert list(rows) == ["zero-shot", "tuned", "from scratch", "frequency", "relation-median", "neighbour-mean"]
    assert set(FIGURES) <= set(rows["zero-shot"]) & set(rows["tuned"])
    assert rows["tuned"] != rows["from scratch"]
    assert "link.all.mrr" in rows["frequency"]
    assert table({"towns": rows}).count("\n") == 7
