"""The speed of models: each in a process of its own, one after another, also when all were prepared at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.result_file import read_measured
from hynt.graph.storage import save_graph
from tests.conftest import ROOT
from tests.training.small_graph import small_graph


@pytest.mark.slow
def test_models_that_prepare_at_once_are_timed_in_turn_and_one_that_fails_delays_nobody(tmp_path):
    save_graph(small_graph(people=40), tmp_path / "small")
    out = tmp_path / "speed.json"
    options = ["--models", "transea,ram,nalp", "--seconds", "0.2", "--threads", "1", "--test-facts", "2", "--together"]
    options += ["--set", "model.filters=2"]  # RAM has no such setting, and TransEA neither
    command = [sys.executable, "-m", "benchmarks.model_speed", "--graph", str(tmp_path / "small"), "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": "src"}
    subprocess.run([*command, *options], cwd=ROOT, env=environment, check=True, timeout=300)
    rows = read_measured(out)["models"]
    assert set(rows) == {"transea", "ram", "nalp"}
    assert "model.filters" in rows["ram"]["problem"]
    assert rows["nalp"]["facts_per_second"] > 0
    assert rows["nalp"]["test_questions"] <= 40
    table = subprocess.run(
        [sys.executable, "-m", "benchmarks.model_speed", "--markdown", str(out)],
        cwd=ROOT,
        env=environment,
        check=True,
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert table.stdout.count("\n| `") == 3
