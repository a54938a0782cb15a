"""A command reads and fingerprints the graph of its run once, however many parts of the program need it."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from hynt.graph import storage
from hynt.runs import place
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings
from tests.trends.seasons_graph import seasons_graph

CPU = torch.device("cpu")

QUESTION = ("--head", "p2", "--relation", "born in", "--tail", "?")
COMMANDS = {
    "predict": QUESTION,
    "explain": QUESTION,
    "trends": ("--head", "Springfield", "--relation", "temperature", "--out", "trend.csv"),
    "similar": ("p2",),
    "embeddings": ("--out", "vectors.parquet"),
    "complete": ("questions.jsonl", "--out", "answers.parquet"),
    "complete --missing": ("--out", "proposals.parquet"),
    "calibrate": ("--split", "test"),
    "evaluate": ("--no-references",),
    "report": ("--out", "report.html"),
    "audit": ("--folds", "2", "--epochs", "1", "--out", "audit.parquet"),
    "push": ("pushed",),
}


@pytest.fixture(scope="module")
def seasons_run(tmp_path_factory):
    return train(start(seasons_graph(), tiny_settings(), tmp_path_factory.mktemp("seasons") / "run", CPU), CPU).path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_the_graph_once(hynt, town_run, seasons_run, tmp_path, monkeypatch, command):
    """Of the run that is asked: an audit trains runs of its own, with graphs of their own."""
    run = shutil.copytree(seasons_run if command == "trends" else town_run, tmp_path / "run")
    (tmp_path / "questions.jsonl").write_text(json.dumps({"head": "p2", "relation": "born in", "tail": "?"}) + "\n")
    monkeypatch.chdir(tmp_path)
    read, compared = [], []

    def load(folder):
        read.append(folder)
        return storage.load_graph(folder)

    def graph_fingerprints(graph, known=place.graph_fingerprints):
        compared.append(graph.name)
        return known(graph)

    monkeypatch.setattr(place, "load_graph", load)
    monkeypatch.setattr(place, "graph_fingerprints", graph_fingerprints)
    verb, *flags = command.split()
    done = hynt(verb, run, *flags, *COMMANDS[command])
    assert done.code == 0, done.err
    assert [folder for folder in read if run in folder.parents] == [run / "graph"]
    assert len([name for name in compared if name]) == 1  # the graphs of an audit's folds have no name
