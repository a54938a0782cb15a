"""A trend as a picture: the prediction as a line in its interval, known values as dots. By matplotlib
with a panel for each head, or of one head as SVG.

As the paper's figures of fertility rates and rankings, which have the prediction, the truth and the relation's least
and greatest value. Here values that the run was trained on and values it never saw are told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hynt.graph.vocabulary import Floats
from hynt.markup import Markup, element, joined
from hynt.reporting.charts_svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    TOP,
    WIDTH,
    Plot,
    Point,
    axes_of,
    diamond,
    drawing,
    plot_area,
)
from hynt.reporting.scales import (
    BLUE,
    GREY,
    RED,
    TEAL,
    Scale,
    bare,
    fitted,
    hynt_style,
    new_figure,
    set_ticks,
    unit_text,
)
from hynt.trends.trends import Series, Trend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS_ABREAST = 3
_NAMES, _LINE = 110.0, 13.0  # drawing units: room for names beside curves, and the height of one
_KNOWN = {"known, trained on": ("o", BLUE, "white"), "known, held out": ("D", "white", RED)}  # mark, fill and edge
_PANEL = (3.5, 2.6)  # inches
_SQUEEZED = 3.0  # the relation's range is drawn as lines only where it is at most so many times what else is drawn
_MANY_VALUES = 40
_ORDERS = 30.0  # heads whose values differ by more than this factor need a logarithmic axis


def trend_figure(trend: Trend) -> Figure:
    """A panel for each head, with the same axes."""
    with hynt_style():
        count = len(trend.series)
        columns = min(PANELS_ABREAST, count) if count != 4 else 2
        rows = -(-count // columns)
        wide = 1.75 if count == 1 else 1.0
        width, height = columns * _PANEL[0] * wide + 0.3, rows * _PANEL[1] * (1.2 if count == 1 else 1.0) + 1.3
        figure = new_figure(width, height)
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
        figure.subplots_adjust(
            left=0.62 / width,
            right=1 - 0.2 / width,
            top=1 - 1.05 / height,
            bottom=0.5 / height,
            wspace=0.12,
            hspace=0.28,
        )
        room = panels[0].get_position().width * width
        logarithmic = _needs_logarithm(trend)
        limits = _limits(trend, logarithmic)
        for place, axes in enumerate(panels):
            if place >= count:
                axes.set_visible(False)
                continue
            if logarithmic:
                axes.set_yscale("log")
            _draw(axes, trend, trend.series[place], room)
            axes.set_ylim(*limits)
            for end in trend.training_range or ():  # where the panel reaches so far
                if limits[0] <= end <= limits[1]:
                    axes.axhline(end, color=GREY, linewidth=1.0, linestyle=(0, (1, 2.5)), zorder=2)
            axes.tick_params(labelbottom=place + columns >= count, labelleft=place % columns == 0)
        first, last = panels[0].get_xlim()
        set_ticks(panels[0].xaxis, Scale(first, last, unit=trend.over_unit), 5)
        set_ticks(panels[0].yaxis, Scale(*limits, log=logarithmic, unit=trend.unit), 6)
        _words(figure, trend, width, height)
    return figure


def _draw(axes: Axes, trend: Trend, one: Series, room: float) -> None:
    bare(axes)
    axes.set_title(fitted(one.name, room, 10, bold=True), pad=6)
    if one.curve.low is not None and one.curve.high is not None:
        axes.fill_between(trend.at, one.curve.low, one.curve.high, color=TEAL, alpha=0.13, linewidth=0)
    known, beyond = _parts(trend)
    axes.plot(trend.at[known], one.curve.value[known], color=TEAL, linewidth=2.0, solid_capstyle="round", zorder=3)
    for part in beyond:  # where training has no value of the relation, of whatever head
        axes.plot(trend.at[part], one.curve.value[part], color=TEAL, linewidth=1.6, linestyle=(0, (3, 2)), zorder=3)
    small = len(one.at) > _MANY_VALUES
    for above, (chosen, (mark, fill, edge)) in enumerate(
        zip((one.trained_on, ~one.trained_on), _KNOWN.values(), strict=True)
    ):
        axes.scatter(
            one.at[chosen],
            one.known[chosen],
            s=10.0 if small else 22.0,
            marker=mark,
            color=fill,
            edgecolors=edge,
            linewidths=0.7 if small else 1.2,
            zorder=4 + above,
            clip_on=False,
        )
    axes.margins(x=0.02)


def _parts(trend: Trend) -> tuple[slice, list[slice]]:
    """The points of a curve within the span of training, and those before and after, each up to where it starts."""
    if trend.training_span is None:
        return slice(0, 0), [slice(0, len(trend.at))]
    first = int(np.searchsorted(trend.at, trend.training_span[0], side="left"))
    end = int(np.searchsorted(trend.at, trend.training_span[1], side="right"))
    if end <= first:
        return slice(0, 0), [slice(0, len(trend.at))]
    outside = [slice(0, first + 1), slice(end - 1, len(trend.at))]
    return slice(first, end), [part for part in outside if part.stop - part.start > 1]


def _drawn(series: Sequence[Series]) -> Floats:
    """Every value that a panel must show."""
    parts = [part for one in series for part in (one.known, one.curve.value, one.curve.low, one.curve.high)]
    return np.concatenate([part for part in parts if part is not None])


def _needs_logarithm(trend: Trend) -> bool:
    """Where heads are of different orders of magnitude, one linear axis would flatten the small ones."""
    middles = np.array([float(np.median(one.known if len(one.known) else one.curve.value)) for one in trend.series])
    lines = np.concatenate([part for one in trend.series for part in (one.known, one.curve.value)])
    return bool((lines > 0).all() and middles.max() / middles.min() > _ORDERS)


def _limits(trend: Trend, logarithmic: bool) -> tuple[float, float]:
    drawn = _drawn(trend.series)
    if logarithmic:
        drawn = drawn[drawn > 0]
        return float(drawn.min() / 1.5), float(drawn.max() * 1.5)
    low, high = float(drawn.min()), float(drawn.max())
    if trend.training_range is not None:
        least, most = min(low, trend.training_range[0]), max(high, trend.training_range[1])
        if most - least <= _SQUEEZED * (high - low):
            low, high = least, most
    room = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return low - room, high + room


def _words(figure: Figure, trend: Trend, width: float, height: float) -> None:
    """The title, what it is measured in and asked with, and what the marks mean."""
    left = 0.2 / width
    unit = unit_text(trend.unit)
    title = fitted(trend.relation_name, width - 0.4, 13, bold=True)
    figure.text(left, 1 - 0.2 / height, title, size=13, weight="bold", va="top")
    told = [f"over {trend.over_name}"]
    if unit:
        told.insert(0, unit)
    if trend.training_range is not None:
        least, most = (trend.text(end) for end in trend.training_range)
        told.append(f"values in training: {least} to {most}")
    if trend.condition:
        told.append(f"asked with {trend.condition}")
    figure.text(left, 1 - 0.46 / height, fitted(" · ".join(told), width - 0.4, 8.5), size=8.5, color=GREY, va="top")
    figure.legend(
        handles=_marks(trend),
        loc="lower left",
        bbox_to_anchor=(left - 0.05 / width, 0.02 / height),
        ncols=5,
        columnspacing=1.1,
        handlelength=1.4,
        handletextpad=0.5,
        borderaxespad=0.0,
    )


def _marks(trend: Trend) -> list[object]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: list[object] = [Line2D([], [], color=TEAL, linewidth=2.0, label="prediction")]
    if any(one.curve.low is not None for one in trend.series):
        found.append(Patch(facecolor=TEAL, alpha=0.18, label=f"{trend.level:.0%} interval"))
    trained = np.concatenate([one.trained_on for one in trend.series])
    for is_any, (label, (mark, fill, edge)) in zip((trained.any(), (~trained).any()), _KNOWN.items(), strict=True):
        if is_any:
            dot = Line2D(
                [], [], color=fill, marker=mark, linestyle="none", markersize=5, markeredgecolor=edge, label=label
            )
            found.append(dot)
    limits = _limits(trend, _needs_logarithm(trend))
    if any(limits[0] <= end <= limits[1] for end in trend.training_range or ()):
        found.append(Line2D([], [], color=GREY, linestyle=(0, (1, 2.5)), label="range in training"))
    return found


# One head as inline SVG, for pages.


def series_title(trend: Trend, one: Series) -> str:
    """`Brazil: total fertility rate (sex female)`."""
    return f"{one.name}: {trend.relation_name}{f' ({trend.condition})' if trend.condition else ''}"


def series_plot(trend: Trend, one: Series, size: Point = (WIDTH, HEIGHT)) -> Plot:
    """Where values stand on the drawing."""
    drawn = _drawn([one])
    low, high = float(drawn.min()), float(drawn.max())
    room = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    spots = np.concatenate([trend.at, one.at])
    ends = (float(spots.min()), float(spots.max()))
    return plot_area(ends, (low - room, high + room), units=(trend.over_unit, trend.unit), size=size)


def series_chart(identity: str, trend: Trend, one: Series, size: Point = (WIDTH, HEIGHT)) -> Markup:
    """The paper's figure. The relation's limits are drawn where the curve comes near them."""
    plot = series_plot(trend, one, size)
    parts: list[Markup] = [axes_of(plot, trend.over_name, "")]
    parts += [plot.rule(None, end, "limit") for end in trend.training_range or () if plot.y.low <= end <= plot.y.high]
    if one.curve.low is not None and one.curve.high is not None and len(trend.at) > 1:
        ends = (trend.at.tolist(), one.curve.low.tolist(), one.curve.high.tolist())
        parts.append(plot.band(list(zip(*ends, strict=True)), "band"))
    known, beyond = _parts(trend)
    for part, look in [(known, "line after"), *((part, "line after beyond") for part in beyond)]:
        points = list(zip(trend.at[part].tolist(), one.curve.value[part].tolist(), strict=True))
        if points:
            parts.append(plot.line(points, look))
    for place in np.argsort(~one.trained_on, kind="stable").tolist():  # held-out values lie on top
        at, value, trained = float(one.at[place]), float(one.known[place]), bool(one.trained_on[place])
        told = f"{trend.at_text(at)}: {trend.text(value)}, {'trained on' if trained else 'held out'}"
        if trained:
            parts.append(plot.dot(at, value, "trained", 3.2, told))
        else:
            parts.append(diamond(*plot.point(at, value), "held", 4.0, told))
    content = joined([*parts, element("g", class_="pointer")])
    return drawing(identity, series_title(trend, one), _summary(trend, one), content, size)


def together_chart(identity: str, trend: Trend, size: Point) -> Markup:
    """The curves of all heads on the same axes, each with its name at its end; of different orders of magnitude on a
    logarithmic one.
    """
    logarithmic = _needs_logarithm(trend)
    values = np.concatenate([part for one in trend.series for part in (one.known, one.curve.value)])
    room = 0.0 if logarithmic else 0.06 * (float(values.max() - values.min()) or abs(float(values.max())) or 1.0)
    ends = (float(values.min()) - room, float(values.max()) + room)
    spots = np.concatenate([trend.at, *(one.at for one in trend.series)])
    margins = (LEFT, _NAMES, TOP, BOTTOM)
    span = (float(spots.min()), float(spots.max()))
    plot = plot_area(span, ends, log_y=logarithmic, units=(trend.over_unit, trend.unit), size=size, margins=margins)
    parts: list[Markup] = [axes_of(plot, trend.over_name, "")]
    for place, one in enumerate(trend.series):
        look = f"series-{place}"
        parts.append(plot.line(list(zip(trend.at.tolist(), one.curve.value.tolist(), strict=True)), f"line {look}"))
        parts += [plot.dot(at, value, f"dot {look}", 2.2) for at, value in zip(one.at, one.known, strict=True)]
    lines = [plot.y.at(float(one.curve.value[-1])) for one in trend.series]
    for place, y in zip(np.argsort(lines).tolist(), _apart(sorted(lines), plot.y.end, plot.y.start), strict=True):
        name = fitted(trend.series[place].name, (_NAMES - 10) / 72, 11)
        parts.append(element("text", name, x=plot.x.end + 6, y=y + 4, class_=f"label series-{place}"))
    told = "; ".join(_summary(trend, one) for one in trend.series)
    return drawing(identity, f"{trend.relation_name}, compared", told, joined(parts), size)


def _apart(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Ascending places at least a line of text from each other, as near to those wanted as may be."""
    found: list[float] = []
    for place in wanted:
        found.append(max(place, found[-1] + _LINE) if found else max(place, low))
    for index in range(len(found) - 1, -1, -1):  # pushed back where they ran out below
        found[index] = min(found[index], high - _LINE * (len(found) - 1 - index))
    return found


def _summary(trend: Trend, one: Series) -> str:
    first, last = (
        f"{trend.text(float(f'{one.curve.value[place]:.4g}'))} ({trend.at_text(float(trend.at[place]))})"
        for place in (0, -1)
    )
    held = int((~one.trained_on).sum())
    known = f"Known values: {len(one.at) - held} trained on, {held} held out"
    return f"The predicted curve runs from {first} to {last}. {known}."
