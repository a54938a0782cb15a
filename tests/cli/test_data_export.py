"""`hynt data export`, and the way back."""

from __future__ import annotations

import pytest

from hynt.formats.registry import FORMATS
from hynt.graph.storage import load_graph
from tests.cli.conftest import leftovers


@pytest.mark.parametrize("name", ["tsv", "jsonl", "parquet"])
def test_export_and_import_give_the_same_facts(hynt, graph, tmp_path, name):
    found = hynt("data", "export", graph, "--format", name, "--out", tmp_path / "out", "--json").json
    assert sum(found["facts"].values()) == 6
    assert found["files"]
    assert hynt("data", "import", tmp_path / "out", "--format", name, "--out", tmp_path / "again").code == 0
    before, after = load_graph(graph), load_graph(tmp_path / "again")
    assert sorted(fact.key() for fact in before.facts()) == sorted(fact.key() for fact in after.facts())
    assert leftovers(tmp_path) == []


def test_what_is_there_is_not_replaced(hynt, graph, tmp_path):
    (tmp_path / "out").write_text("mine")
    done = hynt("data", "export", graph, "--format", "tsv", "--out", tmp_path / "out")
    assert done.code == 2
    assert "exists already" in done.err
    assert (tmp_path / "out").read_text() == "mine"


def test_a_format_that_is_only_read_is_refused(hynt, graph, tmp_path):
    only_read = next(name for name, known in FORMATS.items() if known.write is None)
    done = hynt("data", "export", graph, "--format", only_read, "--out", tmp_path / "out")
    assert done.code == 2
    assert f"the format {only_read} is only read, not written." in done.err
    assert not (tmp_path / "out").exists()


def test_numbers_do_not_fit_into_a_format_without_them(hynt, graph, tmp_path):
    done = hynt("data", "export", graph, "--format", "stare", "--out", tmp_path / "out")
    assert done.code in (1, 2)
    assert not (tmp_path / "out").exists()
    assert leftovers(tmp_path) == []
