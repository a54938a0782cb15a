"""Fine-tuning beside training from scratch, on a graph of a few facts."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.fine_tuning import FIGURES, RATES, SCRATCH, STANDS, Trainings, compared, part_of, table, tuned
from tests.training.small_graph import small_graph

MODEL = {"dimension": 16, "layers": 1, "heads": 2, "feedforward": 16, "bins": 11}


def test_a_part_lacks_whole_entities_and_keeps_the_other_splits():
    graph = small_graph()
    part = part_of(graph, 0.6, seed=0)
    size, before = len(part.split("train")), len(graph.split("train"))
    assert 0.6 * before <= size < before
    assert part.split("valid") is graph.split("valid")
    heads = set(np.unique(graph.split("train").head)) - set(np.unique(part.split("train").head))
    assert heads  # somebody is new to a run of the part


def test_all_ways_are_asked_alike(tmp_path):
    changes = [f"model.{name}={value}" for name, value in MODEL.items()]
    trainings = Trainings(tmp_path, torch.device("cpu"), [*changes, "batch_size=16", "schedule.epoch_steps=2"])
    rows = list(compared(small_graph(), 0.6, [1], trainings, of_part=1))
    assert [row["way"] for row in rows] == [STANDS, SCRATCH, *map(tuned, RATES)]
    figures = {tuple(row[name] for name in FIGURES) for row in rows}
    assert len(figures) == 4
    assert rows[0]["part"]["facts"] < rows[0]["part"]["of"]
    lines = table(rows).splitlines()
    assert [line.count("|") for line in lines] == [5, 5, 5, 5]
    assert "– |" in lines[2]  # nothing stands before it was trained from scratch
