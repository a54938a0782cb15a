"""The page of models on `world` has the tables of its raw file, and its picture."""

from __future__ import annotations

import json

from hynt.comparison.table import cost_table, markdown, quality_table
from hynt.models.registry import MODELS
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "results" / "world.md").read_text(encoding="utf-8")
RAW = json.loads((ROOT / "docs" / "results" / "raw" / "world-comparison.json").read_text(encoding="utf-8"))


def test_the_tables_are_those_of_the_raw_file():
    assert markdown(quality_table(RAW)) in PAGE
    assert markdown(cost_table(RAW)) in PAGE


def test_every_model_has_a_row_and_none_failed():
    compared = [name for name, entry in MODELS.items() if entry.learns and name != "hynt-inductive"]  # it came later
    assert [row["model"] for row in RAW["rows"]] == compared
    assert RAW["failed"] == {}
    assert set(RAW["trivial"]) == {name for name, entry in MODELS.items() if not entry.learns}


def test_the_picture_is_there():
    assert "../images/world-comparison.svg" in PAGE
    assert (ROOT / "docs" / "images" / "world-comparison.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
