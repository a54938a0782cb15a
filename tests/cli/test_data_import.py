"""`hynt data import`: a graph, or one clear error and nothing left behind."""

from __future__ import annotations

import json

import pytest

from hynt.graph.storage import load_graph
from tests.cli.conftest import leftovers


def test_a_source_becomes_a_graph(hynt, source, tmp_path):
    found = hynt(
        "data",
        "import",
        source,
        "--format",
        "jsonl",
        "--out",
        tmp_path / "g",
        "--json",
        "--name",
        "small",
        "--licence",
        "CC0-1.0",
        "--source",
        "made by hand",
    ).json
    graph = load_graph(tmp_path / "g")
    assert (graph.name, graph.manifest.licence, graph.manifest.source) == ("small", "CC0-1.0", "made by hand")
    assert found["counts"]["entities"] == 5
    assert found["importing"]["duplicates"] == 1
    assert found["importing"]["read"] == 7
    weight = next(fact for fact in graph.facts() if fact.relation == "P2067")
    assert weight.tail.unit == "kg"
    assert weight.tail.value == pytest.approx(80.0137, abs=1e-4)
    assert leftovers(tmp_path) == []


def test_units_can_be_kept(hynt, source, tmp_path):
    assert hynt("data", "import", source, "-f", "jsonl", "-o", tmp_path / "g", "--units", "keep").code == 0
    weight = next(fact for fact in load_graph(tmp_path / "g").facts() if fact.relation == "P2067")
    assert (weight.tail.value, weight.tail.unit) == (176.4, "lb")


def test_an_existing_folder_is_kept_unless_told_otherwise(hynt, graph, source):
    before = (graph / "manifest.json").read_bytes()
    done = hynt("data", "import", source, "--format", "jsonl", "--out", graph)
    assert done.code == 2
    assert "exists already" in done.err
    assert (graph / "manifest.json").read_bytes() == before
    assert hynt("data", "import", source, "--format", "jsonl", "--out", graph, "--overwrite").code == 0
    assert (graph / "manifest.json").read_bytes() != before
    assert leftovers(graph.parent) == []


