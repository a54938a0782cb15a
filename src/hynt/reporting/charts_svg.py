"""Charts as inline SVG: their axes, ticks and marks, and the charts of the report made of them. Colours are CSS
classes, so that a page can be light or dark.

Every chart has a title and a description for those who cannot see it, and stands in a view box about as wide as a
phone, so that its text is never scaled down to something unreadable.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_estimate, format_number, format_quantity
from hynt.markup import Markup, element, joined
from hynt.reporting.scales import Scale, round_steps

WIDTH, HEIGHT = 330.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 14.0, 12.0, 40.0

Point = tuple[float, float]


@dataclass(frozen=True)
class Plot:
    """The area inside the axes."""

    x: Scale
    y: Scale

    def point(self, x: float, y: float) -> Point:
        return self.x.at(x), self.y.at(y)

    def line(self, points: Sequence[Point], class_: str) -> Markup:
        """A line through points that are given by their values."""
        return element("polyline", points=_points([self.point(*one) for one in points]), class_=class_, fill="none")

    def band(self, points: Sequence[tuple[float, float, float]], class_: str) -> Markup:
        """An area between a low and a high line: (x, low, high)."""
        upper = [self.point(x, high) for x, _, high in points]
        lower = [self.point(x, low) for x, low, _ in reversed(points)]
        return element("polygon", points=_points([*upper, *lower]), class_=class_)

    def dot(self, x: float, y: float, class_: str, radius: float = 3.5, told: str | None = None) -> Markup:
        """A round mark, with a tooltip."""
        at = self.point(x, y)
        title = element("title", told) if told else None
        return element("circle", title, cx=at[0], cy=at[1], r=radius, class_=class_)

    def bar(self, x_low: float, x_high: float, top: float, class_: str, told: str | None = None) -> Markup:
        """A bar that stands on the x axis."""
        left, right = self.x.at(x_low), self.x.at(x_high)
        high, base = self.y.at(top), self.y.start
        title = element("title", told) if told else None
        width = max(right - left - 1.0, 0.5)
        return element("rect", title, x=left + 0.5, y=high, width=width, height=max(base - high, 0.0), class_=class_)

    def rule(self, x: float | None, y: float | None, class_: str) -> Markup:
        """A straight line across the plot at one x, or at one y."""
        if x is not None:
            at = self.x.at(x)
            return element("line", x1=at, x2=at, y1=self.y.start, y2=self.y.end, class_=class_)
        at = self.y.at(0.0 if y is None else y)
        return element("line", x1=self.x.start, x2=self.x.end, y1=at, y2=at, class_=class_)

    def base(self, name: str = "", below: float = 33.0) -> list[Markup]:
        """The line that the plot stands on, and what it is called."""
        start, end, y = self.x.start, self.x.end, self.y.start
        line = element("line", x1=start, x2=end, y1=y, y2=y, class_="axis")
        if not name:
            return [line]
        return [line, words(name, (start + end) / 2, y + below, "name")]

    def ticks_below(self, count: int, below: float, text: Callable[[float], str] | None = None) -> list[Markup]:
        """Short lines under the plot, each with its value."""
        found: list[Markup] = []
        for value in self.x.ticks(count):
            at, told = self.x.at(value), (text or self.x.text)(value)
            found.append(element("line", x1=at, x2=at, y1=self.y.start, y2=self.y.start + 4, class_="axis"))
            found.append(words(told, at, self.y.start + below, "tick"))
        return found


def plot_area(
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    log_y: bool = False,
    units: tuple[str, str] = ("", ""),
    size: Point = (WIDTH, HEIGHT),
    margins: tuple[float, float, float, float] = (LEFT, RIGHT, TOP, BOTTOM),
) -> Plot:
    """A plot of these ranges in a drawing of this size."""
    left, right, top, bottom = margins
    x_axis = Scale(*x, left, size[0] - right, unit=units[0])
    return Plot(x_axis, Scale(*y, size[1] - bottom, top, log_y, units[1]))


def axes_of(plot: Plot, x_name: str, y_name: str, text: Callable[[float], str] | None = None) -> Markup:
    """Grid lines, ticks and the names of both axes; `text` says a tick otherwise than its axis does."""
    y_text = text or plot.y.text
    parts = []
    for value in plot.y.ticks(4):
        parts.append(plot.rule(None, value, "grid"))
        parts.append(words(y_text(value), plot.x.start - 6, plot.y.at(value) + 3.5, "tick", "end"))
    parts += [*plot.ticks_below(5, 16, text), *plot.base(x_name)]
    if y_name:
        parts.append(
            element(
                "text",
                y_name,
                class_="name",
                text_anchor="middle",
                transform=f"translate(12 {(plot.y.start + plot.y.end) / 2:.1f}) rotate(-90)",
            )
        )
    return joined(parts)


def drawing(
    identity: str,
    title: str,
    description: str,
    content: Markup,
    size: Point = (WIDTH, HEIGHT),
    class_: str = "chart",
    is_image: bool = True,
) -> Markup:
    """A whole chart. `identity` is unique on its page. What holds links is a group of things, and no image."""
    return element(
        "svg",
        element("title", title, id=f"{identity}-title"),
        element("desc", description, id=f"{identity}-desc"),
        content,
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        role="img" if is_image else "group",
        class_=class_,
        xmlns="http://www.w3.org/2000/svg",
        aria_labelledby=f"{identity}-title {identity}-desc",
    )


def words(text: str, x: float, y: float, class_: str, anchor: str = "middle") -> Markup:
    """A line of text that stands on a place of the drawing."""
    return element("text", text, x=x, y=y, class_=class_, text_anchor=anchor)


def share_bar(share: float | None, class_: str = "fill") -> Markup:
    """A bar for a share between 0 and 1, as wide as its cell; the number stands beside it in words."""
    width = 0.0 if share is None else 100.0 * min(max(share, 0.0), 1.0)
    return element(
        "svg",
        element("rect", width=100, height=8, class_="track"),
        element("rect", width=width, height=8, class_=class_),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        class_="share",
        aria_hidden="true",
        focusable="false",
    )


def diamond(x: float, y: float, class_: str, reach: float, told: str | None = None) -> Markup:
    """A mark on its tip, at a place of the drawing."""
    path = f"M{x:.1f} {y - reach:.1f}l{reach} {reach} -{reach} {reach} -{reach} -{reach}z"
    return element("path", element("title", told) if told else None, d=path, class_=class_)


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


ORDERS = 3000.0
"""Numbers that reach this many times as far up as down are drawn on a logarithmic scale."""


def share_text(share: float) -> str:
    """A share as people say it, to one in a hundred."""
    return f"{100 * share:.0f} %"


def reliability_chart(identity: str, title: str, found: Mapping[str, Any]) -> Markup:
    """How often answers are right against how sure the run was; the diagonal is what they should be.

    Dots are larger the more answers they stand for.
    """
    plot = plot_area((0.0, 1.0), (0.0, 1.0))
    parts: list[Markup] = [axes_of(plot, "probability given", "share that was right", share_text)]
    parts.append(plot.line([(0, 0), (1, 1)], "ideal"))
    for name, look in (("bins_before", "before"), ("bins_after", "after")):
        bins = found[name]
        most = max((one["count"] for one in bins), default=1)
        parts.append(plot.line([(one["confidence"], one["accuracy"]) for one in bins], f"line {look}"))
        parts += [
            plot.dot(
                one["confidence"],
                one["accuracy"],
                f"dot {look}",
                2.5 + 4.5 * math.sqrt(one["count"] / most),
                f"{one['count']:,} answers at {share_text(one['confidence'])}: {share_text(one['accuracy'])} right",
            )
            for one in bins
        ]
    told = "; ".join(
        f"of {one['count']:,} answers given {share_text(one['confidence'])}, {share_text(one['accuracy'])} were right"
        for one in found["bins_after"]
    )
    return drawing(identity, title, f"With calibration: {told}.", joined(parts))


def coverage_chart(identity: str, title: str, levels: Mapping[str, Any]) -> Markup:
    """The share of truths inside their interval against the share promised."""
    plot = plot_area((0.4, 1.0), (0.4, 1.0))
    found = [(float(level), one["coverage"]) for level, one in levels.items() if one["coverage"] is not None]
    parts = [axes_of(plot, "promised", "truths inside the interval", share_text)]
    parts.append(plot.line([(0.4, 0.4), (1, 1)], "ideal"))
    parts.append(plot.line([(level, max(share, 0.4)) for level, share in found], "line after"))
    parts += [
        plot.dot(level, share, "dot after", 4, f"{share_text(level)}: {100 * share:.1f} %") for level, share in found
    ]
    told = "; ".join(f"{share_text(level)} intervals hold {100 * share:.1f} %" for level, share in found)
    return drawing(identity, title, f"{told}.", joined(parts))


def curve_chart(
    identity: str, title: str, points: Sequence[tuple[float, float]], y_name: str, *, mark: float | None = None
) -> Markup:
    """A value over the epochs; `mark` is the epoch whose weights are used."""
    values = [value for _, value in points]
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    log = low > 0 and high / low > 30
    ends = (low, high) if log else (low - room if low - room > 0 or low <= 0 else 0.0, high + room)
    first, last = points[0][0], points[-1][0]
    plot = plot_area((first, last if last > first else first + 1), ends, log_y=log)
    parts = [axes_of(plot, "epoch", y_name)]
    if mark is not None and first <= mark <= last:
        parts.append(plot.rule(mark, None, "mark"))
    parts.append(plot.line(points, "line after"))
    if len(points) <= 12:
        parts += [plot.dot(x, y, "dot after", 3, f"epoch {x:.0f}: {format_number(y)}") for x, y in points]
    told = f"From {values[0]:.4g} at epoch {first:.0f} to {values[-1]:.4g} at epoch {last:.0f}; lowest {low:.4g}, "
    return drawing(identity, title, f"{told}highest {high:.4g}.", joined(parts))


def interval_chart(
    identity: str, title: str, rows: Sequence[tuple[str, float, Sequence[float] | None, str]], x_name: str
) -> Markup:
    """Values side by side, each with its interval where it has one: (name, value, ends, class of its mark)."""
    ends = [end for _, value, limits, _ in rows for end in (value, *(limits or ()))]
    high = max(ends)
    steps = round_steps(0.0, high * 1.05 or 1.0, 4)
    top = high * 1.08 or 1.0
    height = 26.0 * len(rows) + 44.0
    begin = max(112.0, 16.0 + 6.7 * max(len(name) for name, *_ in rows))  # names in bold end before the plot
    plot = Plot(Scale(0.0, max(top, steps[-1]), begin, WIDTH - 14.0), Scale(0.0, 1.0, height - 38.0, 6.0))
    parts = []
    for value in plot.x.ticks(4):
        parts.append(plot.rule(value, None, "grid"))
        parts.append(words(plot.x.text(value), plot.x.at(value), height - 22, "tick"))
    parts.append(words(x_name, (plot.x.start + plot.x.end) / 2, height - 5, "name"))
    for index, (name, value, limits, look) in enumerate(rows):
        y = 6.0 + 26.0 * index + 13.0
        parts.append(words(name, begin - 8, y + 4, f"label {look}", "end"))
        if limits:
            left, right = plot.x.at(limits[0]), plot.x.at(limits[1])
            parts.append(element("line", x1=left, x2=right, y1=y, y2=y, class_=f"whisker {look}"))
        parts.append(
            element(
                "circle", element("title", f"{name}: {value:.4f}"), cx=plot.x.at(value), cy=y, r=5, class_=f"dot {look}"
            )
        )
    told = "; ".join(
        f"{name} {value:.4f}" + (f" ({limits[0]:.4f} to {limits[1]:.4f})" if limits else "")
        for name, value, limits, _ in rows
    )
    return drawing(identity, title, f"{told}.", joined(parts), (WIDTH, height))


def distribution(identity: str, title: str, values: Sequence[float], unit: str = "", *, bins: int = 30) -> Markup:
    """How the numbers of a relation are spread; over many orders of magnitude on a logarithmic scale."""
    low, high = min(values), max(values)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    log = low > 0 and high / low > ORDERS and unit != DATE_UNIT
    edges = [low * (high / low) ** (at / bins) if log else low + (high - low) * at / bins for at in range(bins + 1)]
    counts = [0] * bins
    for value in values:
        counts[min(max(bisect_right(edges, value) - 1, 0), bins - 1)] += 1
    return spread_chart(identity, title, edges, counts, Marked(unit), log=log)


@dataclass(frozen=True)
class Marked:
    """What is drawn upon a spread of numbers."""

    unit: str = ""
    answer: float | None = None
    interval: tuple[float, float] | None = None
    known: Sequence[float] = ()

    def ends(self) -> list[float]:
        """All that must find room on the axis."""
        return [*self.known, *(self.interval or ()), *([] if self.answer is None else [self.answer])]


def spread_chart(
    identity: str, title: str, edges: Sequence[float], counts: Sequence[int], marked: Marked, *, log: bool = False
) -> Markup:
    """A histogram, with a predicted number, its interval and what is known drawn upon it."""
    low, high = min([*edges, *marked.ends()]), max([*edges, *marked.ends()])
    if high <= low:
        low, high = low - 0.5, high + 0.5
    size = (WIDTH, 160.0)
    area = plot_area((low, high), (0.0, float(max(counts) or 1)), size=size, margins=(14.0, 14.0, 12.0, 30.0))
    plot = Plot(replace(area.x, log=log and low > 0, unit=marked.unit), area.y)
    parts: list[Markup] = []
    if marked.interval is not None:
        left, right = (plot.x.at(end) for end in marked.interval)
        parts.append(element("rect", x=left, y=6, width=max(right - left, 1.0), height=plot.y.start - 6, class_="span"))
    ends = list(edges) if len(edges) > len(counts) and edges[-1] > edges[0] else [edges[0] - 0.02, edges[0] + 0.02]
    for start, end, count in zip(ends, ends[1:], counts, strict=False):
        if count:
            told = f"{count:,} from {format_quantity(start, marked.unit)} to {format_quantity(end, marked.unit)}"
            parts.append(plot.bar(start, end, float(count), "bar", told))
    parts += [diamond(plot.x.at(value), plot.y.start, "known", 5.0) for value in marked.known]
    if marked.answer is not None:
        parts.append(plot.rule(marked.answer, None, "answer"))
    parts += [*plot.ticks_below(4, 17), *plot.base()]
    told = _spread_told(edges, counts, marked, log=log)
    return drawing(identity, title, told, joined(parts), size, "chart distribution")


def _spread_told(edges: Sequence[float], counts: Sequence[int], marked: Marked, *, log: bool) -> str:
    known = edges[0], edges[-1]

    def text(value: float) -> str:
        return format_estimate(value, marked.unit, marked.interval, known)

    told = " to ".join(format_quantity(end, marked.unit) for end in known)
    told = f"{sum(counts):,} numbers from {told}"
    told += ", on a logarithmic scale." if log else "."
    if marked.answer is not None:
        told += f" The answer is {text(marked.answer)}."
    if marked.interval is not None:
        told += f" Its interval reaches from {text(marked.interval[0])} to {text(marked.interval[1])}."
    return told


def histogram_chart(identity: str, title: str, rows: Sequence[tuple[str, int]], x_name: str) -> Markup:
    """Counts of a few named groups as upright bars, with the count on top."""
    size = (WIDTH, 180.0)
    most = float(max(count for _, count in rows) or 1)
    plot = plot_area((0.0, float(len(rows))), (0.0, most * 1.12), size=size, margins=(10.0, 10.0, 10.0, 38.0))
    parts = []
    for index, (name, count) in enumerate(rows):
        middle = plot.x.at(index + 0.5)
        parts.append(plot.bar(index + 0.1, index + 0.9, float(count), "bar", f"{name}: {count:,}"))
        parts.append(words(f"{count:,}", middle, plot.y.at(count) - 4, "tick"))
        parts.append(words(name, middle, plot.y.start + 14, "tick"))
    parts += plot.base(x_name, 31)
    told = "; ".join(f"{name}: {count:,}" for name, count in rows)
    return drawing(identity, title, f"{told}.", joined(parts), size)
