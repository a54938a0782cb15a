"""Dates as decimal years: the rule, its inverse, every spelling, and the released HN-YG values."""

from __future__ import annotations

import datetime
import math
import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.graph.units.dates import (
    CalendarDate,
    DatePrecision,
    ImpossibleDate,
    UnreadableDate,
    decimal_year,
    format_date,
    is_leap_year,
    julian_to_gregorian,
    lenient_decimal_year,
    parse_iso_date,
    parse_wikidata_time,
    to_calendar,
)

MONTH_LENGTHS = {1: 31, 2: 28, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31}


def days_of(year: int) -> list[tuple[int, int]]:
    """Every (month, day) of a year, written without the code under test."""
    leap = year % 400 == 0 or (year % 4 == 0 and year % 100 != 0)
    return [
        (month, day) for month, length in MONTH_LENGTHS.items() for day in range(1, length + 1 + (leap and month == 2))
    ]


def test_the_rule_counts_days_from_zero_and_leap_years() -> None:
    assert decimal_year(1922, 1, 28) == 1922 + 27 / 365
    assert decimal_year(2016, 12, 31) == 2016 + 365 / 366
    assert decimal_year(1922) == 1922.0
    assert decimal_year(1922, 3) == decimal_year(1922, 3, 1) == 1922 + 59 / 365
    assert decimal_year(0, 12, 31) == 365 / 366, "year 0, which is 1 BCE, is a leap year"
    assert decimal_year(-43, 3, 15) == -43 + 73 / 365
    assert decimal_year(-4_540_000_000) == -4.54e9


@pytest.mark.parametrize("year", [-10_000, -9_999, -401, -400, -44, -1, 0, 1, 4, 1900, 2000, 2023, 2024, 9_999, 10_000])
def test_every_day_comes_back_and_grows(year: int) -> None:
    before = decimal_year(year - 1, 12, 31)
    for month, day in days_of(year):
        value = decimal_year(year, month, day)
        assert before < value
        assert to_calendar(value) == CalendarDate(year, month, day, "day")
        assert to_calendar(value, "month") == CalendarDate(year, month, None, "month")
        assert to_calendar(value, "year") == CalendarDate(year, None, None, "year")
        before = value


@given(st.dates())
def test_agrees_with_the_standard_library(date: datetime.date) -> None:
    value = decimal_year(date.year, date.month, date.day)
    length = 366 if is_leap_year(date.year) else 365
    assert value == date.year + (date.timetuple().tm_yday - 1) / length
    assert format_date(value) == date.isoformat()
    assert parse_iso_date(date.isoformat()) == (value, "day")


@given(st.integers(-10_000, 10_000), st.data())
def test_format_and_parse_are_inverse_at_each_precision(year: int, data: st.DataObject) -> None:
    month, day = data.draw(st.sampled_from(days_of(year)))
    cases: list[tuple[float, DatePrecision]] = [
        (decimal_year(year, month, day), "day"),
        (decimal_year(year, month), "month"),
        (decimal_year(year), "year"),
    ]
    for value, precision in cases:
        assert parse_iso_date(format_date(value, precision)) == (value, precision)


def test_a_predicted_number_is_told_as_the_day_it_lies_in() -> None:
    day = 1 / 365
    assert format_date(1922 + 27.4 * day) == "1922-01-28"
    assert format_date(1922 + 27.6 * day) == "1922-01-28"
    assert format_date(1922 + 27.9999 * day) == "1922-01-29"  # nine seconds before midnight: the noise of arithmetic
    assert format_date(1922 + 364.7 * day) == "1922-12-31"
    assert format_date(1922 + 364.7 * day, "year") == "1922"
    assert format_date(-4_540_000_000.0, "year") == "-4540000000"
    assert format_date(12_000.0) == "+12000-01-01"
    assert format_date(-42.8, "month") == "-0043-03"
    for value in (math.nan, math.inf):
        with pytest.raises(UnreadableDate, match=r"is not a decimal year\. A date needs a finite number\."):
            to_calendar(value)