def test_a_folder_that_is_no_graph_is_never_replaced(hynt, source, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    done = hynt("data", "import", source, "--format", "jsonl", "--out", precious, "--overwrite")
    assert done.code == 2
    assert (precious / "thesis.txt").read_text() == "years of work"


def test_bad_records_stop_the_import_or_are_skipped(hynt, source, tmp_path):
    with (source / "facts.jsonl").open("a") as file:
        file.write('{"head": "a", "relation": "P569", "tail": {"date": "not a date"}}\n')
    done = hynt("data", "import", source, "--format", "jsonl", "--out", tmp_path / "g")
    assert done.code == 1
    assert "1 of 8 records cannot be kept" in done.err
    assert "facts.jsonl:8" in done.err
    assert "--on-error skip" in done.err
    assert not (tmp_path / "g").exists()
    found = hynt("data", "import", source, "-f", "jsonl", "-o", tmp_path / "g", "--on-error", "skip", "--json").json
    assert sum(found["importing"]["rejected"].values()) == 1
    assert found["problems"][0]["where"].endswith("facts.jsonl:8")


def test_splits_are_made_as_asked(hynt, tmp_path):
    lines = [json.dumps({"head": f"e{at % 7}", "relation": f"r{at % 3}", "tail": at}) for at in range(200)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    command = ("data", "import", tmp_path / "x.jsonl", "--format", "jsonl", "--json")
    found = hynt(*command, "--out", tmp_path / "a", "--split", "6:2:2", "--seed", "5").json
    assert found["importing"]["split"]["shares"] == [6.0, 2.0, 2.0]
    assert found["importing"]["split"]["seed"] == 5
    grouped = hynt(*command, "--out", tmp_path / "b", "--split-by", "head,relation").json
    assert grouped["importing"]["split"]["group_by"] == ["head", "relation"]
    places: dict[tuple[str, str], set[str]] = {}
    graph = load_graph(tmp_path / "b")
    for split in graph.splits:
        for fact in graph.facts(split):
            places.setdefault((fact.head, fact.relation), set()).add(split)
    assert all(len(found) == 1 for found in places.values())


@pytest.mark.parametrize(
    "options, message",
    [
        (["--split", "8:1"], "is not a split"),
        (["--split", "0:1:1"], "is not three shares"),
        (["--split-by", "heat"], "facts cannot be grouped by 'heat'"),
        (["--split-by", "head,,tail"], "has an empty name"),
        (["--seed", "3"], "a seed alone makes no splits"),
        (["--delimiter", "tab"], "the format jsonl has no option 'delimiter'"),
        (["--units", "metric"], "metric"),
        (["--outlier-rules", "nowhere.toml"], "cannot read the settings"),
        (["--entity-labels", "nowhere.tsv"], "nowhere.tsv"),
    ],
)
def test_wrong_options_are_refused(hynt, source, tmp_path, options, message):
    done = hynt("data", "import", source, "--format", "jsonl", "--out", tmp_path / "g", *options, "--json")
    assert done.code in (1, 2)
    assert message in done.err
    assert done.json["error"]["exit_code"] == done.code
    assert not (tmp_path / "g").exists()


def test_an_unknown_format_names_the_nearest(hynt, source, tmp_path):
    done = hynt("data", "import", source, "--format", "jsnl", "--out", tmp_path / "g")
    assert done.code == 2
    assert "Did you mean jsonl?" in done.err


def test_outlier_rules_remove_and_count(hynt, source, tmp_path):
    (tmp_path / "rules.toml").write_text('[limits."P2250"]\nmaximum = 85\n')
    command = ("data", "import", source, "-f", "jsonl", "--outlier-rules", tmp_path / "rules.toml")
    done = hynt(*command, "--out", tmp_path / "g")
    assert done.code == 0
    assert "1 fact removed by the outlier rules:\n  1  P2250: at most 85" in done.out
    (tmp_path / "rules.toml").write_text("[limits.P225]\nmaximum = 85\n")
    done = hynt(*command, "--out", tmp_path / "h")
    assert done.code == 1
    assert "Did you mean 'P2250'?" in done.err
    assert not (tmp_path / "h").exists()


def test_mixed_relations_are_refused_or_split(hynt, tmp_path):
    (tmp_path / "x.jsonl").write_text(
        '{"head": "a", "relation": "r", "tail": "b"}\n{"head": "a", "relation": "r", "tail": 3}\n'
    )
    done = hynt("data", "import", tmp_path / "x.jsonl", "--format", "jsonl", "--out", tmp_path / "g")
    assert done.code == 1
    assert "(a, r, b)" in done.err
    split = hynt(
        "data",
        "import",
        tmp_path / "x.jsonl",
        "-f",
        "jsonl",
        "-o",
        tmp_path / "g",
        "--mixed-relations",
        "split",
        "--json",
    ).json
    assert split["counts"]["relations"] == 2


def test_an_edge_list_with_its_own_columns(hynt, tmp_path):
    (tmp_path / "edges.csv").write_text("who;what;whom;since;age\nanna;knows;bert;1999-05-01;7\n")
    done = hynt(
        "data",
        "import",
        tmp_path / "edges.csv",
        "--format",
        "csv-edges",
        "--out",
        tmp_path / "g",
        "--head",
        "who",
        "--relation",
        "what",
        "--tail",
        "whom",
        "--delimiter",
        "semicolon",
        "--numeric",
        "age",
        "--dates",
        "since",
    )
    assert done.code == 0, done.err
    (fact,) = load_graph(tmp_path / "g").facts()
    assert {relation: value.value for relation, value in fact.qualifiers} == {
        "since": pytest.approx(1999 + 120 / 365),
        "age": 7.0,
    }


def test_leakage_is_removed_when_asked(hynt, tmp_path):
    lines = [f"h{at}\tparent of\tt{at}\n" for at in range(20)] + [f"t{at}\tchild of\th{at}\n" for at in range(20)]
    (tmp_path / "family.tsv").write_text("".join(lines))
    command = ("data", "import", tmp_path / "family.tsv", "--format", "tsv", "--remove-leakage", "--out")
    done = hynt(*command, tmp_path / "g")
    assert (
        "20 facts removed because the relation gives another away:\n  child of is an inverse of parent of" in done.out
    )
    assert [relation.name for relation in load_graph(tmp_path / "g").relations] == ["parent of"]
    (tmp_path / "family.tsv").write_text("a\tr\tb\n")
    assert "No relation gives another away." in hynt(*command, tmp_path / "h").out
