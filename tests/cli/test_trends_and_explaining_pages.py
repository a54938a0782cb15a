"""The pages on trends and on explaining: their commands and their Python run on a run of `world`."""

from __future__ import annotations

import re
import shlex

import pytest

from hynt.cli import output
from tests.conftest import ROOT
from tests.documented import names

FOLDER = ROOT / "docs" / "how-to"
PAGES = {name: (FOLDER / f"{name}.md").read_text(encoding="utf-8") for name in ("trends", "explaining")}
COLUMNS = 88
"""As many as the site shows."""
VERBS = {"trends": "trends", "explaining": "explain"}


@pytest.fixture(scope="module")
def folder(page_folder):
    """The page's folder, where the run is called after its graph."""
    (page_folder / "runs" / "first").rename(page_folder / "runs" / "world")
    return page_folder


@pytest.mark.parametrize("name,count,files", [("trends", 2, 3), ("explaining", 2, 1)])
def test_commands_print_what_the_page_shows_up_to_numbers(folder, hynt, monkeypatch, name, count, files):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(output, "_WIDTH_OF_FILES", COLUMNS)
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGES[name], flags=re.DOTALL)
    assert len(blocks) == count
    named = []
    for command, expected in blocks:
        arguments = shlex.split(command)
        assert arguments[:2] == ["hynt", VERBS[name]]
        done = hynt(*arguments[1:])
        assert done.code == 0, done.err
        if expected:
            assert done.out.splitlines()[0] == expected.splitlines()[0]
            assert max(map(len, expected.splitlines())) <= COLUMNS, "wider than the pages of the site show"
            assert _shape(done.out) == _shape(expected)
        named += [arguments[at + 1] for at, word in enumerate(arguments) if word == "--out"]
    assert len(named) == files
    assert all((folder / one).stat().st_size > 1000 for one in named)


def _shape(text: str) -> tuple[set[str], list[str], list[str]]:
    """What does not depend on the weights, nor on where their digits and names break lines: words of headings, words of
    the rows' names, and how the lines around tables begin.
    """
    lines = text.splitlines()
    headings = {word for line in lines if line.startswith("┃") for word in re.findall(r"\w+", line)}
    rows = lines[: next((at for at, line in enumerate(lines) if line.startswith("└")), 0)]  # of the first table
    named = sorted(word for line in rows if line.startswith("│") for word in line.split("│")[1].split())
    return headings, named, [re.split(r"[\d:]", line)[0].strip() for line in lines if line[:1] not in "┏┃┡│└"]


@pytest.mark.parametrize("name", PAGES)
def test_python_runs(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    (example,) = re.findall(r"```python\n(.*?)```", PAGES[name], flags=re.DOTALL)
    made: dict[str, object] = {}
    exec(compile(example, f"{name}.md", "exec"), made)
    assert len(made["table"]) == len(made["found"].to_dict()["rows" if name == "trends" else "influences"])


def test_schemas_are_the_documented_ones(folder, hynt, monkeypatch):
    monkeypatch.chdir(folder)
    arguments = ("runs/world", "--head", "Brazil", "--relation", "total fertility rate", "--out", "a.csv", "--json")
    found = hynt("trends", *arguments).json
    words = set(names("trends"))
    assert set(found) | set(found["heads"][0]) <= words
    columns = re.findall(r"`([a-z_]+)`", PAGES["trends"].split("## The table")[1].split("## In Python")[0])
    assert set(found["rows"][0]) == set(columns) - {"curve", "known"}
    words = set(names("predict") + names("explain"))
    for relation, known in (("capital", {"about"}), ("population", set())):
        found = hynt("explain", "runs/world", "--head", "Japan", "--relation", relation, "--tail", "?", "--json").json
        assert set(found) | set(found["influences"][0]) | set(found["attention"]) <= words
        assert (found["about"] is not None) == bool(known)
