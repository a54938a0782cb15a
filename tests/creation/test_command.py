"""`hynt create` as a user calls it."""

from __future__ import annotations

import json

import pytest

from hynt.cli.application import run
from hynt.graph.storage import load_graph
from tests.creation import sample_dump
from tests.creation.sources.wikidata_lines import dump


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "dump.json"
    path.write_bytes(dump(sample_dump.lines()))
    return path


def command(*arguments):
    return run(["create", *map(str, arguments)])


def test_text_for_people(path, tmp_path, capsys):
    assert command("wikidata", path, "--all", "--out", tmp_path / "graph", "--workers", 1) == 0
    told = capsys.readouterr().out
    assert "lines: 11 read = 5 kept + 2 frame + 2 property + 1 deleted-entity + 1 other-entity-type" in told
    assert "units not in the table: Q999999999" in told
    assert "statistics: entities 7" in told
    assert load_graph(tmp_path / "graph").manifest.format == "wikidata"


def test_json_for_programs(path, tmp_path, capsys):
    save = tmp_path / "told.json"
    options = ["--workers", 1, "--max-qualifiers", 1, "--split", "1:0:0", "--json", "--save", save]
    assert command("wikidata", path, "--all", "--out", tmp_path / "graph", *options) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(save.read_text(encoding="utf-8"))
    assert told["counts"]["train"] == told["facts"]["kept"]
    assert "valid" not in told["counts"]
    assert told["qualifiers"]["dropped"]["beyond-limit"] == 2


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["wikidate", "DUMP", "--all"], "there is no source 'wikidate'."),
        (["wikidata", "DUMP"], "a graph needs one choice of entities, and none was said."),
        (["wikidata", "DUMP", "--all", "--units", "imperial"], "'imperial' is not a choice here."),
        (["wikidata", "DUMP", "--all", "--mediators", "x"], "--mediators means nothing for wikidata."),
        (["wikidata", "DUMP", "--all", "--memory", "some"], "'some' is not a size of memory."),
        (["wikidata", "DUMP", "--all", "--memory", "1MB"], "the queries need at least 64 MB."),
        (["wikidata", "DUMP", "--all", "--engine", "ray"], "unknown engine 'ray'."),
        (["wikidata", "DUMP", "--all", "--max-bad-lines", "2"], "2.0 is not a share of lines."),
        (["wikidata", "DUMP", "--all", "--rejects", "nowhere/bad.jsonl"], "there is no folder nowhere."),
        (["wikidata", "DUMP", "--all", "--save", "nowhere/told.json"], "there is no folder nowhere."),
    ],
)
def test_wrong_use(arguments, words, path, tmp_path, capsys):
    given = [str(path) if argument == "DUMP" else argument for argument in arguments]
    assert command(*given, "--out", tmp_path / "graph") == 2
    assert words in capsys.readouterr().err
    assert sorted(found.name for found in tmp_path.iterdir()) == ["dump.json"]


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "there are no facts."),
        (b"[\n]\n", "there are no facts."),
        (b"\x1f\x8b\x08 this is no gzip", "the compressed data"),
        (b"PK\x03\x04 a zip", "is a zip archive, which is not read directly."),
        (b"\x00" * 5000, "there are no facts."),
        (b'{"entities":{"Q1":', "the answer of the API cannot be read"),
    ],
)
def test_bad_dumps(content, words, path, tmp_path, capsys):
    path.write_bytes(content)
    assert command("wikidata", path, "--all", "--out", tmp_path / "graph", "--workers", 1) == 1
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told
    assert not (tmp_path / "graph").exists()


def test_a_dump_that_is_not_there(tmp_path, capsys):
    assert command("wikidata", tmp_path / "no.json", "--all", "--out", tmp_path / "graph") == 1
    assert "cannot be read: no such file or directory." in capsys.readouterr().err
