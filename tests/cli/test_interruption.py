"""Ctrl-C and kill in the middle of an import: an exit code of their own, and nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hynt.interruption import interruptible, stopping_on_signals
from tests.cli.conftest import leftovers


def test_a_termination_is_an_interruption_within_the_block_only():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_who_asks_to_stop_hears_at_once_that_it_was_heard():
    """What is done may take long to be saved, and a second Ctrl-C in the silence would lose it."""
    said: list[str] = []
    with stopping_on_signals() as stopper:
        stopper.say = said.append
        os.kill(os.getpid(), signal.SIGINT)
        assert stopper.asked
        assert said == ["stopping: what is done is being saved. Once more stops at once, without saving."]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


INTERRUPTED_WHILE_READING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background jobs ignore it
from hynt.cli.application import main
from hynt.formats import tsv

original = tsv.read_facts

def reading(path, options, report):
    for count, fact in enumerate(original(path, options, report)):
        if count == 1000:
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))
        yield fact

tsv.read_facts = reading
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_import_leaves_nothing(tmp_path, number):
    with (tmp_path / "big.tsv").open("w") as file:
        file.writelines(f"e{at % 50}\tr\te{at}\n" for at in range(5_000))
    command = [sys.executable, "-c", INTERRUPTED_WHILE_READING]
    arguments = ["data", "import", "big.tsv", "--format", "tsv", "--out", "graph"]
    environment = {**os.environ, "SIGNAL": str(int(number)), "TMPDIR": str(tmp_path)}
    done = subprocess.run([*command, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-1] == "interrupted: nothing half-written is left"
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["big.tsv"]


def test_an_interrupt_while_writing_leaves_nothing(hynt, source, tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("hynt.files._publish", interrupted)
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
    monkeypatch.setattr("hynt.files.exchange", lambda one, other: False)  # a system that needs two renames
    done = hynt("data", "import", source, "--format", "jsonl", "--out", graph, "--overwrite")
    assert done.code == 130
    assert (graph / "manifest.json").read_bytes() == before
    assert leftovers(graph.parent) == []


INTERRUPTED_WHILE_LOADING = """
import sys
from hynt.cli.entry import main

class Slow:
    def find_spec(self, name, *where):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Slow())
main()
"""


def test_an_interrupt_while_the_command_line_is_loaded_is_one_line():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_WHILE_LOADING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted: nothing was begun\n")
