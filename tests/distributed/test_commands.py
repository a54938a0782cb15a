"""Several processes from the shell: a killed one, one that torchrun starts again, two machines, shared questions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
import torch
from safetensors.torch import load_file

from hynt.graph.storage import load_graph, save_graph
from hynt.runs.run_folder import RunFolder
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start, train
from tests.distributed.test_runs import same_weights
from tests.training.small_graph import TINY_MODEL, small_graph

SETTINGS = ("batch_size=32", *TINY_MODEL, "model.dropout=0.0", "saving.minutes=0.0", "validation.every=1000")


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("graphs") / "small"
    save_graph(small_graph(people=40), folder)
    return folder


def command(graph: Path, run: Path, epochs: int) -> list[str]:
    sets = [part for setting in SETTINGS for part in ("--set", setting)]
    return ["train", str(graph), "--out", str(run), "--epochs", str(epochs), "--device", "cpu", *sets]


def alone(graph: Path, run: Path, epochs: int) -> RunFolder:
    """The same in one process, which is this one."""
    loaded, device = load_graph(graph), torch.device("cpu")
    settings = resolve_settings(SettingsRequest("hynt", epochs=epochs, changes=SETTINGS), loaded, on_gpu=False)
    return train(start(loaded, settings, run, device), device)


def environment(**more) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RANK", "WORLD_SIZE", "MASTER_"))}
    return kept | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"} | more


@contextmanager
def started(arguments, **more):
    process = subprocess.Popen(
        arguments, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def until(what, process, seconds=90.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("it took too long")


def worker(parent: int, rank: int) -> int | None:
    """The process of this rank below a launcher."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "environ").read_bytes().split(b"\0")
            above = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if above == parent and f"RANK={rank}".encode() in words:
            return int(folder.name)
    return None


def has_checkpoint(run: Path) -> bool:
    return any((run / "checkpoints").glob("0-0000*"))


def trained_epochs(run: Path) -> list[int]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["epoch"] for line in lines if "loss" in line]


needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")


@needs_proc
@pytest.mark.slow
def test_a_killed_worker_ends_the_job_with_a_clear_word_and_the_run_goes_on_from_its_checkpoint(graph, tmp_path):
    run, hynt = tmp_path / "run", [sys.executable, "-m", "hynt"]
    with started([*hynt, *command(graph, run, 40), "--processes", "2"]) as process:
        until(lambda: has_checkpoint(run), process)
        os.kill(until(lambda: worker(process.pid, 1), process), signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "process 2 of 2 was ended by SIGKILL, so training stopped; the last checkpoint is kept." in said
    assert f"Go on with: hynt train {graph} --out {run} --resume --processes 2" in said
    assert has_checkpoint(run)
    done = subprocess.run(
        [*hynt, *command(graph, run, 40), "--resume"], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert trained_epochs(run) == list(range(1, 41))
    assert load_file(run / "weights.safetensors")


@needs_proc
@pytest.mark.slow
def test_torchrun_starts_a_job_again_and_it_goes_on(graph, tmp_path):
    run = tmp_path / "run"
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "--max-restarts",
        "1",
        "-m",
        "hynt",
    ]
    with started([*torchrun, *command(graph, run, 40)]) as process:
        until(lambda: has_checkpoint(run), process)
        os.kill(until(lambda: worker(process.pid, 1), process), signal.SIGKILL)
        _, said = process.communicate(timeout=150)
    assert process.returncode == 0, said
    assert trained_epochs(run) == list(range(1, 41))
    assert same_weights(alone(graph, tmp_path / "alone", 40), RunFolder.open(run), 1e-3)


@contextmanager
def two_machines():
    """Two network namespaces joined by a cable; where they may not be made, the test says so."""
    names = [f"hynt-{os.getpid()}-{end}" for end in "ab"]
    cables = [f"hy{os.getpid() % 100000}{end}" for end in "ab"]

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", cables[0], "type", "veth", "peer", "name", cables[1])
            for number, (name, cable) in enumerate(zip(names, cables, strict=True), 1):
                ip("link", "set", cable, "netns", name)
                ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", cable)
                ip("-n", name, "link", "set", cable, "up")
                ip("-n", name, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError) as problem:
            pytest.skip(f"network namespaces cannot be made here: {problem}")
        yield names, cables
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.slow
def test_two_machines_train_one_run(graph, tmp_path):
    run = tmp_path / "run"
    elsewhere = tmp_path / "elsewhere"
    with two_machines() as (names, cables):
        machines = [
            subprocess.Popen(
                [
                    "ip",
                    "netns",
                    "exec",
                    names[rank],
                    sys.executable,
                    "-m",
                    "hynt",
                    *command(graph, run if rank == 0 else elsewhere, 3),
                ],
                env=environment(
                    RANK=str(rank),
                    LOCAL_RANK="0",
                    WORLD_SIZE="2",
                    MASTER_ADDR="10.77.0.1",
                    MASTER_PORT="29511",
                    GLOO_SOCKET_IFNAME=cables[rank],
                ),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in (0, 1)
        ]
        said = [machine.communicate(timeout=120) for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], said
    assert trained_epochs(run) == [1, 2, 3]
    assert not elsewhere.exists()  # only the first process writes
    assert same_weights(alone(graph, tmp_path / "alone", 3), RunFolder.open(run))


@pytest.mark.slow
def test_a_model_that_cannot_be_shared_is_refused_before_a_folder_is_made(graph, tmp_path):
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "hynt", *command(graph, run, 1)[:4], "--model", "transea", "--processes", "2"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "the training of 'transea' cannot be shared among processes." in done.stderr
    assert not run.exists()


def said_by(*arguments: object, processes: int) -> str:
    """What a command prints, once so many processes of it were seen."""
    with started([sys.executable, "-m", "hynt", *map(str, arguments), "--processes", str(processes)]) as process:
        if processes > 1:
            until(lambda: worker(process.pid, processes - 1), process)
        out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return out


@needs_proc
@pytest.mark.slow
def test_commands_that_ask_give_in_two_processes_what_they_give_in_one(graph, tmp_path):
    run = alone(graph, tmp_path / "run", 2).path
    lines = [{"head": f"person {index}", "relation": "knows", "tail": "?"} for index in range(40)]
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = {}
    for processes in (1, 2):
        ranks, answers = tmp_path / f"ranks-{processes}.parquet", tmp_path / f"answers-{processes}.parquet"
        evaluated = said_by("evaluate", run, "--questions", ranks, "--device", "cpu", "--json", processes=processes)
        told = json.loads(evaluated)
        assert told["protocol"].pop("reads_of_split") == processes  # one more each time, however many processes ask
        said_by("complete", run, questions, "--out", answers, "--device", "cpu", processes=processes)
        found[processes] = (told, parquet.read_table(ranks), answers.read_bytes())
    assert found[1] == found[2]
    assert len(found[1][1]) > 20
