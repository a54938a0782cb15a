"""How the run was made, for the report: training curve and settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hynt.config import to_mapping
from hynt.errors import DataError
from hynt.reporting.charts_svg_plots import curve_chart
from hynt.reporting.page_html import Content, Markup, element
from hynt.reporting.page_tables import definitions, figure, folded, section
from hynt.runs.opening import LoadedRun
from hynt.runs.run_folder import ENVIRONMENT
from hynt.runs.training_record import read_record

PARTS = {"link": "entities", "relation": "relations", "number": "numbers"}


def training_section(loaded: LoadedRun) -> Markup:
    """Loss and validation over the epochs."""
    epochs, validations = training_records(loaded.run.metrics)
    charts: list[Markup] = []
    many = len({phase for phase, _ in epochs}) > 1
    for phase, part in _losses(epochs):
        points = [
            (float(one["epoch"]), float(one["loss"][part]))
            for name, one in epochs
            if name == phase and one.get("loss", {}).get(part) is not None
        ]
        title = f"Loss of {PARTS.get(part, part)}{f', {phase}' if many else ''}"
        mark = float(loaded.epoch) if not many else None
        charts.append(figure(curve_chart(f"loss-{len(charts)}", title, points, "mean loss", mark=mark), title))
    if len(validations) > 1:
        metric = str(validations[0]["metric"])
        points = [(float(one["epoch"]), float(one["value"])) for one in validations if one["metric"] == metric]
        chart = curve_chart("validation", f"Validation: {metric}", points, metric, mark=float(loaded.epoch))
        charts.append(figure(chart, f"Validation: {metric}"))
    lead = _summary(loaded)
    if not charts:
        lead += " No step was recorded: this model learns nothing by steps."
    return section(
        "training",
        "How it was trained",
        element("p", lead, class_="lead"),
        element("div", *charts, class_="charts") if charts else None,
    )


def training_records(path: Path) -> tuple[list[tuple[str, dict[str, Any]]], list[dict[str, Any]]]:
    """The epochs, with the name of their phase, and the validations of metrics.jsonl."""
    epochs, validations = [], []
    for number, record in enumerate(read_record(path), 1):
        try:
            if "validation" in record:
                validations.append({"epoch": record["epoch"], "metric": record["metric"], "value": record["value"]})
            else:
                epochs.append((str(record["phase"]), {"epoch": record["epoch"], "loss": dict(record["loss"])}))
        except (KeyError, TypeError, ValueError):
            raise DataError(
                "the training record is damaged.", where=f"{path}:{number}", advice="Restore it from a copy."
            ) from None
    return epochs, validations


def _losses(epochs: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str]]:
    """The phases and the parts of their loss, in order of appearance."""
    return list(dict.fromkeys((phase, part) for phase, one in epochs for part in one["loss"]))


def _summary(loaded: LoadedRun) -> str:
    training = loaded.run.manifest.get("training", {})
    seconds = float(training.get("seconds", 0.0))
    took = f" in {seconds / 60:,.1f} minutes" if seconds >= 90 else f" in {seconds:,.0f} seconds" if seconds else ""
    if not loaded.is_finished:
        return f"Training is not finished; these are the weights of epoch {loaded.epoch}."
    text = f"Trained{took}; the weights are those of epoch {loaded.epoch}"
    best = training.get("best")
    if best:
        return f"{text}, the best by {best['metric']} on validation ({best['value']:.4f})."
    return f"{text}, the last."


def settings_section(loaded: LoadedRun) -> Markup:
    """All settings, and where the run was made."""
    groups: dict[str, list[tuple[str, Content]]] = {}
    for name, value in _flat(to_mapping(loaded.settings)):
        group, _, key = name.rpartition(".")
        groups.setdefault(group or "run", []).append((key.replace("_", " "), _value(value)))
    cards = [
        element("div", element("h3", group.replace("_", " ")), definitions(pairs), class_="card")
        for group, pairs in groups.items()
    ]
    environment = json.loads(loaded.run.checked(ENVIRONMENT).read_bytes())
    pairs = [(str(name), str(value)) for name, value in environment.items()]
    return section(
        "settings",
        "Settings",
        element("div", *cards, class_="cards"),
        folded("Where it was trained", definitions(pairs)),
    )


def _flat(mapping: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}.")
        else:
            found.append((f"{before}{name}", value))
    return found


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value) or "none"
    return str(value)
