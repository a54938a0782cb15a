"""The page on asking: its commands and its Python run on a run of `world`; its schema is the one that is printed."""

from __future__ import annotations

import re
import shlex

from tests.conftest import ROOT

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
    names: dict[str, object] = {}
    exec(compile(example, "predicting.md", "exec"), names)
    assert names["same"].to_dict() == names["answers"].to_dict()
    assert len(names["table"]) == 1
    assert len(names["nearest"]) == 3


def test_the_schema_is_the_documented_one(page_folder, hynt, monkeypatch):
    monkeypatch.chdir(page_folder)
    (said,) = re.findall(r"^With `--json` the object has (.*?)\n\n", PAGE, flags=re.DOTALL | re.MULTILINE)
    words = set(re.findall(r"`([a-z_]+)`", said))
    for tail, relation in (("?", "capital"), ("?", "population")):
        found = hynt("predict", "runs/first", "--head", "Japan", "--relation", relation, "--tail", tail, "--json").json
        assert set(found) <= words
        assert set(found["answers"][0]) <= words


def test_every_option_is_on_the_page(hynt, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    options = set(re.findall(r"(--[a-z-]+)", hynt("predict", "--help").out))
    assert options - set(re.findall(r"(--[a-z-]+)", PAGE)) == {"--help"}
