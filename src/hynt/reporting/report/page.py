"""One page that says what a run is and how far it can be trusted. It needs no network, no script and no other file:
the style is inside and charts are inline SVG, so it can be mailed, archived and opened anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from hynt import __version__
from hynt.asking.predictor import Predictor
from hynt.reporting.page_html import Content, Markup, element, joined
from hynt.reporting.report.graph import entity_to_draw, graph_section, neighbourhood_section
from hynt.reporting.report.kept import Measurements
from hynt.reporting.report.measurements import Asking, measured
from hynt.reporting.report.metrics import breakdown_section, headlines, metrics_section
from hynt.reporting.report.protocol import protocol_section
from hynt.reporting.report.run import settings_section, training_section
from hynt.reporting.report.trends import trends_section
from hynt.reporting.report.trust import answers_section, trust_section
from hynt.runs.run_graph import whole_run

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
    drawn = entity_to_draw(graph) if entity is None else entity
    sections = {
        "metrics": metrics_section(found),
        "breakdowns": breakdown_section(found),
        "trust": trust_section(found),
        "answers": answers_section(found),
        "trends": trends_section(predictor, split),
        "graph": graph_section(graph),
        "neighbourhood": neighbourhood_section(graph, drawn),
        "training": training_section(loaded),
        "protocol": protocol_section(found),
        "settings": settings_section(loaded),
    }
    present = {name: content for name, content in sections.items() if content}
    return Report(_page(found, present), found, reused, tuple(present))


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
            element("p", _told(found), class_="lead"),
            headlines(found),
        ),
        element("nav", element("ul", *links), aria_label="Parts of this report"),
        element("main", *sections.values(), id="main"),
        element("footer", element("p", f"Made by hynt {__version__}. Everything on this page is inside this file.")),
    ]
    return "<!doctype html>\n" + element("html", _head(title), element("body", *body), lang="en")


def _told(found: Measurements) -> str:
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
    folder = files("hynt.reporting") / "assets"
    return "".join((folder / name).read_text(encoding="utf-8") for name in ("page.css", "charts.css", "report.css"))
