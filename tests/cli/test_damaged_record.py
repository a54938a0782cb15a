"""A run whose training record or other unhashed part is not what training wrote: said so, and nothing is written."""

from __future__ import annotations

import shutil

import pytest


def to_folder(path):
    path.unlink()
    path.mkdir()


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "binary": lambda path: path.write_bytes(b"\xe9\x00\xff" * 20),
    "a folder": to_folder,
    "another record": lambda path: path.write_text("[1, 2]\n"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("verb", ["report", "push"])
def test_a_damaged_record_is_named(town_run, hynt, tmp_path, verb, damage):
    run = shutil.copytree(town_run, tmp_path / "run")
    DAMAGES[damage](run / "metrics.jsonl")
    out = ("--out", tmp_path / "page.html") if verb == "report" else (tmp_path / "given",)
    done = hynt(verb, run, *out, "--json")
    assert done.code == 2, done.err
    assert done.json["error"]["what"].startswith("the training record is damaged")
    assert "metrics.jsonl" in done.json["error"]["where"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name,words", [("weights.safetensors", "is missing"), ("config.toml", "is missing")])
def test_going_on_with_a_run_that_lacks_a_file_is_refused(town_run, hynt, tmp_path, name, words):
    run = shutil.copytree(town_run, tmp_path / "run")
    (run / name).unlink()
    done = hynt("train", run / "graph", "--out", run, "--resume", "--json")
    assert done.code == 2, done.err
    assert words in done.json["error"]["what"]
    assert done.json["error"]["where"].endswith(name)
