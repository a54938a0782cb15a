"""A fact's key forgets the order of qualifiers and the spelling of numbers, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.graph.fact import Fact, Number, Qualifier, fact, number
from tests.graph.fact_strategies import facts


@given(facts(), st.randoms())
def test_key_forgets_the_order_of_qualifiers(made, random):
    shuffled = list(made.qualifiers)
    random.shuffle(shuffled)
    assert made._replace(qualifiers=tuple(shuffled)).key() == made.key()


@given(facts())
def test_key_counts_repeated_qualifiers(made):
    again = made._replace(qualifiers=(*made.qualifiers, Qualifier("role", "place/0")))
    twice = made._replace(qualifiers=(*made.qualifiers, Qualifier("role", "place/0"), Qualifier("role", "place/0")))
    assert len({made.key(), again.key(), twice.key()}) == 3


def test_key_compares_numbers_by_value():
    one = Fact("a", "height", Number(80.0, "80", "kg"))
    same = Fact("a", "height", Number(80.0, "8e1", "kg"))
    assert one.key() == same.key()
    assert Fact("a", "r", number(0.0)).key() == Fact("a", "r", number(-0.0)).key()


def test_an_entity_spelled_like_a_number_is_not_the_number():
    assert fact("a", "r", "80").key() != fact("a", "r", 80).key()


def test_a_fact_from_plain_values():
    made = fact("Harvard Law School", "students count", 1990, [("point in time", 2020), ("source", "report")])
    assert made.tail == Number(1990.0, "1990")
    assert made.qualifiers == (Qualifier("point in time", Number(2020.0, "2020")), Qualifier("source", "report"))


@pytest.mark.parametrize("wrong", [True, None, [1], b"x"])
def test_a_value_of_another_type_is_refused(wrong):
    with pytest.raises(TypeError, match="a value is a string, a number or a hynt Number"):
        fact("a", "r", wrong)
