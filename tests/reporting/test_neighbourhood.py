"""The picture: nothing overlaps, everything lies inside, and it is the same every time."""

from __future__ import annotations

from itertools import combinations

import pytest

from hynt.graph.entity_facts import facts_of
from hynt.graph.fact import Number, fact
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.reporting.neighbourhood import PICTURED_FACTS, Box, NeighbourhoodLayout, draw_neighbourhood, laid_out
from tests.graph.small_graphs import assembled


def neighbourhood(count: int) -> KnowledgeGraph:
    """An entity with many facts at all three positions, long names, and up to five qualifiers."""
    facts = [fact("centre", "is", "itself")]
    for at in range(count):
        qualifiers = [(f"qualifier {number}", float(at * number)) for number in range(at % 6)]
        facts += [
            fact("centre", f"relation with a fairly long name {at}", Number(at * 1e6, str(at), "m2"), qualifiers),
            fact(f"head number {at} " + "x" * at, f"points to {at}", "centre", qualifiers[:2]),
            fact(f"other {at}", "knows", f"friend {at}", [(f"thanks to {at}", "centre"), *qualifiers[:1]]),
        ]
    return assembled({"train": facts})


def boxes(layout: NeighbourhoodLayout) -> list[Box]:
    nodes = [row.node for row in layout.rows]
    hanging = [item.node for row in layout.rows for item in row.hanging if item.node is not None]
    return [layout.centre, *nodes, *hanging]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 12])
def test_nothing_overlaps_and_all_lies_inside(count, narrow):
    graph = neighbourhood(count)
    found = facts_of(graph, graph.vocabulary.entity_ids["centre"], limit=PICTURED_FACTS)
    layout = laid_out(graph, found, narrow=narrow)
    for box in boxes(layout):
        assert box.width / 2 <= box.x <= layout.width - box.width / 2, box
        assert box.height / 2 <= box.y <= layout.height - box.height / 2, box
    for first, second in combinations(boxes(layout), 2):
        apart_x = abs(first.x - second.x) >= (first.width + second.width) / 2
        apart_y = abs(first.y - second.y) >= (first.height + second.height) / 2
        assert apart_x or apart_y, (first, second)
    assert len(layout.rows) == min(PICTURED_FACTS, found.total)


def test_it_says_how_many_facts_are_left_out():
    graph = neighbourhood(12)
    found = facts_of(graph, graph.vocabulary.entity_ids["centre"], limit=PICTURED_FACTS)
    assert laid_out(graph, found).footnote.startswith("12 of its 37 facts.")
    assert {item.position for item in found.facts} == {"head", "tail", "value"}


def test_the_same_facts_give_the_same_file(tmp_path):
    graph = neighbourhood(3)
    found = facts_of(graph, graph.vocabulary.entity_ids["centre"])
    for suffix in (".svg", ".png", ".pdf"):
        for name in ("first", "second"):
            draw_neighbourhood(graph, found, tmp_path / f"{name}{suffix}")
        assert (tmp_path / f"first{suffix}").read_bytes() == (tmp_path / f"second{suffix}").read_bytes()


def test_names_that_look_like_formulas_or_have_no_glyph_are_drawn(tmp_path):
    graph = assembled({"train": [fact("$\\frac{1}{2", "東京 $x_1$", "\x00\n\u202e"), fact("$\\frac{1}{2", "r", 1e300)]})
    found = facts_of(graph, 0)
    draw_neighbourhood(graph, found, tmp_path / "odd.png")
    assert (tmp_path / "odd.png").stat().st_size > 1000
