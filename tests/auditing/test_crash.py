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
from tests.training.small_graph import NARROW, set_each
from tests.trends.series_graph import series_graph

OPTIONS = [*set_each(*NARROW, "batch_size=16", "saving.minutes=0"), "--device", "cpu", "--epochs", "6", "--folds", "2"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(graph, out) -> list[str]:
    return [sys.executable, "-m", "hynt", "audit", str(graph), "--out", str(out), *OPTIONS]


def finished(graph, out) -> None:
    done = subprocess.run(
        command(graph, out), capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def killed(graph, out, seconds: float) -> bool:
    """Starts an audit and kills it so long after it is at work; false where it was done before that."""
    with subprocess.Popen(
        command(graph, out), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=ENVIRONMENT, cwd=ROOT
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_killed_audits_go_on(tmp_path):
    save_graph(series_graph(), tmp_path / "graph")
    finished(tmp_path / "graph", tmp_path / "whole.parquet")
    chance, out = random.Random(7), tmp_path / "killed.parquet"
    kills = [killed(tmp_path / "graph", out, chance.uniform(0.0, 2.0)) for _ in range(5)]
    assert any(kills)
    finished(tmp_path / "graph", out)
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "whole.parquet"))
    assert not leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph", "killed.parquet", "whole.parquet"]
