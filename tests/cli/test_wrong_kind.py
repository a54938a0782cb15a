"""A graph where a run is wanted, a run where a graph is, a file where a folder is: said so, with what to do."""

from __future__ import annotations

import pytest

import hynt as hynt_library

ASKED = ("--head", "p1", "--relation", "height", "--tail", "?")


@pytest.mark.parametrize(
    "verb", [("predict", *ASKED), ("similar", "p1"), ("evaluate",), ("embeddings", "--out", "OUT")]
)
def test_no_run(town_run, hynt, tmp_path, verb):
    file = tmp_path / "facts.jsonl"
    file.write_text("{}")
    for given, words in {
        town_run / "graph": "error: this is a graph, not a run.\n",
        file: "error: this is a file, and a run is a folder.\n",
        tmp_path: "error: there is no run at ",
    }.items():
        refused = hynt(verb[0], given, *[tmp_path / "out.parquet" if word == "OUT" else word for word in verb[1:]])
        assert refused.code == 2
        assert words in refused.err
        assert [path.name for path in tmp_path.iterdir()] == ["facts.jsonl"]


def test_a_run_is_no_source(town_run, hynt, tmp_path):
    refused = hynt("data", "merge", town_run, town_run, "--out", tmp_path / "both")
    assert refused.code == 2
    assert refused.err.startswith(f"error: this is a run, not a graph.\n  where: {town_run}\n  what to do: Save its ")
    hynt_library.read_graph(str(town_run)).save(tmp_path / "graph")
    assert hynt("data", "merge", tmp_path / "graph", "world", "--out", tmp_path / "both").code == 0


@pytest.mark.parametrize("verb", [("train", "--out", "OUT"), ("compare", "--out", "OUT")])
def test_no_graph(hynt, tmp_path, verb):
    file = tmp_path / "facts.jsonl"
    file.write_text("{}")
    for given, words in {
        file: f"this is a file, and a graph is a folder.\n  where: {file}\n  what to do: Import it first: ",
        "wrld": "what to do: Did you mean world? Give a folder",
    }.items():
        options = [tmp_path / "out" if word == "OUT" else word for word in verb if word not in ("train", "compare")]
        refused = hynt(verb[0], *options, given)
        assert refused.code == 2
        assert words in refused.err
        assert [path.name for path in tmp_path.iterdir()] == ["facts.jsonl"]
