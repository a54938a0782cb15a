"""How our own formats, `tsv` and `jsonl`, spell numbers and dates so that nothing of a `Number` is lost.

A number has a value, a unit and the literal it came with. Most often the literal is the number itself; where it is not
(a value converted from pounds, a YAGO literal), it is written beside the value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hynt.errors import RecordProblem
from hynt.formats.numbers import parse_number
from hynt.graph.fact import DATE_UNIT, Number
from hynt.graph.units.dates import UnreadableDate, format_date, parse_iso_date

JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class Spelling(NamedTuple):
    """What to write for a number."""

    text: str  # the number, or an ISO date
    is_date: bool
    unit: str  # "" for none, and for a date
    literal: str | None  # None where the text is the literal


def spell(number: Number) -> Spelling:
    """A spelling that `read_date` or `parse_number` turns back into exactly this number."""
    value, literal, unit = number
    if unit == DATE_UNIT:
        for text in (literal, _day(value)):
            if _date_value(text) == value:
                return Spelling(text, True, "", None if text == literal else literal)
    if JSON_NUMBER.fullmatch(literal) and _number_value(literal) == value:
        return Spelling(literal, False, unit, None)
    return Spelling(repr(value), False, unit, literal)


def read_date(text: str) -> Number:
    """A date as written by a person: 1922-01-28, 1922-01, 1922."""
    try:
        value, _ = parse_iso_date(text)
    except UnreadableDate as problem:  # an impossible date too: our own formats have no published oddities to keep
        raise RecordProblem("bad-date", problem.what, problem.advice) from None
    return Number(value, text, DATE_UNIT)


def _day(value: float) -> str:
    try:
        return format_date(value)
    except UnreadableDate:
        return ""


def _date_value(text: str) -> float | None:
    try:
        return parse_iso_date(text)[0]
    except UnreadableDate:
        return None


def _number_value(text: str) -> float | None:
    try:
        return parse_number(text)
    except RecordProblem:
        return None
