"""The part of the report that says what the graph is: counts, kinds of relations, the spread of its numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hynt.graph.entity_facts import EntityFacts, facts_of
from hynt.graph.fact_table import FactTable, component_starts, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import NumberSummary, SortedNumbers, sorted_numbers, summarise_numbers
from hynt.graph.sentences import Sentences, format_quantity
from hynt.graph.statistics import count_table
from hynt.graph.vocabulary import spaced
from hynt.markup import Column, Content, Markup, Row, definitions, element, figure, joined, long_table, section
from hynt.reporting.charts_svg import distribution, drawing, histogram_chart, share_bar, words
from hynt.reporting.neighbourhood import (
    PICTURED_FACTS,
    SMALL_SIZE,
    Box,
    NeighbourhoodLayout,
    NeighbourhoodRow,
    laid_out,
)

LONGEST_HISTOGRAM = 8
MOST_RELATIONS = 12
SPREADS = 5
MOST_DRAWN = 5000
"""Numbers of a relation in one drawing; more are thinned out evenly, which no bar would show."""


def graph_section(graph: KnowledgeGraph) -> Markup:
    """Counts, kinds, and how the numbers lie."""
    table_of_all = concatenate(list(graph.splits.values()))
    counts = count_table(table_of_all, graph)
    origin = [graph.manifest.source, graph.manifest.licence]
    pairs: list[tuple[str, Content]] = [
        ("facts", f"{counts.facts:,}"),
        ("with qualifiers", f"{counts.facts_with_qualifiers:,}"),
        ("qualifiers", f"{counts.qualifier_uses:,}"),
        ("entities", f"{counts.entities:,}"),
        ("relations to entities", f"{counts.entity_relations:,}"),
        ("relations to numbers", f"{counts.number_relations:,}"),
        ("distinct numbers", f"{counts.number_literals:,}"),
        *((f"facts in {name}", f"{len(split):,}") for name, split in graph.splits.items()),
    ]
    return section(
        "graph",
        "The graph",
        definitions(pairs),
        element("div", _qualifiers(table_of_all), *_spreads(graph, table_of_all), class_="charts"),
        _relations(graph, table_of_all),
        lead=" · ".join(part for part in origin if part),
    )


def _qualifiers(facts: FactTable) -> Markup:
    capped = np.bincount(np.minimum(facts.qualifier_counts(), LONGEST_HISTOGRAM), minlength=1).tolist()
    rows = [(f"{size}+" if size == LONGEST_HISTOGRAM else str(size), int(count)) for size, count in enumerate(capped)]
    title = "Facts by number of qualifiers"
    return figure(histogram_chart("qualifier-counts", title, rows, "qualifiers of a fact"), title)


def _spreads(graph: KnowledgeGraph, facts: FactTable) -> list[Markup]:
    """The spread of the numbers of the relations that have most."""
    numbers = sorted_numbers(facts, graph.vocabulary.relation_is_number)
    most = np.argsort(-numbers.size, kind="stable")[:SPREADS]
    return [_spread(graph, numbers, int(place)) for place in most]


def _spread(graph: KnowledgeGraph, numbers: SortedNumbers, place: int) -> Markup:
    relation, start, size = (int(column[place]) for column in (numbers.present, numbers.start, numbers.size))
    named, label = graph.relations[relation], graph.relation_labels[relation]
    values = spaced(numbers.value[start : start + size], MOST_DRAWN)
    chart = distribution(f"spread-{relation}", f"Numbers of {label}", values.tolist(), named.unit)
    middle = format_quantity(float(numbers.value[start + size // 2]), named.unit)
    return figure(chart, f"{label}: {size:,} numbers, median {middle}")


def _relations(graph: KnowledgeGraph, facts: FactTable) -> Markup:
    """All relations with their kind, unit, how often they are used, and the range of their numbers."""
    uses = np.bincount(facts.relation, minlength=len(graph.relations))
    as_qualifier = np.bincount(facts.qualifier_relation, minlength=len(graph.relations))
    summaries = {one.relation: one for one in summarise_numbers(facts, graph.vocabulary.relation_is_number)}
    order = np.argsort(-(uses + as_qualifier), kind="stable").tolist()
    most = int((uses + as_qualifier).max()) if len(order) else 1
    columns = [
        Column("relation"),
        Column("kind"),
        Column("as relation", "number"),
        Column("as qualifier", "number"),
        Column("", "bar"),
        Column("from", "number"),
        Column("to", "number"),
    ]
    rows = []
    for relation in order:
        named = graph.relations[relation]
        look = "fill number" if named.kind == "number" else "fill"
        share = (uses[relation] + as_qualifier[relation]) / max(most, 1)
        rows.append(
            Row(
                [
                    joined([graph.relation_labels[relation], element("small", named.description)])
                    if named.description
                    else graph.relation_labels[relation],
                    _kind(named.kind, named.unit),
                    f"{uses[relation]:,}",
                    f"{as_qualifier[relation]:,}",
                    share_bar(float(share), look),
                    *_range(summaries.get(relation), named.unit),
                ]
            )
        )
    return long_table("Relations, the most used first", columns, rows, MOST_RELATIONS, "more relations")


def _kind(kind: str, unit: str) -> str:
    if kind == "entity":
        return "entities"
    return "dates" if unit == "date" else f"numbers{f', {unit}' if unit not in ('', '1') else ''}"


def _range(summary: NumberSummary | None, unit: str) -> tuple[str, str]:
    if summary is None:
        return "", ""
    return format_quantity(summary.minimum, unit), format_quantity(summary.maximum, unit)


def neighbourhood_section(graph: KnowledgeGraph, entity: int) -> Markup:
    """The facts around one entity, drawn."""
    facts = facts_of(graph, entity, limit=PICTURED_FACTS)
    name = graph.entity_labels[entity]
    return section(
        "neighbourhood",
        "What its facts look like",
        element(
            "div",
            neighbourhood_drawing(graph, facts),
            class_="scroll picture",
            tabindex=0,
            role="region",
            aria_label=f"Drawing of facts around {name}",
        ),
        lead=f"Facts around {name}, the way the model reads them: qualifiers hang off the edge that they qualify.",
    )


def best_known(graph: KnowledgeGraph, count: int) -> list[int]:
    """The first `count` heads of train by how many different relations they have; of equals those with more qualified
    facts come first.
    """
    train = graph.split("train")
    width = np.int64(graph.vocabulary.relation_count)
    couples = np.unique(train.head * width + train.relation)
    relations = np.bincount(couples // width, minlength=graph.vocabulary.entity_count)
    components = np.bincount(train.head, np.diff(component_starts(train)), minlength=graph.vocabulary.entity_count)
    order = np.lexsort((-components, -relations))
    found: list[int] = order[relations[order] > 0][:count].tolist()
    return found


# The picture of a neighbourhood as inline SVG, in the colours of the page: light or dark, and text that can be read
# out. The layout is that of `neighbourhood_layout`.

INCH = 88.0
"""Drawing units per inch of the layout: text of 10 points comes out as large as the text of the page."""


def neighbourhood_drawing(
    graph: KnowledgeGraph, facts: EntityFacts, leads: Callable[[str], str] | None = None, *, narrow: bool = False
) -> Markup:
    """These facts of an entity around it, or below it; `leads` says where the other entities lead, by their id."""
    layout = laid_out(graph, facts, narrow=narrow)
    sentences = Sentences(graph)
    told = "; ".join(sentences.fact(one.fact) for one in facts.facts)
    parts = [_row(layout, row, leads) for row in layout.rows]
    parts.append(_box(layout, layout.centre, "centre"))
    parts.append(words(layout.footnote, layout.width / 2 * INCH, (layout.height - 0.12) * INCH, "footnote"))
    size = (round(layout.width * INCH), round(layout.height * INCH))
    title = f"Facts around {graph.entity_labels[facts.entity]}"
    look = "chart neighbourhood narrow" if narrow else "chart neighbourhood"
    return drawing("neighbourhood-drawing", title, f"{told}.", joined(parts), size, look, leads is None)


def _row(layout: NeighbourhoodLayout, row: NeighbourhoodRow, leads: Callable[[str], str] | None) -> Markup:
    side = row.side
    edge = layout.centre.x + side * layout.centre.width / 2
    start, knot, outer = _x(edge), _x(row.knot), _x(row.node.x - side * row.node.width / 2)
    top, y = _y(layout, layout.centre.y), _y(layout, row.y)
    middle = (start + knot) / 2
    look = "edge dashed" if row.dashed else "edge"
    if layout.trunk is None:
        curve = f"M{start:.1f} {top:.1f}C{middle:.1f} {top:.1f} {middle:.1f} {y:.1f} {knot:.1f} {y:.1f}H{outer:.1f}"
    else:
        trunk, below = _x(layout.trunk), _y(layout, layout.centre.y - layout.centre.height / 2)
        curve = f"M{trunk:.1f} {below:.1f}V{y - 10:.1f}Q{trunk:.1f} {y:.1f} {trunk + 10:.1f} {y:.1f}H{outer:.1f}"
    parts = [
        element("path", d=curve, class_=look, fill="none"),
        words(row.label, (knot + outer) / 2, y - 6, "edge-name"),
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
        parts.append(words(item.label, text_x, at + 4, "qualifier", "start" if side > 0 else "end"))
        if item.node is not None:
            parts.append(_box(layout, item.node, item.node.look, leads))
    parts.append(_box(layout, row.node, row.node.look, leads))
    return joined(parts)


def _box(layout: NeighbourhoodLayout, box: Box, look: str, leads: Callable[[str], str] | None = None) -> Markup:
    width, height = box.width * INCH, box.height * INCH
    x, y = _x(box.x), _y(layout, box.y)
    rounding = 2.0 if look == "number" else min(height / 2, 14.0)
    lines = box.text.split("\n")
    size = box.size / 72 * INCH
    first = y + size * 0.36 - (len(lines) - 1) * size * 0.62
    small = " small" if box.size <= SMALL_SIZE else ""
    texts = [words(line, x, first + index * size * 1.24, f"node {look}{small}") for index, line in enumerate(lines)]
    shape = element(
        "rect", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=rounding, class_=f"box {look}"
    )
    return element("a", shape, *texts, href=leads(box.entity)) if leads and box.entity else joined([shape, *texts])


def _arrow(x: float, y: float, side: int) -> str:
    return f"M{x:.1f} {y:.1f}l{-side * 8} -4v8z"


def _x(inches: float) -> float:
    return inches * INCH


def _y(layout: NeighbourhoodLayout, inches: float) -> float:
    """The layout counts from the bottom, a drawing from the top."""
    return (layout.height - inches) * INCH
