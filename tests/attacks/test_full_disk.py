"""A disk that is full: whoever writes says so, keeps what was there, and leaves nothing half-written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from hynt.graph.storage import save_graph
from hynt.training.run import start, train
from tests.town_graph import town_graph
from tests.training.small_graph import tiny_settings

SMALL = ("--set", "model.dimension=16", "--set", "model.context_heads=2", "--set", "model.prediction_heads=2")
SWEPT = ("--epochs", "2")
QUICK = ("--epochs", "2", *SMALL, "--device", "cpu")

WRITERS: dict[str, tuple[str, ...]] = {
    "train": ("train", "GRAPH", "--out", "OUT/run", *QUICK, "--set", "validation.every=1"),
    "complete": ("complete", "RUN", "--missing", "--out", "OUT/proposals.parquet"),
    "answer": ("complete", "RUN", "QUESTIONS", "--out", "OUT/answers.parquet"),
    "audit": ("audit", "RUN", "--out", "OUT/audit.parquet"),
    "sweep": ("sweep", "GRAPH", "--model", "hynt", *SWEPT, "--out", "OUT/sweep", "--trials", "1", "--device", "cpu"),
    "report": ("report", "RUN", "--out", "OUT/report.html"),
    "evaluate": ("evaluate", "RUN", "--save", "OUT/figures.json", "--questions", "OUT/questions.parquet"),
    "calibrate": ("calibrate", "RUN"),
    "embeddings": ("embeddings", "RUN", "--out", "OUT/vectors.parquet"),
    "push": ("push", "RUN", "OUT/away"),
    "pull": ("pull", "AWAY", "OUT/pulled"),
    "import": ("data", "import", "SOURCE", "--format", "jsonl", "--out", "OUT/graph"),
    "export": ("data", "export", "GRAPH", "--format", "parquet", "--out", "OUT/exported"),
    "update": ("update", "INDUCTIVE", "NEWS", "--format", "jsonl"),
    "ensemble": ("ensemble", "RUN", "TWIN", "--out", "OUT/both", "--device", "cpu"),
    "merge": ("data", "merge", "GRAPH", "GRAPH", "--out", "OUT/merged"),
    "split": ("data", "split", "GRAPH", "--inductive", "0.3", "--out", "OUT/parts"),
    "explain": ("explain", "RUN", "--head", "p2", "--relation", "P19", "--tail", "?", "--save", "OUT/why.json"),
    "compare": (
        "compare",
        "GRAPH",
        "--models",
        "transea",
        "--minutes-per-model",
        "0.01",
        "--out",
        "OUT/compared",
        "--device",
        "cpu",
    ),
}
PAGE = 4096
"""Bytes that a file takes at least on a disk in memory."""
QUICK_LANE = {
    ("train", 40_000),
    ("complete", 1_000),
    ("report", 20_000),
    ("import", 500),
    ("ensemble", 5_000),
    ("export", 5_000),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory, hynt):
    from hynt.formats.jsonl import write_graph
    from hynt.sharing.push_and_pull import push

    torch.set_num_threads(1)
    folder, graph, cpu = tmp_path_factory.mktemp("disk"), town_graph(), torch.device("cpu")
    save_graph(graph, folder / "graph")
    train(start(graph, tiny_settings(schedule={"epochs": 2, "period": 2}), folder / "run", cpu), cpu)
    push(folder / "run", str(folder / "away"))
    write_graph(graph, folder / "source")
    hynt.fair(*WRITERS["train"][:1], folder / "graph", "--out", folder / "loaded", *QUICK)  # torch, while there is room
    (folder / "news.jsonl").write_text('{"head": "p0", "relation": "P19", "tail": "t3"}\n')
    (folder / "questions.jsonl").write_text('{"head": "p0", "relation": "P19", "tail": "?"}\n' * 50)
    return folder


def command(verb: str, place: Path, out: Path) -> list[str]:
    shutil.copytree(place / "run", out / "asked")
    if "TWIN" in WRITERS[verb]:
        also_trained(place / "twin", tiny_settings(seed=1))
    if "INDUCTIVE" in WRITERS[verb]:
        width = {"dimension": 16, "layers": 1, "heads": 2, "feedforward": 16, "bins": 11}
        also_trained(place / "inductive", tiny_settings("hynt-inductive", model=width))
        shutil.copytree(place / "inductive", out / "followed", dirs_exist_ok=True)
    names = {
        "GRAPH": place / "graph",
        "RUN": out / "asked",
        "AWAY": place / "away",
        "SOURCE": place / "source",
        "QUESTIONS": place / "questions.jsonl",
        "NEWS": place / "news.jsonl",
        "TWIN": place / "twin",
        "INDUCTIVE": out / "followed",
    }
    return [str(names.get(word, word.replace("OUT", str(out)))) for word in WRITERS[verb]]


def also_trained(path: Path, settings) -> None:
    if not path.exists():
        train(start(town_graph(), settings, path, torch.device("cpu")), torch.device("cpu"))


@pytest.mark.parametrize(
    ("verb", "size"),
    [
        pytest.param(verb, size, marks=() if (verb, size) in QUICK_LANE else pytest.mark.slow)
        for verb in WRITERS
        for size in (100, 500, 1_000, 5_000, 20_000, 40_000)
    ],
)
def test_whoever_writes_says_what_is_full(hynt, place, tmp_path, verb, size):
    outcome = hynt.fair(*command(verb, place, tmp_path), largest_file=size)
    left = [path for path in tmp_path.rglob("*") if path.name.startswith((".partial-", ".old-"))]
    assert not left
    if outcome.code:
        assert outcome.code == 1
        assert (
            "File too large" in outcome.said or "disk I/O error" in outcome.said or "No space left" in outcome.said
        )  # SQLite's words
        assert "what to do:" in outcome.said
        assert ".partial-" not in outcome.said
        assert hynt.fair(*command_again(verb, place, tmp_path)).code == 0


def test_an_update_that_finds_no_room_changes_nothing(hynt, inductive_run, tmp_path):
    run = shutil.copytree(inductive_run, tmp_path / "run")
    (tmp_path / "more.jsonl").write_text('{"head": "Zoe", "relation": "knows", "tail": "person 1"}\n')
    refused = hynt.fair("update", run, tmp_path / "more.jsonl", largest_file=50)
    assert refused.code == 1
    assert "File too large" in refused.said
    assert "what to do:" in refused.said
    assert hynt.fair("update", run, tmp_path / "more.jsonl").code == 0


def command_again(verb: str, place: Path, out: Path) -> list[str]:
    """The same once there is room; what was begun goes on."""
    shutil.rmtree(out / "asked")
    words = command(verb, place, out)
    begun = [out / "run", out / "sweep", *out.glob("*.parquet.partial")]
    return [*words, "--resume"] if any(path.exists() for path in begun) else words


@pytest.mark.slow
@pytest.mark.parametrize("verb", WRITERS)
@pytest.mark.parametrize("size", [8_192, 40_960, 204_800])
def test_a_disk_that_is_really_full(place, tmp_path, verb, size):
    """A mounted one, where the system lets us mount; results go there, and all else stays where it is."""
    code, said = on_disk(verb, place, tmp_path, size)
    assert code in (0, 1, 2), said
    assert code == 0 or "No space left on device" in said or "the storage of the sweep" in said


@pytest.mark.slow
@pytest.mark.parametrize("verb", WRITERS)
def test_a_disk_that_can_only_be_read(place, tmp_path, verb):
    code, said = on_disk(verb, place, tmp_path, None)
    assert code in (1, 2) or verb == "calibrate", said  # which writes into the run, not here
    assert code == 0 or "Read-only file system" in said


def on_disk(verb: str, place: Path, out: Path, room: int | None) -> tuple[int, str]:
    """How a command ends on a mounted disk with so many bytes left, or on one that can only be read."""
    import subprocess
    import sys

    from tests.conftest import require

    able = ["unshare", "-rm", "true"]
    can = shutil.which("unshare") is not None and subprocess.run(able, check=False, capture_output=True).returncode == 0
    require("a mount of one's own", can, "allow user namespaces")
    (out / "disk").mkdir()
    shutil.copytree(place / "run", out / "asked")
    words = [word.replace(f"{out}/", f"{out}/disk/") for word in command(verb, place, out / "elsewhere")]
    words = [word.replace(f"{out}/disk/elsewhere", f"{out}/disk") for word in words]
    words = [word.replace(f"{out}/disk/asked", f"{out}/asked") for word in words]
    there = list((out / "elsewhere" / "followed").rglob("*"))  # what the command changes in its place
    pages = sum(-(-path.stat().st_size // PAGE) for path in there if path.is_file()) + len(there) + 1
    options = "ro" if room is None else f"size={room + (pages * PAGE if there else 0)}"
    copied = 'cp -r "$0"/../elsewhere/followed "$0" && ' if there else ""
    shell = f'mount -t tmpfs tmpfs "$0" && {copied}mount -o remount,{options} "$0" && exec "$@"'
    argv = ["unshare", "-rm", "sh", "-c", shell, str(out / "disk"), sys.executable, "-m", "hynt", *words]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr
