"""The documented schema of each `--json` output is the one that is printed, and every option stands on the page."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def documented(name: str) -> dict[str, str]:
    """Field to meaning, from the table of a section."""
    rows = re.findall(
        r"^\| (`[a-z_`, ]+`) \| (.*) \|$", section(name).split("| field | meaning |")[1], flags=re.MULTILINE
    )
    return {field: meaning for fields, meaning in rows for field in re.findall(r"`([a-z_]+)`", fields)}


def words(text: str) -> set[str]:
    return set(re.findall(r"[`\"]([a-z_]+)[`\"]", text))


@pytest.fixture
def outputs(hynt, source, graph, tmp_path):
    def json_of(*arguments):
        return hynt("data", *arguments, "--json").json

    return {
        "list": json_of("list"),
        "check": json_of("check", source, "-f", "jsonl"),
        "import": json_of("import", source, "-f", "jsonl", "-o", tmp_path / "schema"),
        "stats": json_of("stats", graph, "--outliers"),
        "show": json_of("show", graph, "Japan"),
        "export": json_of("export", graph, "-f", "tsv", "-o", tmp_path / "schema-tsv"),
    }


def test_fields_are_the_documented_ones(outputs):
    for command, output in outputs.items():
        assert set(documented(command)) == set(output), command
    for command, field in (
        ("check", "outcome"),
        ("import", "importing"),
        ("import", "counts"),
        ("stats", "counts"),
        ("stats", "outliers"),
        ("show", "entity"),
        ("show", "counts"),
    ):
        missing = set(outputs[command][field]) - words(documented(command)[field]) - {"train", "valid", "test"}
        assert not missing, (command, field)
    for command, field in (("list", "graphs"), ("list", "formats"), ("stats", "numbers"), ("show", "facts")):
        assert set(outputs[command][field][0]) <= words(documented(command)[field]), (command, field)


def test_every_option_of_import_is_documented(hynt, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    options = set(re.findall(r"(--[a-z-]+)", hynt("data", "import", "--help").out))
    assert options - set(re.findall(r"(--[a-z-]+)", PAGE)) == {"--help"}
    assert len(options) > 20
