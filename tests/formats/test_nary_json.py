from __future__ import annotations

import json

import pytest

from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.units.dates import decimal_year
from tests.formats.graphs import only_problem, read_text

WIKIPEOPLE = """{"P166_h": "Q7186", "P166_t": "Q38104", "N": 5, \
"P585": ["+1903-01-01T00:00:00Z#0#0#0#9#http://www.wikidata.org/entity/Q1985727"], "P1706": ["Q41269", "Q37463"]}
"""


def test_the_example_of_wikipeople(tmp_path):
    found, report = read_text(WIKIPEOPLE, "nary-json", tmp_path)
    time = "+1903-01-01T00:00:00Z#0#0#0#9#http://www.wikidata.org/entity/Q1985727"
    assert found == [
        Fact(
            "Q7186",
            "P166",
            "Q38104",
            (
                Qualifier("P585", Number(1903.0, time, "date")),
                Qualifier("P1706", "Q41269"),
                Qualifier("P1706", "Q37463"),
            ),
        )
    ]
    assert not report.noted


def test_the_numbered_roles_of_jf17k(tmp_path):
    text = '{"film.cast0": "m.1", "film.cast1": "m.2", "film.cast2": "m.3", "N": 3}\n'
    text += '{"r10": "m.1", "r11": "m.2", "N": 2}\n'
    found, _ = read_text(text, "nary-json", tmp_path)
    assert found == [Fact("m.1", "film.cast", "m.2", (Qualifier("film.cast2", "m.3"),)), Fact("m.1", "r1", "m.2")]


def test_other_roles_take_the_first_two(tmp_path):
    found, _ = read_text('{"person": "Curie", "award": "Nobel", "with": ["Becquerel"]}', "nary-json", tmp_path)
    assert found == [Fact("Curie", "person|award", "Nobel", (Qualifier("with", "Becquerel"),))]


@pytest.mark.parametrize(
    "text, value, unit",
    [
        ("+1903-01-01T00:00:00Z", 1903, "date"),
        ("+1950-00-00T00:00:00Z", 1950, "date"),
        ("-0044-03-15T00:00:00Z", decimal_year(-43, 3, 15), "date"),
        ("+1700-03-15T00:00:00Z#0#0#0#9#http://www.wikidata.org/entity/Q1985727", 1700, "date"),
        ("+1700-03-15T00:00:00Z#0#0#0#10#http://www.wikidata.org/entity/Q1985727", decimal_year(1700, 3), "date"),
        ("+1582-10-05T00:00:00Z#0#0#0#11#http://www.wikidata.org/entity/Q1985786", decimal_year(1582, 10, 15), "date"),
        ("+180", 180, ""),
        ("-1.5#1", -1.5, ""),
        ("+180#http://www.wikidata.org/entity/Q174728", 180, "Q174728"),
    ],
)
def test_times_and_amounts_of_wikidata_are_numbers(tmp_path, text, value, unit):
    found, _ = read_text(json.dumps({"P1_h": "Q1", "P1_t": text, "N": 2}), "nary-json", tmp_path)
    assert found[0].tail == Number(value, text, unit)


@pytest.mark.parametrize(
    "record, reason, what",
    [
        ('{"P1_h": "Q1", "N": 1}', "missing-columns", "1 values where a fact has at least 2."),
        (
            '{"P1_h": "Q1", "P2_t": "Q2"}',
            "bad-primary-pair",
            "the primary pair is not one head and one tail: P1_h, P2_t",
        ),
        (
            '{"P1_h": ["Q1", "Q3"], "P1_t": "Q2"}',
            "bad-primary-pair",
            "the primary pair is not one head and one tail: P1_h, P1_h, P1_t",
        ),
        ('{"P1_h": "+5", "P1_t": "Q2"}', "number-as-head", "the head is a number: +5"),
        ('{"P1_h": "Q1", "P1_t": 5}', "bad-value", "the value of 'P1_t' is a number."),
        ('{"P1_h": "Q1", "P1_t": null}', "bad-value", "the value of 'P1_t' is null."),
        ('{"P1_h": "Q1", "P1_t": ""}', "empty-name", "the value of 'P1_t' is empty."),
        ('{"P1_h": "Q1", "P1_t": "Q2", "P3": []}', "qualifier-without-value", "the role 'P3' has no value."),
        ('{"P1_h": "Q1", "P1_t": "Q2", "": "Q3"}', "empty-name", "the role is empty."),
        (
            '{"P1_h": "Q1", "P1_t": "+5#metres"}',
            "bad-number",
            "'+5#metres' starts as a number and is neither a Wikidata time nor an amount.",
        ),
        ('{"P1_h": "Q1", "P1_t": "+1.2.3"}', "bad-number", "'+1.2.3' is not a number."),
        ('{"P1_h": "Q1", "P1_t": "Q2", "N": "x"}', "wrong-arity", '"N" is a text, but there are 2 values.'),
        ('["P1_h"]', "not-an-object", "a list instead of a JSON object."),
        ('{"P1_h": "Q1", "P1_h": "Q2"}', "duplicate-key", "the key 'P1_h' is given twice."),
        (
            '{"P1_h": "Q1\\u0007", "P1_t": "Q2"}',
            "control-character",
            "the value of 'P1_h' holds the control character U+0007.",
        ),
    ],
)
def test_other_records_are_refused_in_words(tmp_path, record, reason, what):
    where, *rest = only_problem(record, "nary-json", tmp_path)
    assert where == "facts:1"
    assert rest[:2] == [reason, what]
    assert rest[2]


def test_a_wrong_arity_and_an_impossible_date_are_noted_and_refused_when_strict(tmp_path):
    arity = '{"P1_h": "Q1", "P1_t": "Q2", "N": 5}\n'
    date = '{"P1_h": "Q1", "P1_t": "+2016-06-31T00:00:00Z"}\n'
    found, report = read_text(arity + date, "nary-json", tmp_path)
    assert len(found) == 2
    assert report.noted == {"wrong-arity": 1, "impossible-date": 1}
    assert [note.where.rpartition(":")[2] for note in report.notes] == ["1", "2"]
    _, report = read_text(arity + date, "nary-json", tmp_path, strict=True)
    assert report.rejected == {"wrong-arity": 1, "impossible-date": 1}
