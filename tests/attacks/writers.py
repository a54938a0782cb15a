"""The commands that write, each for a place that a test gives it."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

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
