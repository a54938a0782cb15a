"""The audit of a run whose graph was updated: its facts of today, or those that came since training."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest

import hynt
from hynt.cli.application import run as invoke
from hynt.errors import UsageError

NEW = [
    ("Zoe", "knows", "person 1"),
    ("Zoe", "height", 171, [("year", 2001)]),
    ("Zoe", "owns", "Rex"),
    ("person 2", "height", 9_000, [("year", 2001)]),
]


@pytest.fixture
def updated(inductive_run, tmp_path):
    """A run after two updates: facts, then one more."""
    run = hynt.load(shutil.copytree(inductive_run, tmp_path / "run"), "cpu")
    return run.update(NEW, source="the registry").update([("person 3", "knows", "person 9")])


def told(found):
    """Head, relation and tail of each fact, and why it was not judged."""
    return {(row["head"], row["relation"], row["tail"]): row["reason"] for row in found.to_arrow().to_pylist()}


def test_what_updates_brought_is_judged_beside_other_facts(updated):
    found = updated.audit(splits=["added"])
    assert set(told(found)) == {
        ("Zoe", "knows", "person 1"),
        ("Zoe", "height", "171"),
        ("Zoe", "owns", "Rex"),
        ("person 2", "height", "9000"),
        ("person 3", "knows", "person 9"),
    }
    assert told(found)["Zoe", "owns", "Rex"]  # named once: without the fact nobody knows Rex
    assert len(found) == 4
    assert found.plan.folds.is_judged.sum() > 5
    assert found.top(1)[0]["score"] > 0  # four facts alone could say nothing
    rows = found.to_arrow(components=True).to_pylist()
    assert {row["head"] for row in rows} == {"Zoe", "person 2", "person 3"}


def test_all_updates_count_unless_an_earlier_version_is_named(updated):
    trained, first = (hynt.load(updated.path, "cpu", version=version) for version in (0, 1))
    for found, graph in (
        (hynt.audit(updated.path, device="cpu", folds=2), updated.graph),
        (updated.audit(folds=2), updated.graph),
        (first.audit(folds=2), first.graph),
        (trained.audit(folds=2), trained.graph),
    ):
        assert len(found.plan.table) == len(graph)
        judged = {(row["head"], row["relation"], row["tail"]) for row in found.to_arrow().to_pylist()}
        assert (("person 3", "knows", "person 9") in judged) == (graph is updated.graph)
        assert (("Zoe", "knows", "person 1") in judged) == (graph is not trained.graph)


def test_an_audit_of_another_version_does_not_take_over_the_work(updated, tmp_path):
    updated.audit(splits=["added"], folds=2, work=tmp_path / "work")
    with pytest.raises(UsageError, match="that of another job"):
        hynt.load(updated.path, "cpu", version=1).audit(splits=["added"], folds=2, work=tmp_path / "work")


def test_on_the_command_line(updated, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    given = ["audit", str(updated.path), "--split", "added", "--out", str(out), "--device", "cpu", "--json"]
    assert invoke([*given, "--as-of", "1"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["facts"], printed["splits"]) == (4, ["added"])
    assert pq.read_table(out).num_rows == 4
    assert invoke([*given, "--as-of", "0"]) == 2
    assert "as the run was trained on it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "text"), [({"splits": ["added"]}, "no facts were added"), ({"version": 1}, "no version 1 of this run")]
)
def test_what_cannot_be_judged_is_refused(inductive_run, options, text):
    with pytest.raises(UsageError, match=text):
        hynt.audit(inductive_run, device="cpu", **options)


def test_a_graph_has_no_versions():
    with pytest.raises(UsageError, match="a graph has no versions"):
        hynt.audit("world", version=1, device="cpu")
