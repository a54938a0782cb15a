"""How numbers move over time, for the report: a panel for each of a few relations, of the head with the most values."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from hynt.asking.predictor import Predictor
from hynt.errors import UsageError
from hynt.graph.fact import DATE_UNIT
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.reporting.charts_svg_trend import KnownPoint, TrendDrawing, TrendPoint, trend_chart
from hynt.reporting.page_html import Markup, element, joined
from hynt.reporting.page_tables import figure, legend, section
from hynt.trends.trends import Series, Trend, difference_text, trend

PANELS = 6
ENOUGH = 4
"""Values of one head over time from which on a curve says something."""
HELD_OUT = 2
"""Of them held out, from which on a series is no better for having more."""
A_RELATION = 2
POINTS = 60

KEYS = (("after", "predicted"), ("band", "its interval"), ("trained", "trained on"), ("held", "held out"))


def trends_section(predictor: Predictor, split: str) -> Markup:
    """Panels with the values of training and of `split`; nothing where the graph holds no number over time."""
    panels: list[Markup] = []
    for head, relation in heads_over_time(predictor.graph, split):
        try:
            found = trend(
                predictor,
                predictor.graph.vocabulary.entities[head],
                predictor.graph.relations[relation].name,
                points=POINTS,
            )
        except UsageError:  # this model answers no numbers, or all values stand at one date: no curve to draw
            continue
        panels.append(trend_figure(f"trend-{len(panels)}", found, found.series[0], split))
        if len(panels) == PANELS:
            break
    if not panels:
        return Markup("")
    lead = (
        "What the run answers along time, with its 90 % interval, beside what the graph knows. Values held out were "
        f"never trained on; those shown are of the {split} split."
    )
    return section(
        "trends",
        "How values move over time",
        element("p", lead, class_="lead"),
        legend(KEYS),
        element("div", *panels, class_="charts"),
    )


def heads_over_time(graph: KnowledgeGraph, split: str) -> list[tuple[int, int]]:
    """(head, relation) with many values under a date in train and `split`: first one head of each relation, then a
    second one. Series with values held out come first, because those say how good a curve is.
    """
    train, held = (_dated(graph, name) for name in ("train", split))
    couples = np.unique(train)
    trained, kept = (np.searchsorted(np.sort(part), [couples, couples + 1]) for part in (train, held))
    trained, kept = np.diff(trained, axis=0)[0], np.diff(kept, axis=0)[0]
    order = np.lexsort((couples, -(trained + kept), -np.minimum(kept, HELD_OUT)))
    turns: Counter[int] = Counter()
    found: list[tuple[int, int, int]] = []
    for place in order[(trained + kept)[order] >= ENOUGH].tolist():
        head, relation = divmod(int(couples[place]), graph.vocabulary.relation_count)
        if turns[relation] < A_RELATION:
            found.append((turns[relation], head, relation))
            turns[relation] += 1
    return [(head, relation) for _, head, relation in sorted(found, key=lambda one: one[0])]


def _dated(graph: KnowledgeGraph, split: str) -> NDArray[np.int64]:
    """(n,) head and relation in one number, for each fact of a split whose tail is a number and that carries a date."""
    table, is_number = graph.split(split), graph.vocabulary.relation_is_number
    is_date = np.array([relation.unit == DATE_UNIT for relation in graph.relations], dtype=np.bool_)
    rows = np.unique(table.qualifier_owner()[is_date[table.qualifier_relation]])
    rows = rows[is_number[table.relation[rows]]]
    return table.head[rows] * np.int64(graph.vocabulary.relation_count) + table.relation[rows]


def trend_figure(identity: str, found: Trend, one: Series, split: str) -> Markup:
    """One head's panel, with what it says in words."""
    shown = [place for place in range(len(one.at)) if one.trained_on[place] or one.split[place] == split]
    title = f"{one.name}: {found.relation_name}{f' ({found.condition})' if found.condition else ''}"
    ends = [(None, None)] * len(found.at)
    if one.curve.low is not None and one.curve.high is not None:
        ends = list(zip(one.curve.low.tolist(), one.curve.high.tolist(), strict=True))
    drawn = TrendDrawing(
        title,
        found.unit,
        found.over_name,
        found.over_unit,
        [
            TrendPoint(at, value, low, high)
            for at, value, (low, high) in zip(found.at.tolist(), one.curve.value.tolist(), ends, strict=True)
        ],
        [KnownPoint(float(one.at[at]), float(one.known[at]), bool(one.trained_on[at])) for at in shown],
        found.training_range,
    )
    held = [place for place in shown if not one.trained_on[place]]
    error = float(np.abs(one.known - one.predicted.value)[held].mean()) if held else None
    caption = "No value of this series was held out."
    if error is not None:
        count = "one held-out value" if len(held) == 1 else f"{len(held)} held-out values"
        caption = f"Mean error of {count}: {difference_text(error, found.unit)}."
    return figure(trend_chart(identity, drawn), joined([element("b", title), caption]))
