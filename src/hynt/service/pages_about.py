"""About the run: its figures and the protocol they were measured by, as the report shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hynt.errors import HyntError
from hynt.reporting.page_html import Markup
from hynt.reporting.report_kept import Measurements, kept_measurements
from hynt.reporting.report_metrics import headlines, metrics_section
from hynt.reporting.report_protocol import protocol_section
from hynt.reporting.report_trust import trust_section
from hynt.training.hashed_files import INDEX_NAME, read_index

SPLITS = ("test", "valid")
_WEIGHTS, _READS = "weights.safetensors", "reads.json"
"""As `hynt.training.run_folder` names them, which needs torch."""


def measured_of(run: Path) -> tuple[Measurements | None, str]:
    """The figures kept in a run, those of test before those of valid, and why there are none where there are none."""
    try:
        weights = read_index(run / INDEX_NAME).get("files", {}).get(_WEIGHTS)
        for split in SPLITS:
            found = kept_measurements(run, split, weights)
            if found is not None:
                return {**found, "reads_now": int(read_index(run / _READS).get(split, 0))}, ""
    except HyntError as problem:
        return None, f"The figures of this run cannot be shown: {problem.what}"
    return None, "The run was not measured yet. One command does it and keeps the figures in the run:"


def figures(found: Measurements) -> dict[str, Markup]:
    """The parts of the report that say how good the run is."""
    return {
        "headlines": headlines(found), "metrics": metrics_section(found), "trust": trust_section(found),
        "protocol": protocol_section(found),
    }  # fmt: skip


def described(about: dict[str, Any]) -> list[tuple[str, str]]:
    """The run and its graph in a few words each."""
    run, graph = about["run"], about["graph"]
    pairs = [
        ("model", str(run.get("model", "not loaded yet"))),
        ("graph", graph["name"] or "without a name"),
        ("entities", f"{graph['entities']:,}"),
        ("relations", f"{graph['relations']:,}"),
        *((f"facts in {name}", f"{count:,}") for name, count in graph["splits"].items()),
    ]
    named = {"trained_on": "trained on", "scaled_on": "numbers scaled on", "seed": "seed", "epoch": "epoch"}
    pairs += [(word, str(run[key])) for key, word in named.items() if key in run]
    return [*pairs, ("hynt", about["hynt"])]
