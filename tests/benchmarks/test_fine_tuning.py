"""Fine-tuning beside training from scratch, on a graph of a few facts."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.fine_tuning import FIGURES, compared, part_of, table
from tests.training.small_graph import small_graph, tiny_settings

MODEL = {"dimension": 16, "layers": 1, "heads": 2, "feedforward": 16, "bins": 11}


def test_a_part_lacks_whole_entities_and_keeps_the_other_splits():
    graph = small_graph()
    part = part_of(graph, 0.6, seed=0)
    size, before = len(part.split("train")), len(graph.split("train"))
    assert 0.6 * before <= size < before
    assert part.split("valid") is graph.split("valid")
    heads = set(np.unique(graph.split("train").head)) - set(np.unique(part.split("train").head))
    assert heads  # somebody is new to a run of the part


def test_both_ways_are_validated_alike(capsys):
    settings = tiny_settings(
        "hynt-inductive", model=MODEL, batch_size=16, schedule={"epochs": 2}, validation={"every": 1}
    )
    found = compared(small_graph(), settings, 0.6, torch.device("cpu"))
    assert [len(found[name]) for name in ("part", "from part", "from scratch")] == [2, 2, 2]
    one, other = found["from part"][0], found["from scratch"][0]
    assert {name: one[name] for name in FIGURES} != {name: other[name] for name in FIGURES}
    lines = table(found).splitlines()
    assert lines[0].count("|") == 4
    assert len(lines) == 4
    assert "from scratch" in capsys.readouterr().out
