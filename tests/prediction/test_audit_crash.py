"""An audit in a real process, killed without warning again and again, comes to the end that it would have come to."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from hynt.graph.storage import save_graph
from tests.cli.conftest import leftovers
from tests.conftest import ROOT
from tests.prediction.series_graph import series_graph

OPTIONS = [
    "--set", "model.dimension=16", "--set", "model.context_heads=2", "--set", "model.prediction_heads=2",
    "--set", "model.context_feedforward=32", "--set", "model.prediction_feedforward=32", "--set", "batch_size=16",
    "--set", "saving.minutes=0", "--device", "cpu", "--epochs", "6", "--folds", "2",
]  # fmt: skip


def started(graph, out) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hynt", "audit", str(graph), "--out", str(out), *OPTIONS]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment, cwd=ROOT
    )


@pytest.mark.slow
def test_killed_audits_go_on(tmp_path):
    save_graph(series_graph(), tmp_path / "graph")
    whole = started(tmp_path / "graph", tmp_path / "whole.parquet")
    assert whole.wait(timeout=300) == 0
    chance, kills = random.Random(7), 0
    out = tmp_path / "killed.parquet"
    for _ in range(8):
        process = started(tmp_path / "graph", out)
        assert process.stderr is not None
        process.stderr.readline()  # it is at work
        time.sleep(chance.uniform(0.0, 2.0))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        process.stderr.close()
    assert kills
    last = started(tmp_path / "graph", out)
    assert last.wait(timeout=300) == 0
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "whole.parquet"))
    assert not leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph", "killed.parquet", "whole.parquet"]
