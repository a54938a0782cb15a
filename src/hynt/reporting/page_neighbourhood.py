"""The picture of a neighbourhood as inline SVG, in the colours of the page: light or dark, and text that can be read
out. The layout is that of `neighbourhood_layout`.
"""

from __future__ import annotations

from hynt.graph.entity_facts import EntityFacts
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences
from hynt.reporting.charts_svg import drawing
from hynt.reporting.neighbourhood_layout import SMALL_SIZE, Box, Layout, Row, laid_out
from hynt.reporting.page_html import Markup, element, joined

INCH = 88.0
"""Drawing units an inch of the layout: text of 10 points comes out as large as the text of the page."""


def neighbourhood_drawing(graph: KnowledgeGraph, facts: EntityFacts) -> Markup:
    """These facts of an entity around it."""
    layout = laid_out(graph, facts)
    words = Sentences(graph)
    told = "; ".join(words.fact(one.fact) for one in facts.facts)
    parts = [_row(layout, row) for row in layout.rows]
    parts.append(_box(layout, layout.centre, "centre"))
    parts.append(
        element(
            "text",
            layout.footnote,
            x=layout.width / 2 * INCH,
            y=(layout.height - 0.12) * INCH,
            class_="footnote",
            text_anchor="middle",
        )
    )
    size = (round(layout.width * INCH), round(layout.height * INCH))
    title = f"Facts around {graph.entity_labels[facts.entity]}"
    return drawing("neighbourhood-drawing", title, f"{told}.", joined(parts), size, "chart neighbourhood")


def _row(layout: Layout, row: Row) -> Markup:
    side = row.side
    edge = layout.centre.x + side * layout.centre.width / 2
    start, knot, outer = _x(edge), _x(row.knot), _x(row.node.x - side * row.node.width / 2)
    top, y = _y(layout, layout.centre.y), _y(layout, row.y)
    middle = (start + knot) / 2
    look = "edge dashed" if row.dashed else "edge"
    curve = f"M{start:.1f} {top:.1f}C{middle:.1f} {top:.1f} {middle:.1f} {y:.1f} {knot:.1f} {y:.1f}H{outer:.1f}"
    parts = [
        element("path", d=curve, class_=look, fill="none"),
        element("text", row.label, x=(knot + outer) / 2, y=y - 6, class_="edge-name", text_anchor="middle"),
    ]
    if row.direction == "out":
        parts.append(element("path", d=_arrow(outer, y, side), class_="arrow"))
    elif row.direction == "in":
        parts.append(element("path", d=_arrow(knot, y, -side), class_="arrow"))
    if row.hanging:
        lowest = _y(layout, row.hanging[-1].y)
        parts.append(element("line", x1=knot, x2=knot, y1=y, y2=lowest, class_="thread"))
        parts.append(element("circle", cx=knot, cy=y, r=3, class_="knot"))
    for item in row.hanging:
        at = _y(layout, item.y)
        text_x = _x(item.text_x)
        parts.append(element("line", x1=knot, x2=text_x - side * 4, y1=at, y2=at, class_="thread"))
        parts.append(
            element(
                "text", item.label, x=text_x, y=at + 4, class_="qualifier", text_anchor="start" if side > 0 else "end"
            )
        )
        if item.node is not None:
            parts.append(_box(layout, item.node, "number" if item.node.is_number else "entity"))
    parts.append(_box(layout, row.node, "number" if row.node.is_number else "entity"))
    return joined(parts)


def _box(layout: Layout, box: Box, look: str) -> Markup:
    width, height = box.width * INCH, box.height * INCH
    x, y = _x(box.x), _y(layout, box.y)
    rounding = 2.0 if look == "number" else min(height / 2, 14.0)
    lines = box.text.split("\n")
    size = box.size / 72 * INCH
    first = y + size * 0.36 - (len(lines) - 1) * size * 0.62
    small = " small" if box.size <= SMALL_SIZE else ""
    texts = [
        element("text", line, x=x, y=first + index * size * 1.24, class_=f"node {look}{small}", text_anchor="middle")
        for index, line in enumerate(lines)
    ]
    shape = element(
        "rect", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=rounding, class_=f"box {look}"
    )
    return joined([shape, *texts])


def _arrow(x: float, y: float, side: int) -> str:
    return f"M{x:.1f} {y:.1f}l{-side * 8} -4v8z"


def _x(inches: float) -> float:
    return inches * INCH


def _y(layout: Layout, inches: float) -> float:
    """The layout counts from the bottom, a drawing from the top."""
    return (layout.height - inches) * INCH
