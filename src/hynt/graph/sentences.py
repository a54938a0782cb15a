"""Facts as people read them: names, numbers with units, dates.

Japan · life expectancy · 88.2 years (point in time 2024; sex female)
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from hynt.graph.fact import DATE_UNIT, Fact, Number, Value
from hynt.graph.fact_table import FIRST_QUALIFIER
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.units.conversion import in_display_unit, shown_difference
from hynt.graph.units.dates import DatePrecision, UnreadableDate, format_date, parse_iso_date, to_calendar

BLANK = "?"
"""What stands where the answer goes."""

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_POWER = re.compile(r"(?<=[^\W\d_])[2-6](?![^\W_])")
_COUNTED = {"year": "years", "degree": "degrees", "byte": "bytes", "day": "days", "month": "months"}
_SIGNS = {"percent": "%", "per mille": "‰"}
_CLOSE_TO_A_YEAR = 1e-9
_YEARS, _MONTHS = 4.0, 1 / 3  # the narrowest intervals that show a date as a year, and as a month
_STEPS = 20  # an interval is told by so many steps of its last digit at least
_LONGEST = 300


class Sentences:
    """Tells the facts of one graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph

    def fact(self, fact: Fact) -> str:
        """A whole fact on one line."""
        return sentence(self.words(fact))

    def plain(self, fact: Fact) -> dict[str, Any]:
        """A fact as values for JSON: one line of text, and its parts with ids for programs and names for people."""
        return {
            "text": self.fact(fact),
            "head": {"id": fact.head, "label": self.entity(fact.head)},
            "relation": self._plain_relation(fact.relation),
            "tail": self._plain_value(fact.tail),
            "qualifiers": [
                {"relation": self._plain_relation(name), "value": self._plain_value(value)}
                for name, value in fact.qualifiers
            ],
        }

    def _plain_relation(self, name: str) -> dict[str, str]:
        return {"id": name, "label": self.relation(name)}

    def _plain_value(self, value: Value) -> dict[str, Any]:
        if isinstance(value, Number):
            return {"number": value.value, "literal": value.literal, "unit": value.unit, "text": format_stored(value)}
        return {"id": value, "label": self.entity(value)}

    def question(self, fact: Fact, position: int) -> str:
        """A fact on one line, with a question mark for the component at a position."""
        words = self.words(fact)
        words[position] = BLANK
        return sentence(words)

    def words(self, fact: Fact) -> list[str]:
        """What stands at each position of a fact."""
        found = [self.entity(fact.head), self.relation(fact.relation), self.value(fact.tail)]
        for relation, value in fact.qualifiers:
            found += [self.relation(relation), self.value(value)]
        return found

    def entity(self, name: str) -> str:
        """The name of an entity, for its id as written."""
        return self._graph.entity_labels[self._graph.vocabulary.entity_ids[name]]

    def relation(self, name: str) -> str:
        """The name of a relation, for its id as written."""
        return self._graph.relation_labels[self._graph.vocabulary.relation_ids[name]]

    def value(self, value: Value) -> str:
        """An entity's name, or a number with its unit."""
        return format_stored(value) if isinstance(value, Number) else self.entity(value)


def sentence(words: Sequence[str]) -> str:
    """A fact, or a question, on one line, from what stands at each of its positions."""
    line = " · ".join(words[:FIRST_QUALIFIER])
    pairs = pair_texts(words)
    return f"{line} ({'; '.join(pairs)})" if pairs else line


def pair_texts(words: Sequence[str]) -> list[str]:
    """Each qualifier in words, from what stands at each position."""
    return [" ".join(words[at : at + 2]) for at in range(FIRST_QUALIFIER, len(words), 2)]


def format_stored(number: Number) -> str:
    """A number of a fact with its unit; a date with the precision that it came with: `1952-03`, `2024-05-01 10:05`."""
    if number.unit == DATE_UNIT:
        try:
            value, precision = parse_iso_date(number.literal)
        except UnreadableDate:
            return format_moment(number.value)
        if value == number.value and value >= 1 and precision in ("month", "time"):
            return format_date(value, precision)
    return format_quantity(number.value, number.unit)


