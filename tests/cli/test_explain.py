"""`hynt explain` as a user runs it: a table, JSON and a picture; clear words for the rest."""

from __future__ import annotations

import re
import shutil

import pytest
import torch

from hynt.explanation.explanations import signed
from hynt.graph.storage import save_graph
from hynt.training.run import start, train
from tests.cli.conftest import leftovers
from tests.town_graph import town_graph
from tests.training.small_graph import contents, small_graph, tiny_settings

CPU = torch.device("cpu")
WEDDING = ("--qualifier", "date=1992-06", "--qualifier", "place=t2")
SPOUSE = ("--head", "p2", "--relation", "spouse", "--tail", "?", *WEDDING)


@pytest.fixture(scope="module")
def run(town_run, tmp_path_factory):
    return shutil.copytree(town_run, tmp_path_factory.mktemp("towns") / "run")


def test_a_table_for_people(run, hynt):
    done = hynt("explain", run, *SPOUSE)
    assert done.code == 0, done.err
    assert done.out.startswith("Person 2 · spouse · ? (date 1992-06; place Ogdenville)\nfirst answer: ")
    for words in ("qualifier 1", "all qualifiers", "removed", "hidden", "context attention on the triplet itself: "):
        assert words in done.out
    number = hynt("explain", run, "--head", "p2", "--relation", "height", "--tail", "?").out
    assert "answer: " in number
    assert "in interval widths" in number
    for table in (done.out, number):
        assert not re.findall(r"-\d", table.split("┡")[1].replace("1992-06", ""))  # one minus sign everywhere: −
        assert "−" in table
    other = hynt("explain", run, *SPOUSE, "--answer", "Person 8", "--candidates", "type").out
    assert "Person 8" in other


def test_a_change_that_rounds_to_nothing_has_no_sign():
    assert [signed(value, 2) for value in (-0.001, 0.004, -0.51, 0.5, None)] == ["0.00", "0.00", "−0.51", "+0.50", ""]


def test_json_and_picture(run, hynt, tmp_path):
    from hynt.front.run import load

    done = hynt("explain", run, *SPOUSE, "--json", "--out", tmp_path / "why.png", "--save", tmp_path / "why.json")
    own = load(run, "cpu").explain(("p2", "spouse", "?", [("date", "1992-06"), ("place", "t2")])).to_dict()
    assert {name: done.json[name] for name in own} == own
    assert done.json["out"] == str(tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "why.json").exists()
    assert hynt("explain", run, *SPOUSE, "--out", tmp_path / "why.svg").code == 0
    assert b"<svg" in (tmp_path / "why.svg").read_bytes()
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "arguments,word",
    [
        ([], "the question is empty."),
        (["--head", "p2", "--relation", "spouse", "--tail", "p9"], "the question has no blank."),
        (["--head", "?", "--relation", "spouse", "--tail", "?"], "the question has 2 blanks: head and tail."),
        (["--head", "Persn 2", "--relation", "spouse", "--tail", "?"], "The nearest are 'Person 2'"),
        ([*SPOUSE, "--qualifier", "place"], "'place' is not a qualifier."),
        ([*SPOUSE, "--answer", "Nobody"], "the graph has no entity called 'Nobody'."),
        ([*SPOUSE, "--level", "0.7"], "there are no intervals of 0.7."),
        ([*SPOUSE, "--out", "why.pdf"], "why.pdf does not say what to write."),
        ([*SPOUSE, "--out", "/nowhere/at/all.png"], "there is no folder"),
        ([*SPOUSE, "--candidates", "nowhere.txt"], "the list of candidates cannot be read"),
    ],
)
def test_bad_input_leaves_with_2_and_writes_nothing(run, hynt, arguments, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {name: content for name, content in contents(run).items() if name != "calibration.json"}
    out = () if "--out" in arguments else ("--out", "why.png")
    refused = hynt("explain", run, *arguments, *out)
    assert refused.code == 2
    assert word in refused.err
    assert refused.out == ""
    assert list(tmp_path.iterdir()) == []
    assert {name: content for name, content in contents(run).items() if name != "calibration.json"} == before


def test_models_and_runs_that_cannot(run, hynt, tmp_path):
    assert "there is no run at" in hynt("explain", tmp_path, *SPOUSE).err
    mean = train(start(town_graph(), tiny_settings("relation-mean"), tmp_path / "run", CPU), CPU).path
    refused = hynt("explain", mean, *SPOUSE, "--out", tmp_path / "why.png")
    assert refused.code == 2
    assert "cannot answer an entity as tail" in refused.err
    assert not (tmp_path / "why.png").exists()
    shown = hynt("explain", mean, "--head", "p2", "--relation", "height", "--tail", "?").out
    assert "there is no attention to show" in shown


@pytest.mark.parametrize("name", ["weights.safetensors", "graph/train.parquet"])
def test_a_changed_run_is_refused(run, hynt, tmp_path, name):
    copy = shutil.copytree(run, tmp_path / "run")
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    refused = hynt("explain", copy, *SPOUSE, "--out", tmp_path / "why.png")
    assert refused.code == 2
    assert name.rpartition("/")[2] in refused.err
    assert not (tmp_path / "why.png").exists()


@pytest.mark.parametrize(
    "verb", [("explain", *SPOUSE), ("trends", "--head", "p2", "--relation", "height", "--out", "a.csv")]
)
def test_a_graph_that_is_not_the_runs(run, hynt, tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    copy = shutil.copytree(run, tmp_path / "run")
    save_graph(small_graph(), copy / "graph", overwrite=True)
    refused = hynt(verb[0], copy, *verb[1:])
    assert refused.code == 2
    assert "the graph is not the one this run was made with" in refused.err
    assert not (tmp_path / "a.csv").exists()
