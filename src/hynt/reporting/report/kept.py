"""Where the figures of a report are kept in a run, and what was kept there. No torch here: a page reads them too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hynt.runs.hashed_files import read_index
from hynt.runs.run_graph import whole_run

SCHEMA_VERSION = 2

Measurements = dict[str, Any]


def measurements_path(run: Path, split: str) -> Path:
    """Where the measurements of a split are kept."""
    return run / f"measurements-{split}.json"


def kept_measurements(run: Path, split: str, weights: str | None) -> Measurements | None:
    """What was measured of the same weights before; None where nothing was, or by another version of hynt."""
    path = measurements_path(run, split)
    if weights is None or not path.exists():
        return None
    with whole_run():  # figures that somebody changed are not what was measured
        content = read_index(path)
    if content.get("schema_version") != SCHEMA_VERSION or content.get("weights") != weights:
        return None
    return content
