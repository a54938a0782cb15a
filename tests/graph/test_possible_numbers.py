"""What training says that a relation's numbers can be, and the nearest such number to what a model says."""

from __future__ import annotations

import numpy as np

from hynt import number
from hynt.batches.number_scaling import NumberScaling
from hynt.calibration.intervals import furthest_ends
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import DATE_UNIT
from hynt.graph.possible_numbers import PossibleNumbers


def graph_of(**values):
    facts = [(f"h{index}", name, one) for name, many in values.items() for index, one in enumerate(many)]
    return graph_from_facts({"train": facts})


def test_shares_end_at_a_hundred_percent_where_training_has_that_and_nothing_above():
    graph = graph_of(
        literate=[number(one, "percent") for one in (100, *range(60, 80))],
        grown=[number(one, "percent") for one in range(80, 99)],
        debt=[number(one, "percent") for one in (101, *range(80, 101))],
        index=[100, *range(60, 80)],
    )
    tables = [graph.split("train")]
    possible, scaling = PossibleNumbers.of(graph.vocabulary, tables), NumberScaling.fit(tables, graph.vocabulary)
    relation = np.array([graph.vocabulary.relation_ids[name] for name in ("literate", "grown", "debt", "index")])
    assert possible.nearest(relation, np.full(4, 104.0)).tolist() == [100.0, 104.0, 104.0, 104.0]
    low, high = possible.interval(relation, np.full(4, 100.0), np.full(4, 90.0), np.full(4, 110.0))
    assert low.tolist() == [90.0] * 4
    assert high.tolist() == [100.0, 110.0, 110.0, 110.0]
    assert furthest_ends(graph, tables, scaling)[1, relation[0]] == 100.0


def test_counts_stay_whole_and_never_negative_but_dates_and_the_unknown_stay_free():
    graph = graph_of(
        seats=range(20),
        balance=[index - 1.5 for index in range(20)],
        level=range(-5, 15),
        few=range(9),
        lengths=[number(one, "m") for one in range(9)],
        born=[number(1900.0 + index, DATE_UNIT) for index in range(20)],
    )
    possible = PossibleNumbers.of(graph.vocabulary, [graph.split("train")])
    relation = np.array(
        [graph.vocabulary.relation_ids[name] for name in ("seats", "balance", "level", "few", "lengths", "born")]
    )
    assert possible.nearest(relation, np.full(6, -3.4)).tolist() == [0.0, -3.4, -3.0, -3.0, -3.4, -3.4]
    assert possible.nearest(relation, np.full(6, 7.6)).tolist() == [8.0, 7.6, 8.0, 8.0, 7.6, 7.6]
    low, high = possible.interval(relation, np.zeros(6), np.full(6, -3.4), np.full(6, 7.6))
    assert low.tolist() == [0.0, -3.4, -3.0, -3.0, -3.4, -3.4]  # whole numbers that were inside, and no others
    assert high.tolist() == [7.0, 7.6, 7.0, 7.0, 7.6, 7.6]
    low, high = possible.interval(relation, np.full(6, 3.0), np.full(6, 2.6), np.full(6, 2.9))
    assert (low[0], high[0]) == (3.0, 3.0)  # the answer itself stays inside
