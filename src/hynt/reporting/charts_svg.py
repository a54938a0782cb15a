"""The parts of a chart as inline SVG: axes, ticks, marks. Colours are CSS classes, so that a page can be light or dark.

Every chart has a title and a description for those who cannot see it, and stands in a view box about as wide as a
phone, so that its text is never scaled down to something unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hynt.markup import Markup, element, joined
from hynt.reporting.scales import Scale

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
    x_text, y_text = text or plot.x.text, text or plot.y.text
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
