"""An entity's facts as a page shows them: a group per relation, a small curve where its numbers make one, and beside
each fact the question it suggests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_moment, format_quantity
from hynt.graph.units.conversion import with_display
from hynt.markup import Markup, element
from hynt.reporting.charts_svg import Plot
from hynt.reporting.scales import Scale
from hynt.service.pages.examples import written_value
from hynt.service.pages.questions import MOST_QUALIFIERS, AskedForm, address

POSITIONS = {
    "head": "What is known of it",
    "tail": "What points to it",
    "value": "Where it is the value of a qualifier",
}
_WIDTH, _HEIGHT = 120.0, 28.0


def sections_of(groups: Sequence[Mapping[str, Any]], entity: str) -> list[dict[str, Any]]:
    """Groups of facts by the position of the entity in them, in the order they come."""
    found: dict[str, dict[str, Any]] = {}
    for group in groups:
        section = {"title": POSITIONS[group["position"]], "position": group["position"], "relations": []}
        found.setdefault(group["position"], section)["relations"].append(_relation(group, entity))
    return list(found.values())


def _relation(group: Mapping[str, Any], entity: str) -> dict[str, Any]:
    relation, series = group["relation"], group["series"]
    facts = [_view(fact, entity, is_series=bool(series)) for fact in group["facts"]]
    whole = [("id", entity), ("position", group["position"]), ("relation", relation["id"])]
    return {
        "name": relation["name"],
        "id": relation["id"],
        "facts": facts,
        "count": group["count"],
        "whole": address("/entity", whole) if group["count"] > len(facts) else None,
        "spark": sparkline(series) if series else None,
        "told": _span(series[0], relation) if len(series) == 1 else "",
    }


def sparkline(series: Sequence[Sequence[tuple[float, float]]]) -> Markup:
    """The lines of a series, small; what they say stands beside them in words."""
    dates, values = zip(*(point for line in series for point in line), strict=True)
    ends = (min(values), max(values))
    room = 0.0 if ends[0] < ends[1] else abs(ends[0]) or 1.0  # a level line runs through the middle
    plot = Plot(Scale(min(dates), max(dates), 2.0, _WIDTH - 2), Scale(ends[0] - room, ends[1] + room, _HEIGHT - 3, 3.0))
    return element(
        "svg",
        *(plot.line(line, "line after") for line in series),
        *(plot.dot(*line[-1], "dot after", 2.5) for line in series),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        class_="chart spark",
        aria_hidden="true",
        focusable="false",
    )


def _span(line: Sequence[tuple[float, float]], relation: Mapping[str, Any]) -> str:
    unit = with_display(relation["unit"], relation["display_unit"])
    first, last = (f"{format_quantity(value, unit)} ({format_moment(at)})" for at, value in (line[0], line[-1]))
    return f"{first} to {last}"


def _view(fact: Mapping[str, Any], entity: str, *, is_series: bool) -> dict[str, Any]:
    """A fact with the addresses that lead on from it."""
    form = AskedForm(
        fact["head"]["id"],
        fact["relation"]["id"],
        written_value(fact["tail"]),
        tuple((pair["relation"]["id"], written_value(pair["value"])) for pair in fact["qualifiers"])[:MOST_QUALIFIERS],
    )
    trend = None
    if is_series and any(pair["value"].get("unit") == DATE_UNIT for pair in fact["qualifiers"]):
        chosen = [
            part
            for pair in fact["qualifiers"]
            if "id" in pair["value"]  # entities tell series apart
            for part in (("qualifier", pair["relation"]["id"]), ("value", pair["value"]["id"]))
        ]
        trend = address("/trends", [("head", fact["head"]["id"]), ("relation", fact["relation"]["id"]), *chosen])
    return {
        "anchor": f"{fact['split']}-{fact['row']}",
        "head": _linked(fact["head"], entity),
        "tail": _linked(fact["tail"], entity),
        "split": fact["split"],
        "added": fact["added"],
        "text": fact["text"],
        "qualifiers": [
            {"relation": pair["relation"]["name"], "value": _linked(pair["value"], entity)}
            for pair in fact["qualifiers"]
        ],
        "ask": form.with_blank("head" if fact["position"] == "tail" else "tail").address,
        "trend": trend,
    }


def _linked(value: Mapping[str, Any], entity: str) -> dict[str, Any]:
    """A value with where it leads; numbers, and the entity of the page itself, lead nowhere."""
    if "id" not in value:
        return {"text": value["text"], "address": None, "is_number": True}
    leads = None if value["id"] == entity else address("/entity", [("id", value["id"])])
    return {"text": value["name"], "address": leads, "is_number": False}
