"""The page of models on `world`: every model is in its raw file, and its picture is there."""

from __future__ import annotations

import json

from hynt.models.registry import MODELS
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "results" / "world.md").read_text(encoding="utf-8")
RAW = json.loads((ROOT / "docs" / "results" / "raw" / "world-comparison.json").read_text(encoding="utf-8"))


def test_every_model_has_a_row_and_none_failed():
    compared = [name for name, entry in MODELS.items() if entry.learns and name != "hynt-inductive"]  # it came later
    trivial = {name for name, entry in MODELS.items() if not entry.learns}
    rows = [row["model"] for row in RAW["rows"]]
    assert rows[: len(compared)] == compared
    assert set(rows[len(compared) :]) == trivial
    assert all(run["metrics"]["test"] for row in RAW["rows"] for run in row["runs"])
    assert all(row["runs"] for row in RAW["rows"])


def test_the_picture_is_there():
    assert "../images/world-comparison.svg" in PAGE
    assert (ROOT / "docs" / "images" / "world-comparison.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
