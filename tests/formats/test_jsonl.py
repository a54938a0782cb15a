from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hynt.formats.jsonl import write_fact
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.units.dates import decimal_year
from tests.formats.graphs import facts, only_problem, read_text


def record(tail='"b"', more=""):
    return f'{{"head": "a", "relation": "r", "tail": {tail}{more}}}'


@pytest.mark.parametrize(
    "text, value",
    [
        ('"b"', "b"),
        ('"80"', "80"),
        ("80", Number(80.0, "80")),
        ("-1.50E+2", Number(-150.0, "-1.50E+2")),
        ('{"number": 80, "unit": "kg"}', Number(80.0, "80", "kg")),
        ('{"number": 80.0, "unit": "kg", "literal": "176.4 lb"}', Number(80.0, "176.4 lb", "kg")),
        ('{"date": "1922-01-28"}', Number(decimal_year(1922, 1, 28), "1922-01-28", "date")),
        ('{"date": "1922", "literal": "in 1922"}', Number(1922.0, "in 1922", "date")),
        ('"\\u00e9\\n"', "é\n"),
    ],
)
def test_the_kind_of_a_value_is_said_by_json(tmp_path, text, value):
    found, _ = read_text(record(text), "jsonl", tmp_path)
    assert found == [Fact("a", "r", value)]


@pytest.mark.parametrize(
    "qualifiers",
    [
        '[["q", "x"], ["q", 5], ["s", "y"]]',
        '{"q": ["x", 5], "s": "y"}',
        '[{"relation": "q", "value": "x"}, ["q", 5], {"value": "y", "relation": "s"}]',
    ],
)
def test_qualifiers_have_three_shapes(tmp_path, qualifiers):
    found, _ = read_text(record(more=f', "qualifiers": {qualifiers}'), "jsonl", tmp_path)
    assert found[0].qualifiers == (Qualifier("q", "x"), Qualifier("q", Number(5.0, "5")), Qualifier("s", "y"))


@pytest.mark.parametrize(
    "line, reason, what",
    [
        ("{", "bad-json", "no valid JSON at character 2: Expecting property name enclosed in double quotes."),
        ("[]", "not-an-object", "a list instead of a JSON object."),
        ('{"head": "a", "tail": "b"}', "missing-key", "the key 'relation' is missing."),
        (record(more=', "qualifier": []'), "unknown-key", "the key 'qualifier' is not known here."),
        (record(more=', "split": "test"'), "unknown-key", "the key 'split' is not read: a file holds one split."),
        (record(more=', "head": "c"'), "duplicate-key", "the key 'head' is given twice."),
        (record("NaN"), "bad-number", "'NaN' is not a finite number."),
        (record("-Infinity"), "bad-number", "'-Infinity' is not a finite number."),
        (record("1e999"), "bad-number", "'1e999' is too large for a double-precision number."),
        (record("9" * 5000), "bad-number", "a number of 5000 characters is too long."),
        (record("[" * 100_000), "too-deep", "the JSON is nested too deeply."),
        (record("true"), "bad-value", "the tail is true or false."),
        (record("null"), "bad-value", "the tail is null."),
        (record("[1]"), "bad-value", "the tail is a list."),
        (record('""'), "empty-name", "the tail is empty."),
        (record("{}"), "bad-value", "the tail is an object with neither a number nor a date."),
        (record('{"number": "80"}'), "bad-value", "the tail is an object with neither a number nor a date."),
        (record('{"number": 80, "unti": "kg"}'), "unknown-key", "the key 'unti' is not known here."),
        (record('{"number": 80, "unit": 5}'), "bad-value", "the unit or literal of the tail is not a text."),
        (
            record('{"date": "1922-13-01"}'),
            "bad-date",
            "impossible date: year 1922, month 13, day 1 is not in the Gregorian calendar.",
        ),
        (record('{"date": 1922}'), "bad-value", "the tail is an object with neither a number nor a date."),
        ('{"head": 5, "relation": "r", "tail": "b"}', "number-as-head", "the head is a number: 5"),
        ('{"head": "a", "relation": {}, "tail": "b"}', "bad-value", "the relation is an object."),
        ('{"head": "", "relation": "r", "tail": "b"}', "empty-name", "the head is empty."),
        (record(more=', "qualifiers": "q"'), "bad-value", "the qualifiers are a text."),
        (
            record(more=', "qualifiers": [["q"]]'),
            "qualifier-without-value",
            "a qualifier is not a pair of a relation and a value.",
        ),
        (
            record(more=', "qualifiers": [{"relation": "q"}]'),
            "qualifier-without-value",
            "a qualifier is not a pair of a relation and a value.",
        ),
        (record(more=', "qualifiers": [[5, "x"]]'), "bad-value", "the qualifier relation is a number."),
        (record('"\\u0000"'), "control-character", "the tail holds the control character U+0000."),
        (record('"\\ud800"'), "not-unicode", "the tail holds half a character (U+D800, a lone surrogate)."),
        (
            record('{"number": 1, "unit": "\\u001b"}'),
            "control-character",
            "the tail holds the control character U+001B.",
        ),
    ],
)
def test_other_records_are_refused_in_words(tmp_path, line, reason, what):
    where, *rest = only_problem(line, "jsonl", tmp_path)
    assert where == "facts:1"
    assert rest[:2] == [reason, what]
    assert rest[2]


def test_a_misspelt_key_is_answered_with_the_nearest(tmp_path):
    *_, advice = only_problem(record(more=', "qualifier": []'), "jsonl", tmp_path)
    assert advice == "Did you mean qualifiers? Known here: head, relation, tail, qualifiers."


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(facts, max_size=5))
def test_every_fact_reads_back_as_it_was(tmp_path, given_facts):
    lines = [write_fact(fact) for fact in given_facts]
    assert all(isinstance(json.loads(line), dict) for line in lines)
    found, report = read_text("\n".join(lines), "jsonl", tmp_path)
    assert found == given_facts
    assert not report.rejected


def test_numbers_are_written_plainly_where_they_can_be():
    weight = Fact("a", "weight", Number(80.0, "80", "kg"), (Qualifier("in", Number(1922.0, "1922", "date")),))
    assert write_fact(weight) == (
        '{"head": "a", "relation": "weight", "tail": {"number": 80, "unit": "kg"}, '
        '"qualifiers": [["in", {"date": "1922"}]]}'
    )
    assert write_fact(Fact("é", "r", Number(1.5, "1.50"))) == '{"head": "é", "relation": "r", "tail": 1.50}'
