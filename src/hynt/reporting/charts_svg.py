"""The parts of a chart as inline SVG: axes, ticks, marks. Colours are CSS classes, so that a page can be light or dark.

Every chart has a title and a description for those who cannot see it, and stands in a view box about as wide as a
phone, so that its text is never scaled down to something unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_number
from hynt.reporting.page_html import Markup, element, joined

WIDTH, HEIGHT = 330.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 14.0, 12.0, 40.0

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """From values to places on the drawing."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value stands; one beyond the ends stands at the end."""
        low, high, value = (_log(one) if self.log else one for one in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values between the ends."""
        if self.log:
            first, last = math.floor(_log(self.low)), math.ceil(_log(self.high))
            step = max(1, math.ceil((last - first) / count))
            powers = [10.0**power for power in range(first, last + 1, step)]
            found = [value for value in powers if self.low <= value <= self.high]
            return found if len(found) > 1 else round_steps(self.low, self.high, count)
        return round_steps(self.low, self.high, count)


def round_steps(low: float, high: float, count: int = 5) -> list[float]:
    """Between `low` and `high`, about `count` values whose distance is 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.75)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) + 0.0 for index in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float, unit: str = "") -> str:
    """A number beside an axis: short, and years without a comma."""
    if unit == DATE_UNIT:
        return f"{value:.0f}" if value >= 1 else f"{1 - value:.0f} BCE"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size and abs(value) < 1e15:
            divisor = 1e3 if letter == "k" else size
            return f"{format_number(round(value / divisor, 6))}{letter}"
    return format_number(value)


@dataclass(frozen=True)
class Plot:
    """The area inside the axes."""

    x: Axis
    y: Axis

    def point(self, x: float, y: float) -> Point:
        return self.x.at(x), self.y.at(y)

    def line(self, points: Sequence[Point], class_: str) -> Markup:
        """A line through values."""
        return element("polyline", points=_points([self.point(*one) for one in points]), class_=class_, fill="none")

    def band(self, points: Sequence[tuple[float, float, float]], class_: str) -> Markup:
        """An area between a low and a high line: (x, low, high)."""
        upper = [self.point(x, high) for x, _, high in points]
        lower = [self.point(x, low) for x, low, _ in reversed(points)]
        return element("polygon", points=_points([*upper, *lower]), class_=class_)

    def dot(self, x: float, y: float, class_: str, radius: float = 3.5, told: str | None = None) -> Markup:
        """A round mark; what is told shows when it is pointed at."""
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


def plot_area(
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    log_y: bool = False,
    size: Point = (WIDTH, HEIGHT),
    margins: tuple[float, float, float, float] = (LEFT, RIGHT, TOP, BOTTOM),
) -> Plot:
    """A plot of these ranges in a drawing of this size."""
    left, right, top, bottom = margins
    return Plot(Axis(*x, left, size[0] - right), Axis(*y, size[1] - bottom, top, log_y))


def axes(
    plot: Plot,
    x_name: str,
    y_name: str,
    x_text: Callable[[float], str] = tick_text,
    y_text: Callable[[float], str] = tick_text,
) -> Markup:
    """Grid lines, ticks and the names of both axes."""
    parts = []
    for value in plot.y.ticks(4):
        at = plot.y.at(value)
        parts.append(plot.rule(None, value, "grid"))
        parts.append(element("text", y_text(value), x=plot.x.start - 6, y=at + 3.5, class_="tick", text_anchor="end"))
    for value in plot.x.ticks(5):
        at = plot.x.at(value)
        parts.append(element("line", x1=at, x2=at, y1=plot.y.start, y2=plot.y.start + 4, class_="axis"))
        parts.append(element("text", x_text(value), x=at, y=plot.y.start + 16, class_="tick", text_anchor="middle"))
    parts.append(element("line", x1=plot.x.start, x2=plot.x.end, y1=plot.y.start, y2=plot.y.start, class_="axis"))
    middle = (plot.x.start + plot.x.end) / 2
    parts.append(element("text", x_name, x=middle, y=plot.y.start + 33, class_="name", text_anchor="middle"))
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
    identity: str, title: str, description: str, content: Markup, size: Point = (WIDTH, HEIGHT), class_: str = "chart"
) -> Markup:
    """A whole chart. `identity` is unique on its page."""
    return element(
        "svg",
        element("title", title, id=f"{identity}-title"),
        element("desc", description, id=f"{identity}-desc"),
        content,
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        role="img",
        class_=class_,
        xmlns="http://www.w3.org/2000/svg",
        aria_labelledby=f"{identity}-title {identity}-desc",
    )


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


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


def _log(value: float) -> float:
    return math.log10(max(value, 1e-300))
