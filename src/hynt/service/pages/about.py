"""About the run: its figures and the protocol they were measured by, as the report shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hynt.errors import HyntError
from hynt.files import MANIFEST_NAME, read_index
from hynt.markup import Column, Markup, Row, RowGroup, joined, table
from hynt.reporting.report.metrics import METRICS, SCOPES, TITLES, WORDS, headlines, metrics_section
from hynt.reporting.report.trust import Measurements, kept_measurements, protocol_section, trust_section

SPLITS = ("test", "valid")
_WEIGHTS, _READS, _RECORD = "weights.safetensors", "reads.json", "metrics.jsonl"
"""As `hynt.runs.run_folder` names them, which needs torch."""


def measured_of(run: Path) -> tuple[Measurements | None, str]:
    """The figures kept in a run, those of test before those of valid, and why there are none where there are none."""
    try:
        weights = read_index(run / MANIFEST_NAME).get("files", {}).get(_WEIGHTS)
        for split in SPLITS:
            found = kept_measurements(run, split, weights)
            if found is not None:
                return {**found, "reads_now": int(read_index(run / _READS).get(split, 0))}, ""
    except HyntError as problem:
        return None, f"The figures of this run cannot be shown: {problem.what}"
    return None, "The run was not measured in full yet. One command does it and keeps the figures in the run:"


def validated_of(run: Path) -> dict[str, Any] | None:
    """What the run's weights reached on the validation split while it was trained; None where nothing was written."""
    try:
        lines = [json.loads(line) for line in (run / _RECORD).read_text(encoding="utf-8").splitlines()]
        validations = [line for line in lines if line.get("validation")]
        if not validations:
            return None
        chosen = next((line for line in reversed(validations) if line.get("best")), validations[-1])
        tables = [_task_table(task, found) for task, found in chosen["validation"].items() if task in METRICS]
        return {"epoch": int(chosen["epoch"]), "tables": joined(tables)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # a damaged record costs the page this part; `hynt report` says what is wrong with it


def _task_table(task: str, found: dict[str, Any]) -> Markup:
    metrics = [one for one in METRICS[task] if one in found["triplet"]]  # records of earlier versions have fewer
    columns = [Column(TITLES[task]), *(Column(WORDS[one], "number") for one in metrics), Column("asked", "number")]
    rows = [
        Row([title, *(f"{found[scope][one]:.4f}" for one in metrics), f"{found[scope]['count']:,}"])
        for scope, title in SCOPES.items()
        if found[scope]["count"]
    ]
    return table(f"{TITLES[task]} of the validation split", columns, [RowGroup("", rows)], hide_caption=True)


def figures(found: Measurements) -> dict[str, Markup]:
    """The parts of the report that say how good the run is."""
    return {
        "headlines": headlines(found),
        "metrics": metrics_section(found),
        "trust": trust_section(found),
        "protocol": protocol_section(found),
    }


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
