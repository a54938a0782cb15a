"""The page on completing: its commands and its Python run on a run of `world`; its schemas are those of the files."""

from __future__ import annotations

import re
import shlex

import pyarrow.parquet as parquet
import pytest

from hynt.completion.batches import ANSWER_SCHEMA
from tests.conftest import ROOT
from tests.documented import fields

PAGE = (ROOT / "docs" / "how-to" / "completing.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(page_folder):
    """The page's folder, with its questions."""
    (questions,) = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    (page_folder / "questions.jsonl").write_text(questions, encoding="utf-8")
    return page_folder


def test_the_page_runs_from_top_to_bottom(folder, hynt, monkeypatch):
    monkeypatch.chdir(folder)
    done = []
    for language, text in re.findall(r"```(console|python)\n(.*?)```", PAGE, flags=re.DOTALL):
        if language == "python":
            names: dict[str, object] = {}
            exec(compile(text, "completing.md", "exec"), names)
            done.append(sorted(names))
            continue
        for line in text.splitlines():
            assert line.startswith("$ hynt ")
            arguments = shlex.split(line)[2:]
            low = ("--share", "0.1", "--threshold", "0", "--widest", "9") if "--missing" in arguments else ()
            found = hynt(*arguments, *low)
            assert found.code == 0, found.err
            done.append(arguments)
    assert len(done) == 7
    assert parquet.read_schema("answers.parquet").remove_metadata().equals(ANSWER_SCHEMA)
    assert "several" in done[-1]


def test_the_columns_are_the_documented_ones(folder, hynt, monkeypatch):
    monkeypatch.chdir(folder)
    tables = [
        re.findall(r"`([a-z_]+)`", _first_cells(title)) for title in ("### The file of answers", "### The file of prop")
    ]
    assert tables[0] == ANSWER_SCHEMA.names
    hynt("complete", "runs/first", "--missing", "--share", "0.1", "--threshold", "0", "--out", "columns.parquet")
    assert tables[1] == parquet.read_schema("columns.parquet").names


def _first_cells(title: str) -> str:
    """The first cells of the table after a title."""
    rows = PAGE.split(title)[1].split("| column |")[1].split("\n\n")[0].splitlines()[2:]
    return " ".join(row.split("|")[1] for row in rows)


def test_the_json_is_the_documented_one(folder, hynt, monkeypatch):
    monkeypatch.chdir(folder)
    answers = hynt("complete", "runs/first", "questions.jsonl", "--out", "json.parquet", "--json").json
    missing = hynt("complete", "runs/first", "--missing", "--out", "json-2.parquet", "--json").json
    assert [list(answers), list(missing)] == [fields("complete"), fields("complete --missing")]
