"""A picture of the facts around one entity, as the first figure of the HyNT paper: entities round, numbers square,
relations on the edges, qualifiers hanging off the edges.

The layout is worked out, not searched for: facts stand in rows on both sides of the entity, and every text is measured
first, so nothing overlaps and the same facts always give the same picture.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from hynt.files import write_whole
from hynt.graph.entity_facts import EntityFact, EntityFacts
from hynt.graph.fact import Number, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences
from hynt.reporting.scales import COLOURS, hynt_style, new_figure, picture, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PICTURED_FACTS = 12
SUFFIXES = (".png", ".svg", ".pdf")

_INK, _GREY = COLOURS["ink"], COLOURS["soft"]
_BOXES = {  # fill, line
    "entity": (COLOURS["entity-fill"], COLOURS["entity-line"]),
    "number": (COLOURS["number-wash"], COLOURS["number-fill"]),
    "centre": (COLOURS["accent"], COLOURS["accent"]),
}


def draw_neighbourhood(graph: KnowledgeGraph, facts: EntityFacts, path: Path) -> None:
    """Draw these facts of an entity to a file, whose suffix says the format. The file appears whole or not at all."""
    with hynt_style():
        layout = laid_out(graph, facts)
        figure = new_figure(layout.width, layout.height)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0, layout.width)
        axes.set_ylim(0, layout.height)
        axes.set_axis_off()
        _draw(axes, layout)
    write_whole(path, picture(figure, path.suffix))


def _draw(axes: Axes, layout: NeighbourhoodLayout) -> None:
    for row in layout.rows:
        _draw_row(axes, layout, row)
    _draw_box(axes, layout.centre, "centre")
    axes.text(layout.width / 2, 0.2, layout.footnote, ha="center", va="center", size=8, color=_GREY, parse_math=False)


def _draw_row(axes: Axes, layout: NeighbourhoodLayout, row: NeighbourhoodRow) -> None:
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
    _draw_box(axes, row.node, row.node.look)
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
            _draw_box(axes, item.node, item.node.look)


def _draw_box(axes: Axes, box: Box, look: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    fill, line = _BOXES[look]
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


# Where everything in the picture of a neighbourhood stands, in inches: text is measured, and nothing overlaps.

Direction: TypeAlias = Literal["out", "in", "none"]
"""Which way an edge points from the entity; none where it is the value of a qualifier."""

TITLE_SIZE, NODE_SIZE, LABEL_SIZE, SMALL_SIZE = 12.0, 10.0, 9.0, 8.0  # points
LONGEST_TEXT = 34
QUALIFIERS_SHOWN = 3

_MARGIN, _FAN, _PADDING = 0.3, 1.0, 0.14
_TRUNK, _BRANCH, _NARROW_MARGIN = 0.2, 0.3, 0.08
_ROW, _HANGING, _GAP = 0.46, 0.3, 0.18


@dataclass(frozen=True)
class Box:
    """A node: an entity or a number, around its centre."""

    x: float
    y: float
    width: float
    height: float
    text: str
    size: float
    is_number: bool = False
    entity: str = ""  # its id, where it is an entity

    @property
    def look(self) -> str:
        return "number" if self.is_number else "entity"


@dataclass(frozen=True)
class Hanging:
    """A qualifier, or what else belongs to an edge: a line from the knot, a label, and a value."""

    y: float
    text_x: float
    label: str
    node: Box | None  # None for the words "… and 2 more"
    is_relation: bool = False  # the fact's own relation and tail, where the entity is the value of a qualifier


@dataclass(frozen=True)
class NeighbourhoodRow:
    """One fact: a curve from the centre to the knot, a labelled edge from there to a node, and what hangs off it."""

    side: int  # 1 to the right of the centre, -1 to its left
    knot: float
    y: float
    label: str
    direction: Direction
    dashed: bool  # the entity is the value of a qualifier of this fact
    node: Box
    hanging: tuple[Hanging, ...]


@dataclass(frozen=True)
class NeighbourhoodLayout:
    """A drawn neighbourhood: its size, and where every box and edge stands."""

    width: float
    height: float
    centre: Box
    rows: tuple[NeighbourhoodRow, ...]
    footnote: str
    label_size: float = LABEL_SIZE
    small_size: float = SMALL_SIZE
    trunk: float | None = None  # in a narrow layout, where the line runs from which every edge branches off


@dataclass(frozen=True)
class _Content:
    """What a row says, before it has a place."""

    label: str
    outer: Value
    direction: Direction
    pairs: tuple[tuple[str, Value], ...]
    more: int

    @property
    def height(self) -> float:
        return _ROW + _HANGING * (len(self.pairs) + bool(self.more)) + _GAP


def laid_out(graph: KnowledgeGraph, facts: EntityFacts, *, narrow: bool = False) -> NeighbourhoodLayout:
    """Facts on both sides of the entity; or, `narrow`, all below it, for the screen of a phone."""
    words = Sentences(graph)
    name = graph.entity_labels[facts.entity]
    contents = [_content(item, graph.vocabulary.entities[facts.entity]) for item in facts.facts]
    title = "\n".join(textwrap.wrap(_short(name, 60), 20)) or " "
    title_width = max(text_width(line, TITLE_SIZE, bold=True) for line in title.split("\n")) + 2 * _PADDING
    title_height = 0.3 + 0.2 * title.count("\n") + _PADDING
    whole = "Its only fact." if facts.total == 1 else f"All its {facts.total:,} facts."
    note = f"{len(facts.facts)} of its {facts.total:,} facts." if facts.left_out else whole
    if narrow:
        margin, rows_high = _NARROW_MARGIN, sum(content.height for content in contents)
        knot = margin + _TRUNK + _BRANCH
        reach = knot + (_side_width(contents, words) - _FAN) + margin
        width = max(reach, 2 * margin + title_width, 2 * margin + text_width(note, SMALL_SIZE))
        height = title_height + rows_high + 3 * margin + 0.25
        centre = Box(
            margin + title_width / 2, height - margin - title_height / 2, title_width, title_height, title, TITLE_SIZE
        )
        top = height - 2 * margin - title_height
        below = _rows(contents, 1, knot, top, words)
        return NeighbourhoodLayout(width, height, centre, tuple(below), note, trunk=margin + _TRUNK)
    sides = _balanced(contents)
    height = max(sum(content.height for content in side) for side in sides) + 2 * _MARGIN + 0.25
    height = max(height, title_height + 2 * _MARGIN + 0.4)
    widths = [_side_width(side, words) for side in sides]
    centre_x = _MARGIN + widths[1] + title_width / 2
    centre = Box(centre_x, height / 2 + 0.1, title_width, title_height, title, TITLE_SIZE)
    rows = []
    for side, part in zip((1, -1), sides, strict=True):
        knot, top = centre.x + side * (centre.width / 2 + _FAN), centre.y + sum(one.height for one in part) / 2
        rows += _rows(part, side, knot, top, words)
    legend = {
        " Round: entities. Square: numbers.": any(_has_number(content) for content in contents),
        " Grey: qualifiers.": any(content.pairs for content in contents),
        " Dashed: it is the value of a qualifier.": any(row.dashed for row in rows),
    }
    footnote = note + "".join(line for line, needed in legend.items() if needed)
    width = max(2 * _MARGIN + widths[0] + widths[1] + title_width, text_width(footnote, SMALL_SIZE) + 2 * _MARGIN)
    return NeighbourhoodLayout(width, height, centre, tuple(rows), footnote)


def _content(item: EntityFact, entity: str) -> _Content:
    fact = item.fact
    pairs = list(fact.qualifiers)
    if item.position == "value":
        through = next(index for index, pair in enumerate(pairs) if pair.value == entity)
        label = pairs.pop(through).relation
        return _hung(label, fact.head, "none", [(fact.relation, fact.tail), *pairs])
    if item.position == "tail":
        return _hung(fact.relation, fact.head, "in", pairs)
    return _hung(fact.relation, fact.tail, "out", pairs)


def _has_number(content: _Content) -> bool:
    return any(isinstance(value, Number) for value in (content.outer, *(value for _, value in content.pairs)))


def _hung(label: str, outer: Value, direction: Direction, pairs: Sequence[tuple[str, Value]]) -> _Content:
    more = max(len(pairs) - QUALIFIERS_SHOWN, 0)
    return _Content(label, outer, direction, tuple(pairs[:QUALIFIERS_SHOWN]), more)


def _balanced(contents: list[_Content]) -> tuple[list[_Content], list[_Content]]:
    """Right and left: few facts all to the right, more so that both sides are about as high."""
    if len(contents) <= 4:
        return contents, []
    half = sum(content.height for content in contents) / 2
    taken, cut = 0.0, 0
    while cut < len(contents) and taken + contents[cut].height / 2 < half:
        taken += contents[cut].height
        cut += 1
    return contents[:cut], contents[cut:]


def _side_width(contents: list[_Content], words: Sentences) -> float:
    if not contents:
        return 0.0
    edge = _edge_length(contents, words)
    main = max(edge + _box_width(words.value(content.outer), NODE_SIZE) for content in contents)
    hanging = [
        0.25
        + text_width(_short(words.relation(relation)), SMALL_SIZE)
        + 0.08
        + _box_width(words.value(value), SMALL_SIZE)
        for content in contents
        for relation, value in content.pairs
    ]
    return _FAN + max([main, *hanging])


def _edge_length(contents: list[_Content], words: Sentences) -> float:
    return max(text_width(_short(words.relation(content.label)), LABEL_SIZE) for content in contents) + 0.4


def _rows(contents: list[_Content], side: int, knot: float, top: float, words: Sentences) -> list[NeighbourhoodRow]:
    if not contents:
        return []
    edge = _edge_length(contents, words)
    rows = []
    for content in contents:
        y = top - _ROW / 2 - _GAP / 2
        top -= content.height
        node = _box(knot + side * edge, y, side, words.value(content.outer), NODE_SIZE, content.outer)
        hanging = []
        for index, (relation, value) in enumerate(content.pairs, start=1):
            below = y - 0.06 - _HANGING * index
            label = _short(words.relation(relation))
            text_x = knot + side * 0.25
            value_x = text_x + side * (text_width(label, SMALL_SIZE) + 0.08)
            box = _box(value_x, below, side, words.value(value), SMALL_SIZE, value)
            hanging.append(Hanging(below, text_x, label, box, index == 1 and content.direction == "none"))
        if content.more:
            below = y - 0.06 - _HANGING * (len(content.pairs) + 1)
            hanging.append(Hanging(below, knot + side * 0.25, f"… and {content.more} more", None))
        label = _short(words.relation(content.label))
        rows.append(
            NeighbourhoodRow(side, knot, y, label, content.direction, content.direction == "none", node, tuple(hanging))
        )
    return rows


def _box(edge: float, y: float, side: int, text: str, size: float, value: Value) -> Box:
    """A node whose near side is at `edge`."""
    width = _box_width(text, size)
    height = size / 72 + 0.13
    entity = "" if isinstance(value, Number) else value
    return Box(edge + side * width / 2, y, width, height, _short(text), size, isinstance(value, Number), entity)


def _box_width(text: str, size: float) -> float:
    return text_width(_short(text), size) + 2 * _PADDING * size / NODE_SIZE


def _short(text: str, longest: int = LONGEST_TEXT) -> str:
    """At most `longest` characters on one line, each of them one that fonts draw."""
    line = "".join(character if character.isprintable() else "·" for character in text)
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
