"""What stands at each place of a graph, against a slow look at every fact."""

from __future__ import annotations

import numpy as np
import pytest

from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact_table import NUMBER_KIND, RELATION_KIND, components, position_group
from hynt.graph.seen_values import SeenValues
from tests.town_graph import town_graph


def seen_slowly(graph, sort):
    found: dict[tuple[int, int], set[int]] = {}
    for table in graph.splits.values():
        parts = components(table, graph.vocabulary.relation_is_number)
        groups = position_group(parts.position).tolist()
        for group, kind, relation, entity in zip(groups, parts.kind, parts.relation, parts.entity, strict=True):
            if kind != NUMBER_KIND:
                place = (group, int(sort[relation]) if kind == RELATION_KIND else int(relation))
                found.setdefault(place, set()).add(int(relation if kind == RELATION_KIND else entity))
    return found


@pytest.mark.parametrize("sorted_by_kind", [True, False])
def test_every_place_holds_what_a_slow_look_finds(sorted_by_kind):
    graph = town_graph()
    is_number = graph.vocabulary.relation_is_number
    sort = is_number.astype(np.int64) if sorted_by_kind else np.zeros(len(is_number), dtype=np.int64)
    seen = SeenValues.of(graph.splits.values(), is_number, sort if sorted_by_kind else None)
    slow = seen_slowly(graph, sort)
    assert len(seen.key) == len(slow)
    for (group, beside), values in slow.items():
        relation = int(np.flatnonzero(sort == beside)[0]) if group % 2 else beside
        assert seen.at(group, relation).tolist() == sorted(values)
        keys = seen.keys(np.array([group, group + 2 if group > 2 else group]), np.array([relation, relation]))
        assert seen.sizes(keys).tolist() == [len(values)] * 2
        assert np.flatnonzero(seen.mask(keys, graph.vocabulary.entity_count)[0]).tolist() == sorted(values)
        assert set(seen.draw(np.repeat(keys, 200), 0).tolist()) <= values
    tails = {value for (group, _), values in slow.items() if group == 2 for value in values}
    assert set(seen.under_any_relation(2).tolist()) == tails


def test_a_place_that_no_fact_has_is_empty():
    graph = graph_from_facts({"train": [("a", "r", "b")]})
    seen = graph.seen_in_training
    assert seen.at(0, 0).tolist() == [0]
    assert seen.at(4, 0).tolist() == []
    nothing = SeenValues.of([], graph.vocabulary.relation_is_number)
    assert nothing.at(0, 0).tolist() == []
    assert nothing.sizes(np.array([3, 5])).tolist() == [0, 0]