@pytest.mark.parametrize(
    "text", ["2024-01-01 10:00", "2024-01-01 10:05", "2024-12-31 23:58:59", "0001-06-05 00:01", "9999-02-28 12:00:01"]
)
def test_a_time_of_day_is_kept_and_comes_back(text: str) -> None:
    value, precision = parse_iso_date(text)
    assert precision == "time"
    assert format_date(value, precision) == text
    assert format_date(value) == text[:10]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1922", (1922.0, "year")),
        ("971-01-01", (971.0, "day")),
        ("+12000", (12000.0, "year")),
        ("1922+02:00", (1922.0, "year")),
        ("1922-05:00", (1922.0, "year")),
        ("1922-05", (decimal_year(1922, 5), "month")),
        ("1922-05Z", (decimal_year(1922, 5), "month")),
        ("1922-01-28", (decimal_year(1922, 1, 28), "day")),
        ("1922-01-28T23:59:60.5+14:00", (decimal_year(1922, 1, 28, 86400.5 / 86400), "time")),
        ("1922-01-28T24:00:00Z", (decimal_year(1922, 1, 29), "day")),
        ("1922-01-28 12:30", (decimal_year(1922, 1, 28, 12.5 / 24), "time")),
        ("2024-01-01T00:00:00Z", (2024.0, "day")),
        ("-0043-03-15", (decimal_year(-43, 3, 15), "day")),
        ("0000", (0.0, "year")),
        ("-4540000000", (-4.54e9, "year")),
        ("1949-##-##", (1949.0, "year")),
        ("1949-##-25", (1949.0, "year")),
        ("1949-12-##", (decimal_year(1949, 12), "month")),
    ],
)
def test_iso_spellings(text: str, expected: tuple[float, str]) -> None:
    assert parse_iso_date(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "１９２２",
        "1922-1-28",
        "1922-01-28T25:00:00",
        "1922-01-28+15:00",
        " 1922",
        "1922\n",
        "1922-01-28Tnoon",
        "28.01.1922",
        "nan",
        "1e3",
        "1922-01-28-01",
        "9" * 16,
        "9" * 100_000,
        "##",
        "-",
        "+-5",
        "1922-W05",
        "1922-028",
    ],
)
def test_what_is_no_date_is_refused_in_short_words(text: str) -> None:
    with pytest.raises(UnreadableDate) as caught:
        parse_iso_date(text)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, DataError)
    assert len(str(caught.value)) < 200


def test_open_digits_of_a_year_are_refused_with_their_reason() -> None:
    with pytest.raises(
        UnreadableDate, match=r"'194#-##-##' leaves digits of its year open\. A date needs a whole year\."
    ):
        parse_iso_date("194#-##-##")


@given(st.text(alphabet="0123456789-+#:TZ. １", max_size=24))
def test_any_text_gives_a_finite_number_or_a_date_error(text: str) -> None:
    for parse in (parse_iso_date, parse_wikidata_time):
        try:
            value, precision = parse(text)
        except UnreadableDate as error:
            assert str(error)
        else:
            assert math.isfinite(value)
            assert precision in ("day", "month", "year")


def test_an_impossible_date_carries_the_released_value() -> None:
    with pytest.raises(ImpossibleDate) as caught:
        parse_iso_date("2016-20-11")
    assert caught.value.lenient_value == 2016 + 376 / 366
    assert str(caught.value) == (
        "impossible date: year 2016, month 20, day 11 is not in the Gregorian calendar. Correct the month or the day."
    )
    for text in ("1900-02-29", "2023-02-30", "2023-04-31", "2023-00-10", "2023-01-00", "2023-13"):
        with pytest.raises(ImpossibleDate):
            parse_iso_date(text)
    assert lenient_decimal_year(2023, 2, 30) == decimal_year(2023, 3, 2), "a day too many rolls on"
    assert lenient_decimal_year(2023, 0, 0) == 2023.0


@given(st.integers(-10_000, 10_000), st.data())
def test_the_lenient_rule_is_the_rule_where_a_date_exists(year: int, data: st.DataObject) -> None:
    month, day = data.draw(st.sampled_from(days_of(year)))
    assert lenient_decimal_year(year, month, day) == decimal_year(year, month, day)


def test_a_day_needs_a_month() -> None:
    with pytest.raises(ValueError, match="a day needs its month"):
        decimal_year(1922, None, 5)


