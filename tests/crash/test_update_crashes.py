"""A process that updates a run, killed without warning: every version that it was told of is there afterwards."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hynt.graph.storage import load_graph, save_graph
from hynt.runs.journal import Journal
from tests.conftest import ROOT
from tests.training.small_graph import small_graph

# Adds a fact per version, and says so once it is on disk.
CHILD = """
import sys
from pathlib import Path
from hynt.graph.fact import Fact
from hynt.graph.storage import load_graph
from hynt.runs.journal import GraphChange, Journal

journal = Journal(Path(sys.argv[1]))
graph = journal.graph(load_graph(sys.argv[1] + "/graph"))
print("ready", flush=True)
while True:
    with journal.writer() as writer:
        change = GraphChange(added=(Fact(f"new {journal.latest() + 1}", "knows", "person 1"),))
        version = writer.append(change, graph, "crash")
        graph = change.applied(graph)
    print(version.version, flush=True)
"""


def killed_once(folder: Path, chance: random.Random) -> int:
    """Kills a child at a random moment; the last version that it told of, 0 where it came to none."""
    command = [sys.executable, "-c", CHILD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.random() * 0.1)
        child.send_signal(signal.SIGKILL)
        told = [line for line in child.stdout if line.endswith("\n")]
    return int(told[-1]) if told else 0


def crash(tmp_path: Path, kills: int) -> None:
    base, chance, last = small_graph(), random.Random(0), 0
    save_graph(base, tmp_path / "graph")
    for _ in range(kills):
        last = max(last, killed_once(tmp_path, chance))
        journal = Journal(tmp_path)
        assert journal.latest() >= last, "a version that was acknowledged is lost"
        last = journal.latest()
        graph = journal.graph(load_graph(tmp_path / "graph"))
        assert len(graph) == len(base) + last
        assert all(f"new {version}" in graph.vocabulary.entity_ids for version in range(1, last + 1))
    assert last > 0


def test_nothing_acknowledged_is_lost(tmp_path):
    crash(tmp_path, 3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_acknowledged_is_lost_in_many_crashes(tmp_path):
    crash(tmp_path, 200)
