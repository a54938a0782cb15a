"""Ctrl-C and kill in the middle of an import: an exit code of their own, and nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hynt.cli.interruption import interruptible
from tests.cli.conftest import leftovers


def test_a_termination_is_an_interruption_within_the_block_only():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_leaves_nothing(tmp_path, number):
    # The source is a pipe's worth of work: large enough that the signal arrives while it is read.
    with (tmp_path / "big.tsv").open("w") as file:
        for at in range(400_000):
            file.write(f"e{at % 5000}\tr\te{at}\n")
    command = [sys.executable, "-m", "hynt", "data", "import", "big.tsv", "--format", "tsv", "--out", "graph"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(0.9)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the import was done before the signal came")
    assert "Traceback" not in out + err
    assert process.returncode == 130, err
    assert not (tmp_path / "graph").exists()
    assert leftovers(tmp_path) == []


def test_an_interrupt_while_writing_leaves_nothing(hynt, source, tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("hynt.graph.storage._publish", interrupted)
    done = hynt("data", "import", source, "--format", "jsonl", "--out", tmp_path / "g")
    assert done.code == 130
    assert not (tmp_path / "g").exists()
    assert leftovers(tmp_path) == []


def test_an_interrupt_while_replacing_keeps_the_old_graph(hynt, source, graph, monkeypatch):
    before = (graph / "manifest.json").read_bytes()
    replace = Path.replace

    def interrupted(old: Path, new: Path) -> Path:
        if ".partial-" in old.name:
            raise KeyboardInterrupt
        return replace(old, new)

    monkeypatch.setattr(Path, "replace", interrupted)
    done = hynt("data", "import", source, "--format", "jsonl", "--out", graph, "--overwrite")
    assert done.code == 130
    assert (graph / "manifest.json").read_bytes() == before
    assert leftovers(graph.parent) == []
