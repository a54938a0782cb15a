"""A run whose files are not those that were made, or whose graph is another: every verb says so, with exit code 2, and
writes nothing.
"""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from hynt.graph.storage import save_graph
from hynt.training.run import start, train
from tests.town_graph import town_graph
from tests.training.small_graph import contents, small_graph, tiny_settings

CPU = torch.device("cpu")
QUESTION = ("--head", "person 2", "--relation", "height", "--tail", "?")
VERBS = {
    "predict": QUESTION,
    "explain": (*QUESTION, "--out", "OUT.svg"),
    "trends": ("--head", "person 2", "--relation", "height", "--over", "year", "--out", "OUT.csv"),
    "complete": ("QUESTIONS", "--out", "OUT.parquet"),
    "complete --missing": ("--missing", "--out", "OUT.parquet"),
    "audit": ("--split", "valid,test", "--out", "OUT.parquet"),
    "report": ("--out", "OUT.html"),
    "embeddings": ("--out", "OUT.parquet"),
    "similar": ("person 2",),
    "calibrate": ("--split", "test"),
    "evaluate": ("--save", "OUT.json"),
}


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def other_graph(run):
    shutil.rmtree(run / "graph")
    save_graph(town_graph(), run / "graph")


DAMAGES = {
    "weights": (lambda run: flip(run / "weights.safetensors"), "the file was changed"),
    "no weights": (lambda run: (run / "weights.safetensors").unlink(), "the file is missing"),
    "scaling": (lambda run: flip(run / "scaling.json"), "the file was changed"),
    "no settings": (lambda run: (run / "config.toml").unlink(), "the file is missing"),
    "facts": (lambda run: flip(run / "graph" / "train.parquet"), "was changed"),
    "another graph": (other_graph, "the graph is not the one this run was made with"),
    "manifest": (lambda run: (run / "manifest.json").write_text("{"), "the file is damaged"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    torch.set_num_threads(1)
    return train(start(small_graph(), tiny_settings(), tmp_path_factory.mktemp("small") / "run", CPU), CPU).path


def said(hynt, verb, run, folder):
    questions = folder / "questions.jsonl"
    questions.write_text(json.dumps({"head": "person 2", "relation": "height", "tail": "?"}) + "\n")
    places = {"QUESTIONS": str(questions)}
    words = [str(folder / word.lower()) if word.startswith("OUT.") else places.get(word, word) for word in VERBS[verb]]
    return hynt(verb.split()[0], run, *words)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_refuses_it_and_leaves_nothing(trained, hynt, tmp_path, verb, damage):
    run = shutil.copytree(trained, tmp_path / "run")
    change, words = DAMAGES[damage]
    change(run)
    before = contents(run)
    done = said(hynt, verb, run, tmp_path)
    assert done.code == 2, done.err
    assert words in done.err
    assert done.err.count("error: ") == 1
    assert "Traceback" not in done.err
    assert contents(run) == before
    assert {path.name for path in tmp_path.iterdir()} == {"run", "questions.jsonl"}


@pytest.mark.parametrize("verb", ["evaluate", "report", "calibrate"])
def test_readings_that_somebody_set_back_are_refused(trained, hynt, tmp_path, verb):
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "reads.json").write_text("{}")
    done = said(hynt, verb, run, tmp_path)
    assert done.code == 2
    assert "reads.json" in done.err
    assert "the file was changed" in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"run", "questions.jsonl"}