def format_quantity(value: float, unit: str = "", width: float | None = None, *, around_zero: bool = False) -> str:
    """A number with the unit that people read: `1990`, `12,345`, `88.2 years`, `12.5 %`, `377,915 km²`, `1922-01-28`.

    `width` is how far apart the ends of its interval are: digits that say more than that are left out, but for two of a
    number that is not `around_zero`.
    """
    if unit == DATE_UNIT:
        if width is None or width < _MONTHS:
            return format_moment(value)
        return format_moment(value, "month") if width < _YEARS else format_moment(float(math.floor(value)))
    if width is not None:
        width = shown_difference(width, unit)[0]
    value, unit = in_display_unit(value, unit)
    value = value if width is None else rounded_to(value, width, 0 if around_zero else 2)
    if unit in ("", "1") and value == round(value) and 1000 <= abs(value) < 10_000:
        return f"{value:.0f}".replace("-", "−")  # it may well be a year
    return _with_unit(format_number(value), unit)


def format_estimate(
    value: float, unit: str, interval: tuple[float, float] | None, known: tuple[float, float] | None
) -> str:
    """What a model says, with the digits that its interval is sure of; without one, with those that matter in the range
    of what is `known`, and with two where that is no range.
    """
    low, high = interval or known or (0.0, 0.0)
    # Between ends of either sign, as people read them, 0.23 says no more than 8.2.
    around_zero = interval is not None and in_display_unit(low, unit)[0] < 0 < in_display_unit(high, unit)[0]
    return format_quantity(value, unit, high - low or abs(value), around_zero=around_zero)


def format_difference(value: float, unit: str = "") -> str:
    """A difference of two numbers, to three digits; one of dates is in years."""
    value, unit = shown_difference(value, "year" if unit == DATE_UNIT else unit)
    return _with_unit(format_number(float(f"{value:.3g}")), unit)


def format_multiple(times: float) -> str:
    """How many times something is something else, to two digits: `2.1`, `770`, `7.3 × 10¹⁹⁹`."""
    return format_number(float(f"{times:.2g}"))


def rounded_to(value: float, width: float, least: int = 2) -> float:
    """The number with as many digits as an interval of this width is sure of, and `least` at least."""
    if not (math.isfinite(value) and 0 < width < math.inf) or not value:
        return value
    step = math.floor(math.log10(width / _STEPS))
    if least:
        step = min(step, math.floor(math.log10(abs(value))) + 1 - least)
    return float(f"{round(value, -step):.15g}") if abs(step) < _LONGEST else value


def unit_in_words(unit: str) -> str:
    """What stands behind numbers of this unit where people read them, such as years, lb or %."""
    display = in_display_unit(1.0, unit)[1]
    return _with_unit("", display).strip()


def _with_unit(text: str, unit: str) -> str:
    if unit in ("", "1"):
        return text
    if unit in _SIGNS:
        return f"{text} {_SIGNS[unit]}"
    if unit.startswith("1/"):
        of = unit[2:]
        return f"{text} per {f'{int(of):,}' if of.isascii() and of.isdigit() else _raised(of)}"
    if text != "1":
        unit = _COUNTED.get(unit, unit)
    return f"{text} {_raised(unit)}"


def format_number(value: float) -> str:
    """A number with thousands separators; below a million with six significant digits, or two after the point."""
    value += 0.0  # -0.0 is 0
    size = abs(value)
    if not math.isfinite(value):
        return str(value)
    if size and (size >= 1e15 or size < 1e-4):
        mantissa, exponent = f"{value:.5e}".split("e")
        power = str(int(exponent)).translate(_SUPERSCRIPTS)
        return f"{_trimmed(mantissa)} × 10{power}".replace("-", "−", 1)
    if value == round(value):
        return f"{value:,.0f}".replace("-", "−")
    decimals = max(2, 5 - math.floor(math.log10(size))) if size < 1e6 else 0
    return _trimmed(f"{value:,.{decimals}f}").replace("-", "−")


def format_moment(value: float, precision: DatePrecision = "day") -> str:
    """A decimal year as a date; as a year alone where it is a whole one and days are told: so a year alone is kept."""
    try:
        year, month, day, _ = to_calendar(value, precision)
    except OverflowError:
        return format_number(value)
    if precision == "day" and abs(value - round(value)) < _CLOSE_TO_A_YEAR:
        year, month, day = round(value), None, None
    if year < 1:  # astronomical year 0 is 1 BCE
        parts = [f"{one:02d}" for one in (month, day) if one is not None]
        return "-".join([f"{1 - year}" if parts else f"{1 - year:,}", *parts]) + " BCE"
    if month is None:
        return str(year)
    return format_date(value, precision)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _raised(unit: str) -> str:
    """m2 as m², m/s2 as m/s²: powers as people write them."""
    return _POWER.sub(lambda found: found[0].translate(_SUPERSCRIPTS), unit)
