"""The documented schema of each `--json` output of `hynt data` is the one that is printed."""

from __future__ import annotations

import re

import pytest

from tests.documented import meanings


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
        assert set(meanings(command)) == set(output), command
    for command, field in (
        ("check", "outcome"),
        ("import", "importing"),
        ("import", "counts"),
        ("stats", "counts"),
        ("stats", "outliers"),
        ("show", "entity"),
        ("show", "counts"),
    ):
        missing = set(outputs[command][field]) - words(meanings(command)[field]) - {"train", "valid", "test"}
        assert not missing, (command, field)
    for command, field in (("list", "graphs"), ("list", "formats"), ("stats", "numbers"), ("show", "facts")):
        assert set(outputs[command][field][0]) <= words(meanings(command)[field]), (command, field)
