"""`hynt data import --preview` shows what a graph would be, and `hynt data merge` makes one of several."""

from __future__ import annotations

import pytest

import hynt as hynt_in_python
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import Fact, Number
from hynt.graph.storage import load_graph, save_graph


def test_a_preview_shows_facts_relations_and_what_is_left_out_and_writes_nothing(hynt, tmp_path):
    (tmp_path / "facts.csv").write_text(
        "head,relation,tail,year,unit\nAnn,mass,176.4,2020,lb\nAnn,knows,Bob,2021,\nBob,mass,many,2020,lb\n"
    )
    done = hynt("data", "import", tmp_path / "facts.csv", "--preview", "--numeric", "mass,year")
    assert done.code == 1
    for words in (
        "Read as csv-edges.",
        "3 records read, 2 kept, 1 rejected.",
        "The first 2 facts:",
        "Ann · mass · 176.4 lb (year 2020)",
        "mass: number in kg, 1 use",
        "knows: entity, 1 use",
        "year: number, 2 uses",
        "Nothing was written.",
    ):
        assert words in done.out, words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["facts.csv"]
    found = hynt("data", "import", tmp_path / "facts.csv", "--preview", "--on-error", "skip", "--json").json
    kinds = {one["relation"]: one["kind"] for one in found["outcome"]["relations"]}
    assert kinds == {"mass": "number", "year": "entity", "knows": "entity"}  # a unit beside a tail makes it a number


def test_an_import_needs_a_place(hynt, source):
    done = hynt("data", "import", source)
    assert done.code == 2
    assert "no folder was given to save the graph in." in done.err


@pytest.fixture
def graphs(tmp_path):
    first = graph_from_facts(
        {"train": [("a", "near", "b"), ("b", "near", "c")], "test": [("c", "near", "a")]},
        labels={"a": "Aachen"},
        name="towns",
    )
    second = graph_from_facts(
        {"train": [("c", "near", "a"), ("a", "height", 170)], "valid": [("d", "near", "a")]},
        units={"height": "cm"},
        labels={"d": "Dover", "a": "Aix"},
    )
    for name, graph in (("first", first), ("second", second)):
        save_graph(graph, tmp_path / name)
    return tmp_path


def test_graphs_are_merged_and_the_first_keeps_its_splits(hynt, graphs):
    done = hynt("data", "merge", graphs / "first", graphs / "second", "--out", graphs / "both")
    assert done.code == 0, done.err
    assert "2 facts of further sources joined train; 1 left out, which valid or test asks for." in done.out
    both = load_graph(graphs / "both")
    assert {name: set(both.facts(name)) for name in both.splits} == {
        "train": {
            Fact("a", "near", "b"),
            Fact("b", "near", "c"),
            Fact("d", "near", "a"),
            Fact("a", "height", Number(1.7, "170", "m")),
        },
        "test": {Fact("c", "near", "a")},
    }
    assert {entity.name: entity.label for entity in both.entities} == {"a": "Aachen", "b": "", "c": "", "d": "Dover"}
    assert both.name == "towns"
    same = hynt_in_python.import_graph([graphs / "first", graphs / "second"], mixed_relations="split")
    assert {name: set(same.facts(name)) for name in same.splits} == {
        name: set(both.facts(name)) for name in both.splits
    }


def test_what_is_made_of_saved_graphs_has_their_licences(hynt, tmp_path):
    for name, licence in (("first", "CC0-1.0"), ("second", "CC-BY-4.0"), ("third", "CC0-1.0")):
        (tmp_path / "facts.tsv").write_text(f"head\trelation\ttail\n{name}\tnear\tb\n")
        place = tmp_path / name
        assert hynt("data", "import", tmp_path / "facts.tsv", "--out", place, "--licence", licence).code == 0
    places = [tmp_path / name for name in ("first", "second", "third")]
    assert hynt("data", "merge", *places, "--out", tmp_path / "all").code == 0
    assert load_graph(tmp_path / "all").manifest.licence == "CC0-1.0 and CC-BY-4.0"
    assert hynt_in_python.import_graph(tmp_path / "second").manifest.licence == "CC-BY-4.0"
    assert hynt_in_python.import_graph(tmp_path / "second", licence="ours").manifest.licence == "ours"


def test_merged_graphs_can_be_split_anew(hynt, graphs):
    found = hynt(
        "data", "merge", graphs / "first", graphs / "second", "--out", graphs / "both", "--split", "1:0:0", "--json"
    )
    assert found.json["counts"]["train"] == 5
    assert "test" not in found.json["counts"]


def test_a_check_and_a_preview_are_one_call_in_python_too(hynt, tmp_path):
    path = tmp_path / "facts.csv"
    path.write_text("head,relation,tail\nAnn,height,1.7\nBob,height,tall\nAnn,knows,Bob\n")
    for preview in (False, True):
        found = hynt_in_python.check_source(path, numeric=["height"], preview=preview)
        verb = ["import", path, "--preview"] if preview else ["check", path]
        assert hynt("data", *verb, "--numeric", "height", "--json").json == found
        assert not found.ok
        assert f"3 records of {path}: 2 kept, 1 rejected>\n{path}:3: 'tall'" in repr(found)
    assert found["outcome"]["facts"] == ["Ann · height · 1.7", "Ann · knows · Bob"]
    path.write_text("head,relation,tail\nAnn,knows,Bob\n")
    whole = hynt_in_python.check_source(path, name="people")
    assert (whole.ok, whole["format"], whole["outcome"]["counts"]["train"]) == (True, "csv-edges", 1)
    with pytest.raises(hynt_in_python.UsageError, match="has no option 'nmae'"):
        hynt_in_python.check_source(path, nmae="people")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["facts.csv"]
