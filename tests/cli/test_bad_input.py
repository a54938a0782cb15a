"""Bad input at the command: one clear error, no traceback, nothing left behind."""

from __future__ import annotations

import bz2
import gzip
import json

import pytest

from tests.cli.conftest import leftovers

GOOD = '{"head": "a", "relation": "r", "tail": "b"}\n'


def number(text: str) -> bytes:
    return f'{{"head": "a", "relation": "r", "tail": {text}}}\n'.encode()


CASES = {
    "empty": ("x.jsonl", b"", "no facts"),
    "only blank lines": ("x.jsonl", b"\n\n", "no facts"),
    "truncated json": ("x.jsonl", GOOD.encode() + b'{"head": "a", "rel', ""),
    "wrong encoding": ("x.jsonl", GOOD.encode() + '{"head": "é"}'.encode("latin-1"), "UTF-8"),
    "UTF-16": ("x.jsonl", GOOD.encode("utf-16"), ""),
    "NUL bytes": ("x.jsonl", GOOD.encode() + b'{"head": "a\x00", "relation": "r", "tail": "b"}\n', "NUL"),
    "not a number": ("x.jsonl", number("NaN"), ""),
    "infinite": ("x.jsonl", number("1e999"), ""),
    "other digits": ("x.jsonl", number("１２"), ""),
    "unknown unit": ("x.jsonl", number('{"number": 1, "unit": "furlongs per fortnightly"}'), "unit"),
    "number as head": ("x.jsonl", b'{"head": 7, "relation": "r", "tail": "b"}\n', "head"),
    "qualifier without value": ("x.jsonl", b'{"head": "a", "relation": "r", "tail": "b", "qualifiers": [["q"]]}\n', ""),
    "deep nesting": ("x.jsonl", b"[" * 200_000, ""),
    "truncated gzip": ("x.jsonl.gz", gzip.compress(GOOD.encode() * 5000)[:60], ""),
    "corrupt bzip2": ("x.jsonl.bz2", bz2.compress(GOOD.encode() * 50)[:20] + b"?????????", ""),
    "a long line": ("x.jsonl", b'{"head": "' + b"a" * (17 * 2**20), "long"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_clear_error_and_nothing_left(hynt, tmp_path, case):
    name, content, word = CASES[case]
    source = tmp_path / "source"
    source.mkdir()
    (source / name).write_bytes(content)
    done = hynt("data", "import", source, "--format", "jsonl", "--out", tmp_path / "g", "--json")
    assert done.code == 1, done.err
    error = done.json["error"]
    assert error["exit_code"] == 1
    assert error["what"]
    assert name in error["where"] or "source" in error["where"]
    assert word.lower() in done.err.lower()
    assert done.err.count("error:") == 1
    assert len(done.err) < 3000
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    checked = hynt("data", "check", source, "--format", "jsonl")
    assert checked.code == 1
    assert checked.err or "By reason" in checked.out


def test_an_archive_bomb_is_stopped(hynt, tmp_path):
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress((b" " * (2**20) + b"\n") * 100))
    done = hynt("data", "import", tmp_path / "x.jsonl.gz", "--format", "jsonl", "--out", tmp_path / "g")
    assert done.code == 1
    assert not (tmp_path / "g").exists()
    assert leftovers(tmp_path) == []


def test_missing_columns_name_the_line(hynt, tmp_path):
    (tmp_path / "x.tsv").write_text("a\tr\tb\na\tr\n")
    done = hynt("data", "import", tmp_path / "x.tsv", "--format", "tsv", "--out", tmp_path / "g")
    assert done.code == 1
    assert "x.tsv:2" in done.err


@pytest.mark.parametrize("target", ["nowhere", "empty"])
def test_a_source_that_is_not_there(hynt, tmp_path, target):
    (tmp_path / "empty").mkdir()
    done = hynt("data", "check", tmp_path / target, "--format", "jsonl", "--json")
    assert done.code in (1, 2)
    assert target in json.dumps(done.json)


def test_a_place_that_cannot_be_written(hynt, tmp_path):
    (tmp_path / "x.jsonl").write_text(GOOD)
    (tmp_path / "file").write_text("")
    done = hynt("data", "import", tmp_path / "x.jsonl", "-f", "jsonl", "-o", tmp_path / "file" / "g")
    assert done.code == 2
    assert "is a file, so no folder can be made in it." in done.err
    assert (tmp_path / "file").read_text() == ""
