"""A number over time as inline SVG: the curve of a run with its interval as a band, and the values that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hynt.graph.sentences import format_quantity
from hynt.reporting.charts_svg import HEIGHT, WIDTH, Plot, axes, drawing, plot_area, tick_text
from hynt.reporting.page_html import Markup, element, joined


@dataclass(frozen=True)
class TrendPoint:
    """One place of the curve."""

    at: float
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class KnownPoint:
    """One value that the graph knows."""

    at: float
    value: float
    trained_on: bool


@dataclass(frozen=True)
class TrendDrawing:
    """What is drawn of one head."""

    title: str
    unit: str
    over_name: str
    over_unit: str
    curve: Sequence[TrendPoint]
    known: Sequence[KnownPoint]
    limits: tuple[float, float] | None  # the relation's least and greatest training number


def trend_plot(found: TrendDrawing, size: tuple[float, float] = (WIDTH, HEIGHT)) -> Plot:
    """Where values stand on the drawing."""
    values = [value for one in found.curve for value in (one.value, one.low, one.high) if value is not None]
    values += [one.value for one in found.known]
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    spots = [one.at for one in found.curve] + [one.at for one in found.known]
    return plot_area((min(spots), max(spots)), (low - room, high + room), size=size)


def trend_chart(identity: str, found: TrendDrawing, size: tuple[float, float] = (WIDTH, HEIGHT)) -> Markup:
    """The paper's figure. The relation's limits are drawn where the curve comes near them."""
    plot = trend_plot(found, size)
    parts: list[Markup] = [
        axes(plot, found.over_name, "", lambda at: tick_text(at, found.over_unit), lambda at: tick_text(at, found.unit))
    ]
    parts += [plot.rule(None, end, "limit") for end in found.limits or () if plot.y.low <= end <= plot.y.high]
    band = [(one.at, one.low, one.high) for one in found.curve if one.low is not None and one.high is not None]
    if len(band) > 1:
        parts.append(plot.band(band, "band"))
    parts.append(plot.line([(one.at, one.value) for one in found.curve], "line after"))
    for one in sorted(found.known, key=lambda known: not known.trained_on):
        when, value = format_quantity(one.at, found.over_unit), format_quantity(one.value, found.unit)
        where = "trained on" if one.trained_on else "held out"
        parts.append(
            plot.dot(one.at, one.value, "trained" if one.trained_on else "held", 3.2, f"{when}: {value}, {where}")
        )
    return drawing(identity, found.title, _told(found), joined([*parts, element("g", class_="pointer")]), size)


def _told(found: TrendDrawing) -> str:
    first, last = found.curve[0], found.curve[-1]
    spans = f"from {_pair(found, first)} to {_pair(found, last)}"
    held = sum(not one.trained_on for one in found.known)
    known = f"Known values: {len(found.known) - held} trained on, {held} held out"
    return f"The predicted curve runs {spans}. {known}."


def _pair(found: TrendDrawing, point: TrendPoint) -> str:
    value, at = format_quantity(float(f"{point.value:.4g}"), found.unit), format_quantity(point.at, found.over_unit)
    return f"{value} ({at})"
