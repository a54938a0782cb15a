"""The page on asking: its commands and its Python run on a run of `world`; its schema is the one that is printed."""

from __future__ import annotations

import re
import shlex

from tests.conftest import ROOT
from tests.documented import names

PAGE = (ROOT / "docs" / "how-to" / "predicting.md").read_text(encoding="utf-8")


def test_commands_print_what_the_page_shows_up_to_numbers(page_folder, hynt, monkeypatch):
    monkeypatch.chdir(page_folder)
    steps = [step for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL) for step in _steps(block)]
    assert len(steps) == 4
    for command, expected in steps:
        arguments = shlex.split(command)
        assert arguments[0] == "hynt"
        done = hynt(*arguments[1:])
        assert done.code == 0, done.err
        if expected:
            assert done.out.splitlines()[0] == expected[0]
            assert [_shape(line) for line in done.out.splitlines()] == [_shape(line) for line in expected]
    assert (page_folder / "vectors.parquet").exists()


def _steps(block: str) -> list[tuple[str, list[str]]]:
    return [
        (step.partition("\n")[0], step.partition("\n")[2].splitlines())
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]


def _shape(line: str) -> str:
    """The words at the start of a line, or the kind of a table's line: what does not depend on the weights."""
    return line[0] if line[:1] in "┏┃┡│└" else re.split(r"\d", line)[0].strip()


def test_python_runs(page_folder, monkeypatch):
    monkeypatch.chdir(page_folder)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    made: dict[str, object] = {}
    exec(compile(example, "predicting.md", "exec"), made)
    assert made["same"].to_dict() == made["answers"].to_dict()
    assert len(made["table"]) == 1
    assert len(made["nearest"]) == 3


def test_the_schema_is_the_documented_one(page_folder, hynt, monkeypatch):
    monkeypatch.chdir(page_folder)
    words = set(names("predict"))
    for tail, relation in (("?", "capital"), ("?", "population")):
        found = hynt("predict", "runs/first", "--head", "Japan", "--relation", relation, "--tail", tail, "--json").json
        assert set(found) <= words
        assert set(found["answers"][0]) <= words
