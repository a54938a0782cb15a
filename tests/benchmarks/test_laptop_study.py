"""The study goes on where it was stopped, and its table says what validation prefers and what was not run."""

from __future__ import annotations

from benchmarks.laptop_study import study, table
from benchmarks.result_file import read_results
from hynt.graph.storage import save_graph
from tests.training.small_graph import small_graph


def test_a_study_runs_what_is_missing_and_tells_what_is_left(tmp_path):
    save_graph(small_graph(people=40), tmp_path / "graph")
    graphs, out = {"small": str(tmp_path / "graph")}, tmp_path / "study.json"
    first = list(study(graphs, [500], [0.005], "transea", "cpu", out))
    assert len(first) == 1
    assert list(study(graphs, [500], [0.005], "transea", "cpu", out)) == []
    found = read_results(out)
    plan = found.row("plan").measured
    assert plan["graphs"]["small 500"]["splits"]["train"] > 50
    plan["planned"].append("small 500 3 cpu hynt")
    text = table(found)
    assert "| small 500 | 0.005 | cpu | transea | link MRR" in text
    assert "not run: small 500 3 cpu hynt" in text