@pytest.mark.parametrize(
    ("text", "precision", "expected"),
    [
        ("+00000002011-01-01T00:00:00Z", None, (2011.0, "day")),
        ("+1999-00-00T00:00:00Z", None, (1999.0, "year")),
        ("+1999-07-00T00:00:00Z", None, (decimal_year(1999, 7), "month")),
        ("+1999-07-00T00:00:00Z", 11, (decimal_year(1999, 7), "month")),
        ("+1999-07-05T00:00:00Z", 11, (decimal_year(1999, 7, 5), "day")),
        ("+1999-07-05T00:00:00Z", 14, (decimal_year(1999, 7, 5), "day")),
        ("+1999-07-05T00:00:00Z", 10, (decimal_year(1999, 7), "month")),
        ("+1999-07-05T00:00:00Z", 9, (1999.0, "year")),
        ("+1801-01-01T00:00:00Z", 7, (1801.0, "year")),
        ("-0044-03-15T00:00:00Z", 11, (decimal_year(-43, 3, 15), "day")),
        ("-0001-00-00T00:00:00Z", 9, (0.0, "year")),
        ("-13798000000-00-00T00:00:00Z", 3, (-13797999999.0, "year")),
        ("+1900-02-29T00:00:00Z", 9, (1900.0, "year")),
    ],
)
def test_wikidata_times(text: str, precision: int | None, expected: tuple[float, str]) -> None:
    assert parse_wikidata_time(text, precision) == expected


def test_wikidata_times_that_are_refused() -> None:
    with pytest.raises(UnreadableDate, match=r"'1999' is not a Wikidata time\. Expected a time like"):
        parse_wikidata_time("1999")
    with pytest.raises(UnreadableDate, match="15 is not a Wikidata time precision"):
        parse_wikidata_time("+1999-01-01T00:00:00Z", 15)
    with pytest.raises(UnreadableDate, match=r"has year 0, which Wikidata's count lacks\. 1 BCE is -0001"):
        parse_wikidata_time("+0000-01-01T00:00:00Z")
    with pytest.raises(ImpossibleDate, match="not in the Gregorian calendar"):
        parse_wikidata_time("+1900-02-29T00:00:00Z", 11)
    with pytest.raises(ImpossibleDate, match="not in the Julian calendar"):
        parse_wikidata_time("+1901-02-29T00:00:00Z", 11, julian=True)


@pytest.mark.parametrize(
    ("julian", "gregorian"),
    [
        ((1582, 10, 5), (1582, 10, 15)),  # the day the calendars parted
        ((1917, 10, 25), (1917, 11, 7)),  # the October Revolution
        ((1616, 4, 23), (1616, 5, 3)),  # Shakespeare's death
        ((1900, 2, 29), (1900, 3, 13)),
        ((-43, 3, 15), (-43, 3, 13)),  # the Ides of March
        ((-4712, 1, 1), (-4713, 11, 24)),  # Julian day number 0
        ((0, 1, 3), (0, 1, 1)),
    ],
)
def test_julian_days_known_from_history(julian: tuple[int, int, int], gregorian: tuple[int, int, int]) -> None:
    assert julian_to_gregorian(*julian) == gregorian


def test_julian_days_follow_each_other_without_gap() -> None:
    for start in (-5_000, -1, 99, 1_582, 4_000):
        previous = julian_to_gregorian(start - 1, 12, 31)
        for year in range(start, start + 9):
            for month, length in MONTH_LENGTHS.items():
                for day in range(1, length + 1 + (month == 2 and year % 4 == 0)):
                    current = julian_to_gregorian(year, month, day)
                    assert current == next_day(previous)
                    previous = current


def next_day(date: tuple[int, int, int]) -> tuple[int, int, int]:
    year, month, day = date
    days = days_of(year)
    place = days.index((month, day)) + 1
    return (year, *days[place]) if place < len(days) else (year + 1, 1, 1)


def test_every_date_of_hn_yg_agrees_with_the_released_files(shared_data: Path) -> None:
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    impossible = []
    for split in ("train", "valid", "test"):
        raw, normalised = (shared_data / "HN-YG" / kind / f"{split}.txt" for kind in ("raw", "normalized"))
        with raw.open(encoding="utf-8") as raw_lines, normalised.open(encoding="utf-8") as normalised_lines:
            for written, scaled in zip(raw_lines, normalised_lines, strict=True):
                tokens, released = written.rstrip("\n").split("\t"), scaled.rstrip("\n").split("\t")
                for place in range(2, len(tokens), 2):
                    literal = re.fullmatch(r'"([^"]*)"\^\^xsd:date', tokens[place])
                    if literal is None:
                        continue
                    try:
                        value = parse_iso_date(literal[1])[0]
                    except ImpossibleDate as error:
                        impossible.append(literal[1])
                        value = error.lenient_value
                    pairs[tokens[place - 1]].append((value, float(released[place])))
    assert impossible == ["2016-20-11"]
    assert sum(len(values) for values in pairs.values()) == 25_754
    for relation, values in pairs.items():
        low, high = min(value for value, _ in values), max(value for value, _ in values)
        worst = max(abs((value - low) / (high - low) - released) for value, released in values)
        assert worst < 1e-12, relation
