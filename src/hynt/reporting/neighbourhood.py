"""A picture of the facts around one entity, as the first figure of the HyNT paper: entities round, numbers square,
relations on the edges, qualifiers hanging off the edges.

The layout is worked out, not searched for: facts stand in rows on both sides of the entity, and every text is measured
first, so nothing overlaps and the same facts always give the same picture.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hynt.files import check_place, write_whole
from hynt.graph.entity_facts import EntityFacts
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.reporting.chart_style import check_drawable, hynt_style, new_figure, picture, suffix_of
from hynt.reporting.neighbourhood_layout import Box, Layout, Row, laid_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURED_FACTS = 12
SUFFIXES = (".png", ".svg", ".pdf")

_INK, _GREY = "#26323d", "#7b8894"
_COLOURS = {  # fill, line
    "entity": ("#e6f0fa", "#3f77ad"),
    "number": ("#fdf1dc", "#d08a1d"),
    "centre": ("#1f6f6b", "#1f6f6b"),
}


def check_picture(path: Path) -> None:
    """Refuse what cannot be drawn before any work is done."""
    suffix_of(path, SUFFIXES, "--picture")
    check_place(path, "--picture")
    check_drawable("--picture")


def draw_neighbourhood(graph: KnowledgeGraph, facts: EntityFacts, path: Path) -> None:
    """Draw these facts of an entity to a file, whose suffix says the format. The file appears whole or not at all."""
    check_picture(path)
    with hynt_style():
        layout = laid_out(graph, facts)
        figure = new_figure(layout.width, layout.height)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0, layout.width)
        axes.set_ylim(0, layout.height)
        axes.set_axis_off()
        _draw(axes, layout)
    write_whole(path, picture(figure, path.suffix))


def _draw(axes: Axes, layout: Layout) -> None:
    for row in layout.rows:
        _draw_row(axes, layout, row)
    _draw_box(axes, layout.centre, "centre")
    axes.text(layout.width / 2, 0.2, layout.footnote, ha="center", va="center", size=8, color=_GREY, parse_math=False)


def _draw_row(axes: Axes, layout: Layout, row: Row) -> None:
    from matplotlib.patches import FancyArrowPatch, PathPatch
    from matplotlib.path import Path as Curve

    side = row.side
    start = (layout.centre.x + side * layout.centre.width / 2, layout.centre.y)
    knot = (row.knot, row.y)
    middle = (start[0] + knot[0]) / 2
    curve = Curve(
        [start, (middle, start[1]), (middle, knot[1]), knot], [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
    )
    style = (0, (4, 3)) if row.dashed else "solid"
    axes.add_patch(PathPatch(curve, fill=False, edgecolor=_INK, linewidth=1.1, linestyle=style, zorder=1))
    outer = row.node.x - side * row.node.width / 2
    if row.direction == "in":  # the arrow's own line ends at its tip, short of the curve
        axes.plot([row.knot, row.knot + side * 0.1], [row.y] * 2, color=_INK, linewidth=1.1, zorder=1)
    arrow = {"out": "-|>", "in": "<|-", "none": "-"}[row.direction]
    axes.add_patch(
        FancyArrowPatch(
            knot,
            (outer, row.y),
            arrowstyle=arrow,
            mutation_scale=11,
            shrinkA=0,
            shrinkB=0,
            color=_INK,
            linewidth=1.1,
            linestyle=style,
            zorder=1,
        )
    )
    axes.text(
        (row.knot + outer) / 2,
        row.y + 0.06,
        row.label,
        ha="center",
        va="bottom",
        size=layout.label_size,
        color=_INK,
        style="italic" if row.dashed else "normal",
        parse_math=False,
    )
    _draw_box(axes, row.node, "number" if row.node.is_number else "entity")
    if row.hanging:
        axes.plot([row.knot] * 2, [row.y, row.hanging[-1].y], color=_GREY, linewidth=0.9, zorder=1)
        axes.plot([row.knot], [row.y], marker="o", markersize=4, color=_INK, zorder=3)
    for item in row.hanging:
        axes.plot([row.knot, item.text_x - side * 0.05], [item.y] * 2, color=_GREY, linewidth=0.9, zorder=1)
        axes.text(
            item.text_x,
            item.y,
            item.label,
            ha="left" if side > 0 else "right",
            va="center",
            size=layout.small_size,
            color=_INK if item.is_relation else _GREY,
            parse_math=False,
        )
        if item.node is not None:
            _draw_box(axes, item.node, "number" if item.node.is_number else "entity")


def _draw_box(axes: Axes, box: Box, look: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    fill, line = _COLOURS[look]
    rounding = 0.02 if look == "number" else box.height / 2 if "\n" not in box.text else 0.2
    axes.add_patch(
        FancyBboxPatch(
            (box.x - box.width / 2, box.y - box.height / 2),
            box.width,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={rounding}",
            facecolor=fill,
            edgecolor=line,
            linewidth=1.0,
            zorder=2,
        )
    )
    axes.text(
        box.x,
        box.y,
        box.text,
        ha="center",
        va="center_baseline" if "\n" not in box.text else "center",
        size=box.size,
        color="white" if look == "centre" else _INK,
        weight="bold" if look == "centre" else "normal",
        zorder=4,
        parse_math=False,
    )
