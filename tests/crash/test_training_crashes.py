"""A real process, killed without warning again and again: nothing but the work since the last checkpoint is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from hynt.graph.storage import save_graph
from hynt.runs.opening import load_run
from hynt.training.run import start, train
from tests.conftest import ROOT
from tests.training.small_graph import set_each, small_graph, tiny_settings

CPU = torch.device("cpu")

# Trains slowly enough to be hit, with a checkpoint after nearly every step; "save" makes each write take its time.
CHILD = """
import sys, time
from pathlib import Path
import torch
from hynt.training import step
from hynt.runs import checkpoint
from hynt.training.run import train
from hynt.runs.run_folder import RunFolder

torch.set_num_threads(1)
slow, folder = sys.argv[1], Path(sys.argv[2])
real = checkpoint.save_tensors if slow == "save" else step.learn
def slowed(*arguments):
    real(*arguments)
    time.sleep(0.01)
setattr(checkpoint if slow == "save" else step, "save_tensors" if slow == "save" else "learn", slowed)
print("ready", flush=True)
train(RunFolder.open(folder), torch.device("cpu"))
print("done", flush=True)
"""


def settings():
    return tiny_settings(
        schedule={"epochs": 7, "period": 1}, batch_size=8, saving={"minutes": 0.0}, validation={"every": 3}
    )


def child(slow: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, slow, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)


def crash_until_done(slow: str, folder: Path, chance: random.Random, kills: int) -> int:
    """Kills the child at a random moment, so often; then lets it finish. How often it was hit before it was done."""
    hit = 0
    for attempt in range(kills):
        process = child(slow, folder)
        assert process.stdout is not None
        process.stdout.readline()
        # Every second one is given time to come to the last epochs and the end.
        time.sleep(chance.uniform(0.05, 1.0 if attempt % 2 == 0 else 5.0))
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0]
        if "done" in rest:
            return hit
        hit += 1
        if (folder / "checkpoints").is_dir() and any((folder / "checkpoints").glob("[0-9]*")):
            load_run(folder)  # whatever is there is whole
    process = child(slow, folder)
    assert "done" in process.communicate(timeout=120)[0]
    return hit


def check(tmp_path: Path, slow: str, seed: int, kills: int) -> int:
    torch.set_num_threads(1)
    graph = small_graph()
    whole = train(start(graph, settings(), tmp_path / "whole", CPU), CPU)
    crashed = start(graph, settings(), tmp_path / "crashed", CPU)
    hit = crash_until_done(slow, crashed.path, random.Random(seed), kills)
    assert (crashed.path / "weights.safetensors").read_bytes() == (whole.path / "weights.safetensors").read_bytes()
    assert load_run(crashed.path).is_finished
    left = {path.name for path in crashed.path.iterdir()}
    assert left == {path.name for path in whole.path.iterdir()}
    return hit


@pytest.mark.parametrize("slow", [pytest.param("step", marks=pytest.mark.slow), "save"])
def test_killed_and_resumed_equals_uninterrupted(tmp_path, slow):
    assert check(tmp_path, slow, seed=1, kills=2) > 0


@pytest.mark.slow
@pytest.mark.parametrize("slow", [pytest.param("step", marks=pytest.mark.slow), "save"])
@pytest.mark.parametrize("seed", range(10))
def test_killed_many_times(tmp_path, slow, seed):
    assert check(tmp_path, slow, seed, kills=12) > 0


def test_a_polite_stop_saves_and_says_how_to_go_on(tmp_path):
    save_graph(small_graph(), tmp_path / "people")
    command = [
        sys.executable,
        "-m",
        "hynt",
        "train",
        str(tmp_path / "people"),
        "--out",
        str(tmp_path / "run"),
        "--device",
        "cpu",
        "--epochs",
        "2000",
        *set_each("model.dimension=32", "model.context_heads=2", "model.prediction_heads=2"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )
    assert process.stderr is not None
    process.stderr.readline()  # the first epoch is done
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130, told
    assert "and saved" in told
    assert f"Go on with: hynt train {tmp_path / 'people'} --out {tmp_path / 'run'} --resume" in told
    assert "Traceback" not in told
    assert not load_run(tmp_path / "run").is_finished
