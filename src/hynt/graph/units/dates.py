"""Calendar dates as decimal years, and back.

    decimal year = year + (day of the year - 1 + share of the day gone by) / days in that year

in the proleptic Gregorian calendar with astronomical years (0 is 1 BCE, -43 is 44 BCE; the leap rule holds there too).
A year alone is its first day, a month alone its first day. The value grows strictly with the day and can be turned back
into it. `docs/reference/units-and-dates.md` says the rules with examples.
"""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple, TypeAlias

from hynt.errors import DataError
from hynt.names import shortened

DatePrecision: TypeAlias = Literal["time", "day", "month", "year"]

_DAYS_BEFORE = (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)
_DAYS_BEFORE_LEAP = (0, 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366)
_ISO_ADVICE = "Write it as 1922, 1922-01 or 1922-01-28; a year before 1 CE as -0043 (0000 is 1 BCE)."

_TIME = r"(?:[T ]((?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:\.[0-9]+)?)?|24:00(?::00(?:\.0+)?)?))?"
_DAY = 86_400.0
_SAME = 30 / _DAY  # of a day: nearer to midnight than this, a decimal year is that of a day alone
_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
# At most 15 digits of year: every such whole number is exact in a float.
_ISO = re.compile(rf"([+-]?[0-9]{{1,15}})(?:-([0-9]{{2}}|##)(?:-([0-9]{{2}}|##){_TIME})?)?{_ZONE}")
_LARGEST_WITH_TIME = 1e5
"""Years beyond which a double has no room for a time of day."""
_WILDCARD_YEAR = re.compile(r"[+-]?[0-9]*#[0-9#]*(?:-(?:[0-9]{2}|##)){0,2}")
_WIKIDATA = re.compile(r"([+-]?)([0-9]{1,15})-([0-9]{2})-([0-9]{2})(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?")


class UnreadableDate(DataError, ValueError):
    """A text that is no date in the form asked for."""


class ImpossibleDate(UnreadableDate):
    """A well written date that no calendar has, such as month 20.

    `lenient_value` is its decimal year by `lenient_decimal_year`, for formats that keep such a date and report it.
    """

    def __init__(self, year: int, month: int, day: int, calendar: str = "Gregorian") -> None:
        self.lenient_value = lenient_decimal_year(year, month, day)
        self.precision: DatePrecision = "day"
        super().__init__(
            f"impossible date: year {year}, month {month}, day {day} is not in the {calendar} calendar.",
            advice="Correct the month or the day.",
        )


class CalendarDate(NamedTuple):
    """A date with what is known of it; month and day are None where the precision leaves them out."""

    year: int
    month: int | None
    day: int | None
    precision: DatePrecision


