"""Locks that end with their process, folders that are never missing, and left-overs of killed processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from hynt import files, leftovers
from hynt.cli.application import run as command
from hynt.errors import DataError, UsageError
from hynt.graph.storage import load_graph, save_graph
from hynt.training.run import start, train
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")
HOLD = """
import sys, time
from pathlib import Path
from hynt.files import new_folder, whole_file
from hynt.leftovers import only_writer
where = Path(sys.argv[1])
with only_writer(where, ""), new_folder(where / "made") as folder, whole_file(where / "file.txt") as file:
    (folder / "half").write_text("x")
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that is writing, for as long as nobody kills it."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def killed(process) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_second_training_of_a_run_is_refused(tmp_path):
    run = start(small_graph(), tiny_settings(), tmp_path / "run", CPU)
    with (
        leftovers.only_writer(run.path, ""),
        pytest.raises(UsageError, match="another process is writing here") as said,
    ):
        train(run, CPU)
    assert str(run.path) in str(said.value)
    assert "Wait until it is done" in str(said.value)
    assert train(run, CPU).is_finished


def test_a_lock_ends_with_its_process(holder, tmp_path):
    with pytest.raises(UsageError), leftovers.only_writer(tmp_path, ""):
        pass
    killed(holder)
    with leftovers.only_writer(tmp_path, ""):
        pass


def test_what_is_being_written_is_left_alone_until_its_writer_is_gone(holder, tmp_path, capsys):
    hidden = {path.name.split("-")[1] for path in tmp_path.glob(".partial-*")}
    assert hidden == {"made", "file.txt"}
    assert leftovers.clean(tmp_path) == []
    killed(holder)
    assert leftovers.left_overs(tmp_path, leftovers.A_DAY) == []
    assert command(["data", "clean", str(tmp_path)]) == 0
    assert "2 left-overs removed" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_left_overs_in_runs_are_found_too(tmp_path, capsys):
    run = start(small_graph(), tiny_settings(), tmp_path / "runs" / "one", CPU)
    kept = tmp_path / "elsewhere"
    (kept / "manifest.json").mkdir(parents=True)
    (run.path / "link").symlink_to(kept)
    hidden = [".partial-calibration.json-abcdefgh", "updates/.partial-000001.jsonl-abcdefgh"]
    (run.path / "updates").mkdir()
    for place in (*(run.path / name for name in hidden), kept / ".partial-x-abcdefgh"):
        place.touch()
    assert command(["data", "clean", str(tmp_path / "runs"), "--json"]) == 0
    removed = json.loads(capsys.readouterr().out)["removed"]
    assert removed == [f"one/{name}" for name in hidden]
    assert command(["data", "clean", str(run.path)]) == 0
    assert "0 left-overs removed" in capsys.readouterr().out
    assert [path.name for path in kept.glob(".*")] == [".partial-x-abcdefgh"]


def test_a_folder_that_is_discarded_is_never_half_there(tmp_path, monkeypatch):
    """A kill while its files go leaves a left-over."""
    (tmp_path / "work" / "part").mkdir(parents=True)
    (tmp_path / "work" / "plan.json").touch()

    def dies(path, **_):
        (path / "plan.json").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", dies)
    with pytest.raises(KeyboardInterrupt):
        files.WorkFolder(tmp_path / "work").remove()
    monkeypatch.undo()
    assert not (tmp_path / "work").exists()
    assert len(leftovers.clean(tmp_path)) == 1
    leftovers.discard(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_left_overs_go_after_a_day_when_the_same_is_written_again(holder, tmp_path):
    killed(holder)
    left = next(tmp_path.glob(".partial-made-*"))
    yesterday = time.time() - 1.1 * leftovers.A_DAY
    os.utime(left, (yesterday, yesterday))
    with files.new_folder(tmp_path / "other"):
        pass
    assert left.exists()
    with files.new_folder(tmp_path / "made"):
        assert not left.exists()


def test_a_clock_that_jumps_back_removes_nothing(holder, tmp_path):
    killed(holder)
    left = next(tmp_path.glob(".partial-made-*"))
    tomorrow = time.time() + 3 * leftovers.A_DAY
    os.utime(left, (tomorrow, tomorrow))
    with files.new_folder(tmp_path / "made"):
        assert left.exists()


def test_names_that_are_not_hynts_are_left_alone(tmp_path):
    for name in (".partial-", ".old-x", ".partial-x-UPPERCAS", ".hidden", ".partial-x-short"):
        (tmp_path / name).mkdir()
    assert leftovers.clean(tmp_path) == []


def test_a_replaced_graph_is_never_missing(tmp_path, monkeypatch):
    """Watched at every rename: between any two of them the graph has its name."""
    save_graph(small_graph(), tmp_path / "graph")
    seen = []
    for name in ("replace", "rename"):
        real = getattr(os, name)

        def watched(*arguments, real=real, **options):
            real(*arguments, **options)
            seen.append((tmp_path / "graph" / "manifest.json").exists())

        monkeypatch.setattr(os, name, watched)
    save_graph(small_graph(people=9), tmp_path / "graph", overwrite=True)
    assert all(seen)
    assert load_graph(tmp_path / "graph") == small_graph(people=9)
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_kill_between_two_renames_is_mended_at_the_next_opening(tmp_path, monkeypatch):
    """Where folders cannot be exchanged, the old one is put back."""
    save_graph(small_graph(), tmp_path / "graph")
    monkeypatch.setattr(files, "exchange", lambda one, other: False)
    program = f"""
import os, pathlib, sys
from hynt import files
from hynt.graph.storage import save_graph
from tests.training.small_graph import small_graph
files.exchange = lambda one, other: False
real = pathlib.Path.replace
def killed(self, target):
    real(self, target)
    if str(target).endswith("was"):
        os.kill(os.getpid(), 9)
pathlib.Path.replace = killed
save_graph(small_graph(people=9), pathlib.Path({str(tmp_path / "graph")!r}), overwrite=True)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert not (tmp_path / "graph").exists()
    assert load_graph(tmp_path / "graph") == small_graph()
    assert not list(tmp_path.glob(".old-*"))
    save_graph(small_graph(people=9), tmp_path / "graph", overwrite=True)
    assert load_graph(tmp_path / "graph") == small_graph(people=9)


def test_training_on_a_full_disk_says_what_is_kept(tmp_path, monkeypatch):
    import errno

    from hynt.runs import checkpoint

    run = start(small_graph(), tiny_settings(schedule={"epochs": 3}, validation={"every": 1}), tmp_path / "run", CPU)
    real, times = checkpoint.save_file, []

    def filling(tensors, path):
        times.append(path)
        if len(times) > 2:  # the second checkpoint: each has weights and a state
            raise checkpoint.SafetensorError(f"Error while serializing: I/O error: full (os error {errno.ENOSPC})")
        real(tensors, path)

    monkeypatch.setattr(checkpoint, "save_file", filling)
    with pytest.raises(DataError) as problem:
        train(run, CPU)
    said = str(problem.value)
    assert "the folder cannot be written: No space left on device. The checkpoint after epoch 1 is kept." in said
    assert "Make room, then go on with the same command and --resume." in said
    monkeypatch.setattr(checkpoint, "save_file", real)
    assert train(run, CPU).is_finished
