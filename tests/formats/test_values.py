from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import RecordProblem
from hynt.formats.values import check_finite, looks_like_number, parse_number


@pytest.mark.parametrize(
    "text, value",
    [("80", 80), ("-0.5", -0.5), ("+1.2e6", 1.2e6), (".5", 0.5), ("5.", 5), ("0e-999", 0), ("1E3", 1000), ("007", 7)],
)
def test_decimal_and_scientific_numbers_are_read(text, value):
    assert parse_number(text) == value
    assert looks_like_number(text)


@pytest.mark.parametrize(
    "text, what",
    [
        ("", "a number is empty."),
        ("nan", "'nan' is not a finite number."),
        ("-Infinity", "'-Infinity' is not a finite number."),
        ("1e999", "'1e999' is too large for a double-precision number."),
        ("1e-999", "'1e-999' is too close to zero for a double-precision number."),
        ("１２", "'１２' is written with characters that are not ASCII."),
        ("−44", "'−44' is written with characters that are not ASCII."),
        ("0x10", "'0x10' is not a number."),
        ("1_000", "'1_000' is not a number."),
        ("1,000", "'1,000' is not a number."),
        (" 1", "' 1' is not a number."),
        ("1\n", "'1\\n' is not a number."),
        ("1" * 401, "a number of 401 characters is too long."),
        ("x" * 80, "'" + "x" * 57 + "...' is not a number."),
    ],
)
def test_everything_else_is_refused_in_words(text, what):
    with pytest.raises(RecordProblem) as problem:
        parse_number(text)
    assert problem.value.reason == "bad-number"
    assert problem.value.what == what
    assert problem.value.advice == "Write a finite decimal number in ASCII, such as 80, -0.5 or 1.2e6."


@pytest.mark.parametrize(
    "text, answer", [("nan", True), ("１２", True), ("-inf", True), ("12a", False), ("Q42", False)]
)
def test_broken_numbers_still_look_like_numbers(text, answer):
    assert looks_like_number(text) is answer


def test_parsed_numbers_are_finite():
    assert check_finite(1.5, "1.5") == 1.5
    with pytest.raises(RecordProblem, match="'NaN' is not a finite number"):
        check_finite(float("nan"), "NaN")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back_from_its_spelling(value):
    assert parse_number(repr(value)) == value


@given(st.text(max_size=20))
def test_nothing_but_a_finite_float_comes_out(text):
    try:
        value = parse_number(text)
    except RecordProblem as problem:
        assert problem.reason == "bad-number"
    else:
        assert abs(value) < float("inf")
        assert text.isascii()
        assert looks_like_number(text)
