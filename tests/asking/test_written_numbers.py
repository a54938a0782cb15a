"""Numbers as people write them: units are converted, dates are dates, and what is wrong is told."""

from __future__ import annotations

import datetime

import pytest

from hynt import number
from hynt.asking.written import is_written_number, number_for
from hynt.errors import UsageError
from hynt.graph.units.dates import decimal_year
from hynt.graph.vocabulary import Relation

MASS = Relation("mass", "number", "kg")
COUNT = Relation("students count", "number", "1")
BARE = Relation("score", "number")
PRICE = Relation("price", "number", "USD")
SHARE = Relation("share", "number", "percent")
WHEN = Relation("point in time", "number", "date")


@pytest.mark.parametrize(
    "relation,written,value",
    [
        (MASS, "80", 80.0),
        (MASS, "80 kg", 80.0),
        (MASS, "80kg", 80.0),
        (MASS, "500 g", 0.5),
        (MASS, 80, 80.0),
        (MASS, number(500, "g"), 0.5),
        (MASS, number(3), 3.0),
        (COUNT, "1990", 1990.0),
        (COUNT, "1,990", 1990.0),
        (MASS, "−1,234,567.5 kg", -1234567.5),
        (BARE, "-1.5e3", -1500.0),
        (SHARE, "12.5 %", 12.5),
        (PRICE, "$60,000", 60000.0),
        (PRICE, "-US$ 2.50", -2.5),
        (PRICE, "$1.2m", 1.2e6),
        (WHEN, "1995-06", decimal_year(1995, 6)),
        (WHEN, "1995", 1995.0),
        (WHEN, "30.06.1995", decimal_year(1995, 6, 30)),
        (WHEN, "Jun 30, 1995", decimal_year(1995, 6, 30)),
        (WHEN, 1995, 1995.0),
        (WHEN, datetime.date(1995, 6, 30), decimal_year(1995, 6, 30)),
        (WHEN, "-0043-03-15", decimal_year(-43, 3, 15)),
    ],
)
def test_numbers_come_in_the_relations_unit(relation, written, value):
    found = number_for(relation, written, "tail")
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.unit == relation.unit


@pytest.mark.parametrize(
    "relation,written,word",
    [
        (MASS, "heavy", "'mass' holds numbers, and 'heavy' is not a number."),
        (MASS, "nan", "'nan' is not a number"),
        (MASS, "1,99", "unknown unit ',99'"),
        (WHEN, "c. 1850", "'c. 1850' says about when, which a graph cannot hold."),
        (MASS, "80 furlongz", "unknown unit 'furlongz'"),
        (MASS, "80 m", "cannot become kg"),
        (MASS, float("inf"), "inf is not a finite number"),
        pytest.param(MASS, 10**400, "a whole number is too large for a double-precision number", id="400 digits"),
        pytest.param(MASS, -(10**5000), "a whole number is too large for a double-precision number", id="5000 digits"),
        (MASS, True, "True is not a number"),
        (MASS, datetime.date(1995, 6, 1), "'mass' holds no dates"),
        (COUNT, "5 kg", "'students count' has no unit, but 'kg' was given"),
        (WHEN, "June 1995", "'June 1995' is not a date"),
        (WHEN, "1995-13", "impossible date"),
        (WHEN, number(5, "kg"), "a number in 'kg' is not a value of 'point in time'"),
        (BARE, "1e999", "too large"),
    ],
)
def test_what_is_no_value_is_told(relation, written, word):
    with pytest.raises(UsageError) as problem:
        number_for(relation, written, "tail")
    assert word in problem.value.what
    assert problem.value.where == "tail"
    assert problem.value.advice


def test_the_form_of_a_number_is_known_without_a_relation():
    assert all(is_written_number(text) for text in ("80 kg", "1995-06", "1990", "1,990 m", "-3.5", 7))
    assert not any(is_written_number(text) for text in ("Japan", "12 monkeys", "1,99", "kg"))
