"""Numbers as they stand on an axis: short, and alike along the axis."""

from __future__ import annotations

import math

from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_moment, format_number, format_quantity
from hynt.graph.units.dates import to_calendar

_WORDS = ((1e12, " T"), (1e9, " B"), (1e6, " M"), (1e3, " k"))
_FEW_YEARS = 3.0
_LONG_NUMBER = 1e5


def axis_text(value: float, unit: str, span: float) -> str:
    """A tick: `2010`, `2010-06` where the axis spans few years, `1.5 M`, `0.25`."""
    if unit == DATE_UNIT:
        return _date(value, span)
    size = max(abs(value), span)
    if size < _LONG_NUMBER:
        return format_number(_rounded(value, span))
    for factor, word in _WORDS:
        if size >= factor:
            return f"{format_number(_rounded(value / factor, span / factor))}{word if value else ''}"
    return format_number(value)


def unit_text(unit: str) -> str:
    """A unit as it stands behind the name of an axis: `years`, `m²`; nothing for dates and plain numbers."""
    if unit in ("", "1", DATE_UNIT):
        return ""
    return format_quantity(2.0, unit).removeprefix("2").strip()


def _date(value: float, span: float) -> str:
    if span >= _FEW_YEARS or math.isclose(value, round(value), abs_tol=1e-9):
        return format_moment(float(round(value)))
    try:
        year, month, day, _ = to_calendar(value)
    except OverflowError:
        return format_number(value)
    return f"{year}-{month:02d}" if span > 0.25 else f"{year}-{month:02d}-{day:02d}"


def _rounded(value: float, span: float) -> float:
    """Without the noise of arithmetic: to a thousandth of what the axis spans."""
    if span <= 0:
        return value
    return round(value, max(0, 3 - math.floor(math.log10(span))))
