from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.formats.tsv import HEADER, read_cell, write_fact
from hynt.formats.values import check_writable
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.units.dates import decimal_year
from tests.formats.graphs import facts, only_problem, read_text


@pytest.mark.parametrize(
    "cell, value",
    [
        ("Q42", "Q42"),
        ("80", "80"),
        ("=80", Number(80.0, "80")),
        ("=80 kg", Number(80.0, "80", "kg")),
        ("=1.5e3 short ton", Number(1500.0, "1.5e3", "short ton")),
        ("=80.0 kg|176.4 lb", Number(80.0, "176.4 lb", "kg")),
        ("=5|", Number(5.0, "", "")),
        ("=5 a\\|b|c\\\\", Number(5.0, "c\\", "a|b")),
        ("@1922-01-28", Number(decimal_year(1922, 1, 28), "1922-01-28", "date")),
        ("@1922", Number(1922.0, "1922", "date")),
        ("@1922-01-28|28 Jan", Number(decimal_year(1922, 1, 28), "28 Jan", "date")),
        ("\\=x", "=x"),
        ("\\@x", "@x"),
        ("a\\tb\\nc\\rd\\\\e", "a\tb\nc\rd\\e"),
        ("a=b@c|d", "a=b@c|d"),
    ],
)
def test_a_mark_says_what_a_cell_is(cell, value):
    assert read_cell(cell) == value


@pytest.mark.parametrize(
    "line, reason, what",
    [
        ("a\tr", "missing-columns", "2 columns where a fact has at least 3: head, relation, tail."),
        ("a\tr\tb\tq", "qualifier-without-value", "the last qualifier, 'q', has no value."),
        ("a\tr\tb\tq\t", "empty-name", "the value of qualifier 1 is empty."),
        ("=80\tr\tb", "number-as-head", "the head is a number: =80"),
        ("@1922\tr\tb", "number-as-head", "the head is a number: @1922"),
        ("a\t=80\tb", "number-as-relation", "a relation is written as a number or a date: =80"),
        ("a\tr\tb\t@1900\tv", "number-as-relation", "a relation is written as a number or a date: @1900"),
        ("a\tr\t=", "bad-number", "'=' is not a number."),
        ("a\tr\t=nan", "bad-number", "'nan' is not a finite number."),
        ("a\tr\t=1e999", "bad-number", "'1e999' is too large for a double-precision number."),
        ("a\tr\t=１２", "bad-number", "'１２' is written with characters that are not ASCII."),
        ("a\tr\t=80kg", "bad-number", "'80kg' is not a number."),
        ("a\tr\t=80 ", "bad-number", "'=80 ' is not a number."),
        (
            "a\tr\t@2016-20-11",
            "bad-date",
            "impossible date: year 2016, month 20, day 11 is not in the Gregorian calendar.",
        ),
        ("a\tr\t@soon", "bad-date", "'soon' is not a date."),
        ("a\tr\t@", "bad-date", "'@' is not a date."),
        ("a\tr\tb\\x", "bad-escape", "\\x is not an escape."),
        ("a\tr\tb\\", "bad-escape", "a backslash ends the cell."),
    ],
)
def test_bad_lines_are_refused_in_words(tmp_path, line, reason, what):
    where, *rest = only_problem(line, "tsv", tmp_path)
    assert where == "facts:1"
    assert rest[:2] == [reason, what]
    assert rest[2]


def test_a_header_is_known_on_the_first_line_only(tmp_path):
    found, _ = read_text(f"{HEADER}\tqualifiers\nhead\trelation\ttail\n", "tsv", tmp_path)
    assert found == [Fact("head", "relation", "tail")]
    found, _ = read_text(f"{HEADER}\r\n\r\na\tr\t=1\tq\t@1900\r\n", "tsv", tmp_path)
    assert found == [Fact("a", "r", Number(1.0, "1"), (Qualifier("q", Number(1900.0, "1900", "date")),))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(facts, max_size=5))
def test_every_fact_reads_back_as_it_was(tmp_path, given_facts):
    text = "\n".join([HEADER, *map(write_fact, given_facts)])
    found, report = read_text(text, "tsv", tmp_path)
    assert found == given_facts
    assert not report.rejected


@pytest.mark.parametrize(
    "fact, what",
    [
        (Fact("a\x1b", "r", "b"), "the head holds the control character U+001B."),
        (Fact("a", "", "b"), "the relation is empty."),
        (Fact("a", "r", "\ud800"), "the tail holds half a character (U+D800, a lone surrogate)."),
        (
            Fact("a", "r", "b", (Qualifier("q", Number(1.0, "1", "\0")),)),
            "the qualifier value holds the control character U+0000.",
        ),
    ],
)
def test_names_that_no_file_may_hold_are_refused_before_writing(fact, what):
    with pytest.raises(DataError) as error:
        check_writable(fact, where="out/train.tsv")
    assert what in str(error.value)
    assert str(error.value).startswith("out/train.tsv: cannot write Fact(")
