"""`hynt compare`: one table for many models, resumable, with the same rows however often it was stopped."""

from __future__ import annotations

import json

import pytest

from hynt.cli import output
from hynt.comparison.table import SHORT_IN_WORDS, cost_table, quality_table
from hynt.formats.from_python import graph_from_facts
from hynt.graph.storage import save_graph
from tests.training.small_graph import small_graph

MODELS = ["--models", "transea,nalp", "--minutes-per-model", "0.01"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs") / "small"
    save_graph(small_graph(people=40), folder)
    return folder


def test_a_comparison_has_all_models_and_the_trivial_rows(hynt, saved, tmp_path):
    out = tmp_path / "compared"
    found = hynt("compare", "--graph", saved, *MODELS, "--out", out, "--json")
    rows = {row["model"]: row for row in found.json["rows"]}
    assert list(rows) == ["transea", "nalp"]
    assert set(rows["nalp"]["test"]["realistic"]) == {"link", "relation", "number"}
    assert rows["nalp"]["schedule_epochs"] == 5000
    assert rows["nalp"]["budget_limited"] is True
    assert rows["nalp"]["epochs"] >= 1
    assert rows["transea"]["curve"][-1]["value"] > 0
    assert rows["transea"]["settings"]["validation"]["seconds"] == pytest.approx(0.1)
    assert set(found.json["trivial"]) == {"frequency", "relation-mean", "relation-median", "neighbour-mean"}
    assert found.json["failed"] == {}
    kept = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert kept["rows"] == found.json["rows"]
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "comparison.md").read_text(encoding="utf-8")
    assert f"|\n\n{SHORT_IN_WORDS}\n" in page
    assert "| model | link MRR | H@1 | H@3 | H@10 |" in page
    assert "| transea | triplets, numbers | link h t; number t |" in page
    assert (out / "runs" / "nalp-0" / "manifest.json").exists()

    # Nothing is done twice, a further model joins, and the table is printed for people.
    again = hynt("compare", "--graph", saved, *MODELS[:1], "transea,nalp,hinge", *MODELS[2:], "--out", out)
    assert again.code == 0
    assert "hinge" in again.out
    assert SHORT_IN_WORDS in again.out
    assert "relation-mean" in again.out
    kept = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert kept["rows"][:2] == found.json["rows"]
    assert [row["model"] for row in kept["rows"]] == ["transea", "nalp", "hinge"]

    # Rows made under other conditions do not belong beside new ones.
    other = hynt("compare", "--graph", saved, *MODELS[:3], "0.02", "--out", out)
    assert other.code == 2
    assert "holds a row of transea with other settings: schedule.seconds: 0.6 → 1.2" in other.err
    elsewhere = tmp_path / "other"
    save_graph(small_graph(people=41), elsewhere)
    other = hynt("compare", "--graph", elsewhere, *MODELS, "--out", out)
    assert other.code == 2
    assert "holds a comparison on another graph" in other.err


def test_at_80_columns_no_figure_is_lost_and_no_table_is_cut_in_two(hynt, saved, tmp_path, monkeypatch):
    """It had two tables of 120 and 160 columns, which a terminal showed in five parts, most of them dashes."""
    monkeypatch.setattr(output, "_WIDTH_OF_FILES", 80)
    out = tmp_path / "compared"
    said = hynt("compare", saved, *MODELS[:1], "hynt-inductive,transea", *MODELS[2:], "--out", out).out
    tables, _, words = said.partition("what they read")
    assert all(len(line) <= 80 for line in tables.splitlines())
    assert sum(line.lstrip().startswith("model ") for line in tables.splitlines()) == 3  # links; the others; costs
    found = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    for cells in (quality_table(found), cost_table(found)):
        for row in cells.rows:
            lines = [line for line in tables.splitlines() if line.split()[:1] == row[:1]]
            figures = [cell for line in lines for cell in line.split()]
            in_words = [cell for cell in row[1:] if " " in cell or cell == "triplets"]
            assert all(cell in figures for cell in row[1:] if cell not in (*in_words, "–"))
            assert all(cell in words for cell in in_words)
            assert all(set(line.split()[1:]) != {"–"} for line in lines)
    assert said.splitlines()[-1].startswith(f"  hynt train {saved} --model ")


def test_seeds_are_averaged(hynt, saved, tmp_path):
    options = ["--models", "transea", "--minutes-per-model", "0.002", "--seeds", "0,1", "--task", "link"]
    found = hynt("compare", saved, *options, "--out", tmp_path / "compared")
    assert found.code == 0
    assert " ± " in found.out
    assert not any(word in found.err for word in ("relation-mean", "Traceback"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--models", "transae"], "unknown model 'transae'"),
        (["--models", "frequency"], "frequency learns nothing"),
        (["--models", ","], "no model was named"),
        (["--seeds", "one"], "'one' is not a list of seeds"),
        (["--task", "links"], "unknown task 'links'"),
        (["world", "--graph", "moon"], "two graphs were given: world and moon"),
    ],
)
def test_wrong_use_is_refused_before_any_work(hynt, tmp_path, options, words):
    found = hynt("compare", *options, "--out", tmp_path / "compared")
    assert found.code == 2
    assert words in found.err
    assert not (tmp_path / "compared").exists()


def test_a_graph_without_all_splits_is_refused(hynt, tmp_path):
    folder = tmp_path / "lone"
    save_graph(graph_from_facts({"train": [("a", "r", "b")]}, name="lone"), folder)
    found = hynt("compare", folder, "--models", "transea", "--out", tmp_path / "compared")
    assert found.code == 2
    assert "has no valid split" in found.err
    assert "--split 8:1:1" in found.err


def test_a_model_that_fails_ends_nothing_else(hynt, tmp_path):
    facts = {split: [("a", "height", 1.0), ("b", "height", 2.0)] for split in ("train", "valid", "test")}
    folder = tmp_path / "numbers"
    save_graph(graph_from_facts(facts, name="numbers"), folder)
    out = tmp_path / "compared"
    found = hynt("compare", "--graph", folder, "--models", "transea,gran", "--minutes-per-model", "0.002", "--out", out)
    assert found.code == 1
    assert "transea-0 failed; the others are in the table" in found.err
    kept = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert "no link to learn from" in kept["failed"]["transea-0"]
    assert [row["model"] for row in kept["rows"]] == ["gran"]