def is_leap_year(year: int) -> bool:
    """Whether an astronomical year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def decimal_year(year: int, month: int | None = None, day: int | None = None, share: float = 0.0) -> float:
    """The decimal year of a day, of a month's first day, or of a year's first day; `share` of the day has gone by."""
    if month is None:
        if day is not None:
            raise ValueError("a day needs its month")
        return float(year)
    days_before = _DAYS_BEFORE_LEAP if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else _DAYS_BEFORE
    if day is None:
        day = 1
    if not (1 <= month <= 12 and 1 <= day <= days_before[month + 1] - days_before[month]):
        raise ImpossibleDate(year, month, day)
    return year + (days_before[month] + day - 1 + share) / days_before[13]


def lenient_decimal_year(year: int, month: int, day: int) -> float:
    """The decimal year of a date that need not exist, by the rule that the authors' released files follow.

    All days of the months before the given one count, and only twelve months have days: "2016-20-11" is
    2016 + (366 + 10) / 366.
    Equal to `decimal_year` for dates that exist. A month or day below 1 counts as the first.
    """
    days_before = _DAYS_BEFORE_LEAP if is_leap_year(year) else _DAYS_BEFORE
    return year + (days_before[min(max(month, 1), 13)] + max(day, 1) - 1) / days_before[13]


def to_calendar(value: float, precision: DatePrecision = "day") -> CalendarDate:
    """The day that a decimal year lies in; month and year are those of that day."""
    if not math.isfinite(value):
        raise UnreadableDate(f"{value} is not a decimal year.", advice="A date needs a finite number.")
    year = math.floor(value)
    days_before = _DAYS_BEFORE_LEAP if is_leap_year(year) else _DAYS_BEFORE
    day_index = math.floor((value - year) * days_before[13] + _SAME)
    if day_index == days_before[13]:
        year, day_index = year + 1, 0
    if precision == "year":
        return CalendarDate(year, None, None, precision)
    month = 1 + day_index // 32  # never too late, and at most one month too early
    if days_before[month + 1] <= day_index:
        month += 1
    if precision == "month":
        return CalendarDate(year, month, None, precision)
    return CalendarDate(year, month, day_index - days_before[month] + 1, precision)


def time_of_day(value: float) -> str:
    """The time that a decimal year carries, as 10:05 or 10:05:30; "" where it is that of a day alone."""
    year = math.floor(value)
    days = 366 if is_leap_year(year) else 365
    share = (value - year) * days + _SAME
    if abs(value) > _LARGEST_WITH_TIME or (share - math.floor(share)) < 2 * _SAME:
        return ""
    seconds = round((share - math.floor(share) - _SAME) * _DAY)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{text}:{seconds % 60:02d}" if seconds % 60 else text


def format_date(value: float, precision: DatePrecision = "day") -> str:
    """The date of a decimal year as ISO 8601: 1922-01-28, 1922-01, 1922, -0043-03-15, +12000-01-01."""
    year, month, day, _ = to_calendar(value, precision)
    text = f"-{-year:04d}" if year < 0 else f"{year:04d}" if year <= 9999 else f"+{year}"
    if month is not None:
        text += f"-{month:02d}"
    if day is not None:
        text += f"-{day:02d}"
    time = time_of_day(value) if precision == "time" else ""
    return f"{text} {time}" if time else text


def parse_iso_date(text: str) -> tuple[float, DatePrecision]:
    """A date, month or year in ISO 8601 or XML Schema 1.1 spelling, as a decimal year and its precision.

    Astronomical years; years of fewer than four digits are read too. The time zone is checked and dropped: day and time
    of day count as written. YAGO's `1949-##-##` is a year, `1949-12-##` a month.
    """
    found = _ISO.fullmatch(text)
    if found is None:
        raise _unreadable(text)
    year, month, day, time = found.groups()
    if month is None or month == "##":
        return float(int(year)), "year"
    if day is None or day == "##":
        return decimal_year(int(year), int(month)), "month"
    share = (
        sum(float(part) * size for part, size in zip(time.split(":"), (3600, 60, 1), strict=False)) / _DAY
        if time
        else 0
    )
    return decimal_year(int(year), int(month), int(day), share), "time" if share % 1 else "day"


def parse_wikidata_time(
    text: str, precision: int | None = None, *, julian: bool = False
) -> tuple[float, DatePrecision]:
    """A Wikidata time such as `+1999-00-00T00:00:00Z` or `-0044-03-15T00:00:00Z`, as a decimal year and its precision.

    Wikidata has no year 0: -44 is 44 BCE, astronomical -43. `precision` is Wikidata's code: 11 and more is a day, 10 a
    month, 9 and less a year; what lies below it is ignored. Month and day 00 are unknown, whatever the precision says.
    `julian` says that the calendar model is Q1985786: a day is then converted to the Gregorian calendar.
    """
    found = _WIKIDATA.fullmatch(text)
    if found is None or (precision is not None and not 0 <= precision <= 14):
        what = (
            f"{shortened(text, 40)!r} is not a Wikidata time"
            if found is None
            else f"{precision} is not a Wikidata time precision"
        )
        raise UnreadableDate(
            f"{what}.", advice="Expected a time like +1999-12-31T00:00:00Z and a precision from 0 to 14."
        )
    sign, digits, month_digits, day_digits = found.groups()
    year, month, day = int(digits), int(month_digits), int(day_digits)
    if year == 0:
        raise UnreadableDate(
            f"{shortened(text, 40)!r} has year 0, which Wikidata's count lacks.", advice="1 BCE is -0001 there."
        )
    if sign == "-":
        year = 1 - year
    if month == 0 or (precision is not None and precision < 10):
        return float(year), "year"
    if day == 0 or precision == 10:
        return decimal_year(year, month), "month"
    if julian:
        year, month, day = julian_to_gregorian(year, month, day)
    return decimal_year(year, month, day), "day"


def julian_to_gregorian(year: int, month: int, day: int) -> tuple[int, int, int]:
    """A day of the Julian calendar (astronomical year) in the proleptic Gregorian calendar."""
    days_before = _DAYS_BEFORE_LEAP if year % 4 == 0 else _DAYS_BEFORE
    if not (1 <= month <= 12 and 1 <= day <= days_before[month + 1] - days_before[month]):
        raise ImpossibleDate(year, month, day, "Julian")
    # Days since 1 January of year 0, Gregorian; that day is 3 January of year 0 in the Julian calendar.
    days = 365 * year + (year + 3) // 4 + days_before[month] + day - 1 - 2
    # Whole 400-year cycles have 146,097 days; inside one, guess the year from below and step on.
    cycles, rest = divmod(days, 146_097)
    in_cycle = rest // 366
    while _days_to_year(in_cycle + 1) <= rest:
        in_cycle += 1
    gregorian_year = 400 * cycles + in_cycle
    day_index = rest - _days_to_year(in_cycle)
    days_before = _DAYS_BEFORE_LEAP if is_leap_year(gregorian_year) else _DAYS_BEFORE
    gregorian_month = next(number for number in range(12, 0, -1) if days_before[number] <= day_index)
    return gregorian_year, gregorian_month, day_index - days_before[gregorian_month] + 1


def _days_to_year(year: int) -> int:
    """Days from 1 January of year 0 to 1 January of a year from 0 on, Gregorian."""
    return 365 * year + (year + 3) // 4 - (year + 99) // 100 + (year + 399) // 400


def _unreadable(text: str) -> UnreadableDate:
    shown = repr(shortened(text, 40))
    if _WILDCARD_YEAR.fullmatch(text[:64]):
        return UnreadableDate(f"{shown} leaves digits of its year open.", advice="A date needs a whole year.")
    return UnreadableDate(f"{shown} is not a date.", advice=_ISO_ADVICE)
