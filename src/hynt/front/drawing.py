"""Pictures of results, in one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hynt.explanation.explanations import Explanation
from hynt.files import check_place, write_whole
from hynt.graph.entity_facts import EntityFacts
from hynt.trends.trends import Trend

TABLE = ".csv"


def draw(found: Trend | Explanation | EntityFacts, *out: str | os.PathLike[str]) -> None:
    """Draws a trend, an explanation or the facts around an entity to one or more files, .png or .svg; facts also as
    .pdf. A trend is written as a table to a file that ends in .csv.

    >>> hynt.draw(run.trends("Brazil", "total fertility rate", points=5), "brazil.svg", "brazil.csv")
    >>> hynt.draw(run.explain("Japan", "capital", "?"), "why.png")
    >>> hynt.draw(graph["Japan"], "japan.svg")
    """
    paths = [Path(one) for one in out]
    check_drawing(paths, with_table=isinstance(found, Trend), of_facts=isinstance(found, EntityFacts))
    if isinstance(found, EntityFacts):
        _draw_facts(found, paths)
        return
    made = [(path, _content(found, path.suffix.lower())) for path in paths]  # all are made before one is written
    for path, content in made:
        write_whole(path, content)


def check_drawing(
    out: Sequence[Path], *, with_table: bool = False, of_facts: bool = False, argument: str = "out"
) -> None:
    """Refuses what cannot be drawn, or not there, before any work is done."""
    from hynt.reporting import neighbourhood
    from hynt.reporting.scales import SUFFIXES, check_drawable, suffix_of

    drawn = neighbourhood.SUFFIXES if of_facts else SUFFIXES
    for path in out:
        if suffix_of(path, (*drawn, TABLE) if with_table else drawn, argument) != TABLE:
            check_drawable(argument)
        check_place(path, argument)


def _draw_facts(found: EntityFacts, paths: Sequence[Path]) -> None:
    """Of many facts, as many as a picture holds."""
    from hynt.graph.entity_facts import facts_of
    from hynt.reporting.neighbourhood import PICTURED_FACTS, draw_neighbourhood

    few = facts_of(found.graph, found.entity, limit=PICTURED_FACTS, positions=tuple(found.counts))
    for path in paths:
        draw_neighbourhood(found.graph, few, path)


def _content(found: Trend | Explanation, suffix: str) -> bytes:
    from hynt.reporting.scales import picture

    if isinstance(found, Explanation):
        from hynt.reporting.explanation_chart import explanation_figure

        return picture(explanation_figure(found), suffix)
    if suffix == TABLE:
        from hynt.reporting.trend_chart import trend_csv

        return trend_csv(found)
    from hynt.reporting.trend_chart import trend_figure

    return picture(trend_figure(found), suffix)
