"""One page that says what a run is and how far it can be trusted. It needs no network, no script and no other file:
the style is inside and charts are inline SVG, so it can be mailed, archived and opened anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hynt import __version__
from hynt.asking.predictor import Predictor
from hynt.config import flat, to_mapping
from hynt.errors import DataError, UsageError
from hynt.files import read_json
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import format_difference
from hynt.graph.statistics import values_over_time
from hynt.markup import Content, Markup, definitions, element, figure, folded, joined, legend, section
from hynt.reporting.charts_svg import curve_chart
from hynt.reporting.report.graph import best_known, graph_section, neighbourhood_section
from hynt.reporting.report.measurements import Asking, measured
from hynt.reporting.report.metrics import breakdown_section, headlines, metrics_section
from hynt.reporting.report.trust import Measurements, answers_section, protocol_section, shown_as_kept, trust_section
from hynt.reporting.scales import asset, shared_style
from hynt.reporting.trend_chart import series_chart, series_title
from hynt.runs.opening import LoadedRun
from hynt.runs.place import read_record, whole_run
from hynt.runs.run_folder import ENVIRONMENT
from hynt.trends.trends import Series, Trend, trend

NAVIGATION = (
    ("metrics", "Metrics"),
    ("breakdowns", "Breakdowns"),
    ("trust", "Trust"),
    ("answers", "Answers"),
    ("trends", "Trends"),
    ("graph", "Graph"),
    ("neighbourhood", "Neighbourhood"),
    ("training", "Training"),
    ("protocol", "Protocol"),
    ("settings", "Settings"),
)


@dataclass(frozen=True)
class Report:
    """A finished page, and where its figures came from."""

    page: str
    measurements: Measurements
    reused: bool  # whether the figures were measured before, so that the split was not read again
    sections: tuple[str, ...]

    def __repr__(self) -> str:
        measured = "measured before" if self.reused else "measured now"
        return f"<report: {len(self.page.encode()) / 1e3:,.0f} kB, {len(self.sections)} sections, figures {measured}>"


def make_report(
    predictor: Predictor,
    split: str = "test",
    *,
    entity: int | None = None,
    again: bool = False,
    asking: Asking | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Report:
    """The report of a run on a held-out split. `entity` is the one whose facts are drawn."""
    found, reused = measured(predictor, split, again=again, asking=asking, note=note)
    graph, loaded = predictor.graph, predictor.loaded
    with whole_run():
        found = {**found, "reads_now": loaded.run.reads(split)}  # others may have read it since
    drawn = next(iter(best_known(graph, 1)), 0) if entity is None else entity
    with shown_as_kept(loaded.run.path) if reused else nullcontext():
        kept = _kept_sections(found)
        _page(found, kept)
    sections = {
        **kept,
        "trends": trends_section(predictor, split),
        "graph": graph_section(graph),
        "neighbourhood": neighbourhood_section(graph, drawn),
        "training": training_section(loaded),
        "settings": settings_section(loaded),
    }
    present = {name: sections[name] for name, _ in NAVIGATION if sections[name]}
    return Report(_page(found, present), found, reused, tuple(present))


def _kept_sections(found: Measurements) -> dict[str, Markup]:
    """The parts of the page that figures alone make."""
    return {
        "metrics": metrics_section(found),
        "breakdowns": breakdown_section(found),
        "trust": trust_section(found),
        "answers": answers_section(found),
        "protocol": protocol_section(found),
    }


def _page(found: Measurements, sections: dict[str, Markup]) -> str:
    protocol = found["evaluation"]["protocol"]
    name = protocol["graph"] or "the graph"
    title = f"{protocol['model']} on {name}"
    links = [element("li", element("a", text, href=f"#{key}")) for key, text in NAVIGATION if key in sections]
    body: list[Content] = [
        element("a", "To the figures", href="#metrics", class_="skip"),
        element(
            "header",
            element("p", "Report of a run", class_="over"),
            element("h1", title),
            element("p", _summary(found), class_="lead"),
            headlines(found),
        ),
        element("nav", element("ul", *links), aria_label="Parts of this report"),
        element("main", *sections.values(), id="main"),
        element("footer", element("p", f"Made by hynt {__version__}. Everything on this page is inside this file.")),
    ]
    return "<!doctype html>\n" + element("html", _head(title), element("body", *body), lang="en")


def _summary(found: Measurements) -> str:
    protocol = found["evaluation"]["protocol"]
    asked = sum(found["evaluation"][task]["all"]["count"] for task in found["intervals"])
    times = {1: "once", 2: "twice"}.get(found["reads_now"], f"{found['reads_now']:,} times")
    return (
        f"{asked:,} questions of the {protocol['split']} split, which the run never trained on. "
        f"That split was read {times} to measure this run."
    )


def _head(title: str) -> Markup:
    style = stylesheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    # Nothing may be fetched and no script may run, whatever a name in the data says.
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", f"{title} · hynt"),
        joined([Markup("<style>"), Markup(style), Markup("</style>")]),
    )


def stylesheet() -> str:
    """The style of the page."""
    return shared_style() + asset("report.css")


# How the run was made, for the report: training curve and settings.

PARTS = {"link": "entities", "relation": "relations", "number": "numbers"}


def training_section(loaded: LoadedRun) -> Markup:
    """Loss and validation over the epochs."""
    epochs, validations = training_records(loaded.run.metrics)
    charts: list[Markup] = []
    many = len({phase for phase, _ in epochs}) > 1
    for phase, part in dict.fromkeys((phase, part) for phase, one in epochs for part in one["loss"]):
        points = [
            (one["epoch"], one["loss"][part])
            for name, one in epochs
            if name == phase and one.get("loss", {}).get(part) is not None
        ]
        title = f"Loss of {PARTS.get(part, part)}{f', {phase}' if many else ''}"
        mark = float(loaded.epoch) if not many else None
        charts.append(figure(curve_chart(f"loss-{len(charts)}", title, points, "mean loss", mark=mark), title))
    if len(validations) > 1:
        metric = validations[0]["metric"]
        points = [(one["epoch"], one["value"]) for one in validations if one["metric"] == metric]
        chart = curve_chart("validation", f"Validation: {metric}", points, metric, mark=float(loaded.epoch))
        charts.append(figure(chart, f"Validation: {metric}"))
    lead = _training_summary(loaded)
    if not charts:
        lead += " No step was recorded: this model learns nothing by steps."
    shown = element("div", *charts, class_="charts") if charts else None
    return section("training", "How it was trained", shown, lead=lead)


def training_records(path: Path) -> tuple[list[tuple[str, dict[str, Any]]], list[dict[str, Any]]]:
    """The epochs, with the name of their phase, and the validations of metrics.jsonl."""
    epochs, validations = [], []
    for number, record in enumerate(read_record(path), 1):
        try:
            epoch = float(record["epoch"])
            if "validation" in record:
                value = float(record["value"])
                validations.append({"epoch": epoch, "metric": str(record["metric"]), "value": value})
            else:
                losses = {part: None if one is None else float(one) for part, one in record["loss"].items()}
                value = math.fsum(one for one in losses.values() if one is not None)
                epochs.append((str(record["phase"]), {"epoch": epoch, "loss": losses}))
            if not math.isfinite(epoch + value):
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise DataError(
                "the training record is damaged.", where=f"{path}:{number}", advice="Restore it from a copy."
            ) from None
    return epochs, validations


def _training_summary(loaded: LoadedRun) -> str:
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
    for name, value in flat(to_mapping(loaded.settings)).items():
        group, _, key = name.rpartition(".")
        groups.setdefault(group or "run", []).append((key.replace("_", " "), _value(value)))
    cards = [
        element("div", element("h3", group.replace("_", " ")), definitions(pairs), class_="card")
        for group, pairs in groups.items()
    ]
    environment = read_json(loaded.run.checked(ENVIRONMENT))
    pairs = [(str(name), str(value)) for name, value in environment.items()]
    return section(
        "settings",
        "Settings",
        element("div", *cards, class_="cards"),
        folded("Where it was trained", definitions(pairs)),
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value) or "none"
    return str(value)


# How numbers move over time, for the report: a panel for each of a few relations, of the head with the most values.

PANELS = 6
ENOUGH = 4
"""The fewest values of one head over time that make a curve."""
HELD_OUT = 2
"""The number of held-out values beyond which a series is no better for having more."""
A_RELATION = 2
POINTS = 60

KEYS = (("after", "predicted"), ("band", "its interval"), ("trained", "trained on"), ("held", "held out"))


def trends_section(predictor: Predictor, split: str) -> Markup:
    """Panels with the values of training and of `split`; nothing where the graph holds no number over time."""
    panels: list[Markup] = []
    for head, relation in heads_over_time(predictor.graph, split):
        try:
            found = trend(
                predictor,
                predictor.graph.vocabulary.entities[head],
                predictor.graph.relations[relation].name,
                points=POINTS,
            )
        except UsageError:  # this model answers no numbers, or all values stand at one date: no curve to draw
            continue
        panels.append(trend_panel(f"trend-{len(panels)}", found, found.series[0], split))
        if len(panels) == PANELS:
            break
    if not panels:
        return Markup("")
    lead = (
        "What the run answers along time, with its 90 % interval, beside what the graph knows. Values held out were "
        f"never trained on; those shown are of the {split} split."
    )
    drawn = element("div", *panels, class_="charts")
    return section("trends", "How values move over time", legend(KEYS), drawn, lead=lead)


def heads_over_time(graph: KnowledgeGraph, split: str) -> list[tuple[int, int]]:
    """(head, relation) with many values under a date in train and `split`: first one head of each relation, then a
    second one. Series with values held out come first, because those say how good a curve is.
    """
    train, held = (values_over_time(graph, name) for name in ("train", split))
    couples = np.unique(train)
    trained, kept = (np.searchsorted(np.sort(part), [couples, couples + 1]) for part in (train, held))
    trained, kept = np.diff(trained, axis=0)[0], np.diff(kept, axis=0)[0]
    order = np.lexsort((couples, -(trained + kept), -np.minimum(kept, HELD_OUT)))
    turns: Counter[int] = Counter()
    found: list[tuple[int, int, int]] = []
    for place in order[(trained + kept)[order] >= ENOUGH].tolist():
        head, relation = divmod(int(couples[place]), graph.vocabulary.relation_count)
        if turns[relation] < A_RELATION:
            found.append((turns[relation], head, relation))
            turns[relation] += 1
    return [(head, relation) for _, head, relation in sorted(found, key=lambda one: one[0])]


def trend_panel(identity: str, found: Trend, one: Series, split: str) -> Markup:
    """One head's panel, with what it says in words."""
    is_held = ~one.trained_on & (np.array(one.split, dtype=np.str_) == split)
    shown = one.trained_on | is_held
    drawn = replace(one, at=one.at[shown], known=one.known[shown], trained_on=one.trained_on[shown])
    held = int(is_held.sum())
    caption = "No value of this series was held out."
    if held:
        error = float(np.abs(one.known - one.predicted.value)[is_held].mean())
        count = "one held-out value" if held == 1 else f"{held} held-out values"
        caption = f"Mean error of {count}: {format_difference(error, found.unit)}."
    return figure(series_chart(identity, found, drawn), joined([element("b", series_title(found, one)), caption]))
