"""Facts as people write them, in the names, kinds and units of a graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hynt
from hynt.asking.fitting import fitted_facts
from hynt.errors import DataError
from hynt.graph.units.conversion import with_display
from hynt.runs.journal import GraphChange
from tests.training.small_graph import small_graph


@pytest.fixture
def heights_in_cm():
    """The small graph with heights that are kept in metres and shown in centimetres."""
    graph = small_graph()
    relations = tuple(
        one._replace(unit=with_display("m", "cm")) if one.name == "height" else one for one in graph.relations
    )
    return replace(graph, vocabulary=replace(graph.vocabulary, relations=relations))


def test_what_changed_is_told_in_the_units_that_people_read(heights_in_cm):
    change = GraphChange(added=tuple(fitted_facts(heights_in_cm, [("Zoe", "height", "1.71 m")])))
    assert change.told(heights_in_cm, change.applied(heights_in_cm)) == ["+ Zoe · height · 171 cm"]


@pytest.mark.parametrize("written", [171, "171", "1,710"])
def test_a_number_that_may_be_in_either_of_two_units_is_refused(heights_in_cm, written):
    with pytest.raises(DataError) as refusal:
        list(fitted_facts(heights_in_cm, [("Zoe", "height", written)]))
    number = str(written).replace(",", "")
    assert str(refusal.value) == (
        f"fact 1, height: 'height' is shown in cm and kept in m, and {number} says neither. "
        f"Write it with its unit: {number} cm, or {number} m."
    )


def test_a_number_that_says_its_unit_or_is_told_as_kept_is_taken(heights_in_cm):
    given = [("Zoe", "height", one) for one in ("171 cm", "1.71 m", hynt.number(171, "cm"))]
    assert [fact.tail.value for fact in fitted_facts(heights_in_cm, given)] == [1.71] * 3
    (kept,) = fitted_facts(heights_in_cm, [("Zoe", "height", 1.71)], as_kept=True)  # what is to go, as it was exported
    assert kept.tail.value == 1.71
    (age,) = fitted_facts(heights_in_cm, [("Zoe", "knows", "person 1", [("year", 2001)])])
    assert age.qualifiers[0].value.value == 2001  # without a unit there is nothing to doubt


def test_a_name_that_several_have_is_settled_by_where_it_stands():
    facts = [("t0", "P30", "c0"), ("t1", "P17", "r0"), ("t1", "P30", "c1"), ("t0", "P1", "t1", [("P30", "c0")])]
    labels = {"c0": "Europe", "r0": "Europe", "c1": "Asia"}
    graph = hynt.graph_from_facts(facts, labels=labels, relation_labels={"P30": "continent", "P17": "region"})
    (fact,) = fitted_facts(graph, [("t2", "continent", "Europe", [("continent", "europe")])])
    assert (fact.tail, [value for _, value in fact.qualifiers]) == ("c0", ["c0"])
    for given in (("t2", "visited", "Europe"), ("Europe", "continent", "t2")):
        with pytest.raises(DataError, match="fact 1: 2 entities are called 'Europe'"):
            list(fitted_facts(graph, [given]))
