"""The study goes on where it was stopped, and its table says what validation prefers and what was not run."""

from __future__ import annotations

import json

from benchmarks.laptop_study import study, table
from hynt.graph.storage import save_graph
from tests.training.small_graph import small_graph


def test_a_study_runs_what_is_missing_and_tells_what_is_left(tmp_path):
    save_graph(small_graph(people=40), tmp_path / "graph")
    graphs, out = {"small": str(tmp_path / "graph")}, tmp_path / "study.json"
    first = list(study(graphs, [500], [0.005], "transea", "cpu", out))
    assert len(first) == 1
    assert list(study(graphs, [500], [0.005], "transea", "cpu", out)) == []
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["graphs"]["small 500"]["splits"]["train"] > 50
    text = table({**found, "planned": [*found["planned"], "small 500 3 cpu hynt"]})
    assert "| small 500 | 0.005 | cpu | transea | link MRR" in text
    assert "not run: small 500 3 cpu hynt" in text
