"""Facts, numbers and dates as people read them."""

from __future__ import annotations

import datetime

import pytest

from hynt.formats.from_python import graph_from_facts
from hynt.graph.assembly import Assembler
from hynt.graph.encoding import RelationDeclaration
from hynt.graph.fact import DATE_UNIT, Number, fact
from hynt.graph.sentences import Sentences, format_moment, format_number, format_quantity, format_stored
from hynt.graph.units.dates import decimal_year, parse_iso_date
from hynt.graph.vocabulary import Entity


@pytest.mark.parametrize(
    "value, text",
    [
        (1990, "1,990"),
        (0, "0"),
        (-0.0, "0"),
        (88.2, "88.2"),
        (1234567.0, "1,234,567"),
        (0.5570001, "0.557"),
        (-44.5, "−44.5"),
        (80.0136940611, "80.0137"),
        (1_000_000.25, "1,000,000"),
        (987_654.321, "987,654.32"),
        (299792.458, "299,792.46"),
        (3.14159265, "3.14159"),
        (6.02214076e23, "6.02214 × 10²³"),
        (-1.6e-19, "−1.6 × 10⁻¹⁹"),
        (0.00012345678, "0.000123457"),
        (99999.96, "99,999.96"),
    ],
)
def test_numbers(value, text):
    assert format_number(value) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (2024.0, "2024"),
        (794.0, "794"),
        (-43.0, "44 BCE"),
        (0.0, "1 BCE"),
        (-3_000_000_000.0, "3,000,000,001 BCE"),
        (decimal_year(1922, 1, 28), "1922-01-28"),
        (decimal_year(-43, 3, 15), "44-03-15 BCE"),
        (decimal_year(2024, 12, 31), "2024-12-31"),
        (decimal_year(794, 5, 2), "0794-05-02"),
    ],
)
def test_dates(value, text):
    assert format_moment(value) == text


@pytest.mark.parametrize(
    "value, unit, text",
    [
        (80, "kg", "80 kg"),
        (12.5, "percent", "12.5 %"),
        (1, "year", "1 year"),
        (88.2, "year", "88.2 years"),
        (377_975e6, "m2", "377,975,000,000 m²"),
        (9.8, "m/s2", "9.8 m/s²"),
        (7, "", "7"),
        (1990, "", "1990"),
        (-1990, "1", "−1990"),
        (1990.5, "", "1,990.5"),
        (10_000, "", "10,000"),
        (1990, "m", "1,990 m"),
        (2020, "date", "2020"),
        (0.00684, "1/year", "0.00684 per year"),
        (3, "1/m2", "3 per m²"),
    ],
)
def test_quantities(value, unit, text):
    assert format_quantity(value, unit) == text


def test_a_fact_on_one_line():
    details = {"Q17": Entity("Q17", "Japan"), "Q6581072": Entity("Q6581072", "female")}
    one = fact(
        "Q17", "P2250", Number(88.2, "88.2", "year"), [("P585", Number(2024.0, "2024", "date")), ("P21", "Q6581072")]
    )
    bare = fact("Q17", "P30", "Asia")
    with Assembler(details=details) as assembler:
        for name, label in (("P2250", "life expectancy"), ("P585", "point in time"), ("P21", "sex")):
            assembler.encoder.declare_relation(RelationDeclaration(name, label=label))
        assembler.add(one)
        assembler.add(bare)
        sentences = Sentences(assembler.finish().to_graph())
    assert sentences.fact(one) == "Japan · life expectancy · 88.2 years (point in time 2024; sex female)"
    assert sentences.fact(bare) == "Japan · P30 · Asia"


@pytest.mark.parametrize("text", ["1952", "1952-03", "1952-03-11", "2024-05-01 10:05"])
def test_a_date_is_told_with_the_precision_it_came_with(text):
    value, _ = parse_iso_date(text)
    assert format_stored(Number(value, text, DATE_UNIT)) == text
    assert format_stored(Number(value, "as the source spelt it", DATE_UNIT))[:4] == text[:4]


def test_times_of_one_day_are_two_numbers_in_a_graph():
    rows = [("shop", "opened", datetime.datetime(2024, 1, 1, 10, minute, tzinfo=datetime.UTC)) for minute in (0, 5)]
    graph = graph_from_facts({"train": rows})
    first, second = (fact.tail for fact in graph.facts())
    assert second.value - first.value == pytest.approx(5 / 60 / 24 / 366, rel=1e-6)
    told = [Sentences(graph).fact(fact) for fact in graph.facts()]
    assert told == ["shop · opened · 2024-01-01 10:00", "shop · opened · 2024-01-01 10:05"]
