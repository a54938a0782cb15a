"""What a name and a number may be, in every format.

The name of an entity or a relation is any text that is not empty and holds no control characters; tab, line feed and
carriage return are allowed where the format can write them. Control characters are signs of a broken file, and could
command a terminal that prints them.

A number in text is ASCII decimal or scientific notation, finite, and nothing else. `float()` alone would take `nan`,
`inf`, `1_000`, `１２` and round `1e999` to infinity; none of these is a number that a graph can hold.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.graph.fact import DATE_UNIT, Fact, Number, Value
from hynt.graph.units.conversion import lookup
from hynt.graph.units.dates import UnreadableDate, format_date, parse_iso_date
from hynt.names import shortened

CONTROL_CHARACTERS = "".join(map(chr, (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)))
"""C0 and delete, without tab, line feed and carriage return."""

_UNUSABLE = re.compile(f"[{re.escape(CONTROL_CHARACTERS)}\ud800-\udfff]")


def check_name(name: str, what: str) -> str:
    """The name, or a `RecordProblem`: "empty-name", "control-character", "not-unicode". `what` is "head", "tail" …"""
    if not name:
        raise empty_name(what)
    found = _UNUSABLE.search(name)
    if found is not None:
        raise _unusable(found[0], what)
    return name


LONGEST_DESCRIPTION = 400
"""Characters of what a relation means: enough for two sentences, and little to keep for each of many."""


def as_description(text: str) -> str:
    """What a source says of a relation, as one line that can be kept: a longer text ends after its last whole word."""
    line = " ".join(_UNUSABLE.sub(" ", text).split())
    return line if len(line) <= LONGEST_DESCRIPTION else f"{line[:LONGEST_DESCRIPTION].rpartition(' ')[0]} …"


def check_value(value: Value, what: str) -> None:
    """A value's name, or a number's literal and unit, which may be empty, held to the same rule."""
    if not isinstance(value, Number):
        check_name(value, what)
        return
    for text in (value.literal, value.unit):
        found = _UNUSABLE.search(text)
        if found is not None:
            raise _unusable(found[0], what)


def empty_name(what: str) -> RecordProblem:
    """The problem of a name that is missing between its separators."""
    return RecordProblem("empty-name", f"the {what} is empty.", "Give it a name, or remove the record.")


def check_names(fact: Fact) -> None:
    """A `RecordProblem` for a fact with a name that holds what no name may hold."""
    check_name(fact.head, "head")
    check_name(fact.relation, "relation")
    check_value(fact.tail, "tail")
    for relation, value in fact.qualifiers:
        check_name(relation, "qualifier relation")
        check_value(value, "qualifier value")


def check_writable(fact: Fact, *, where: str) -> None:
    """A `DataError` for a fact with a name that no text file may hold, before it is written."""
    try:
        check_names(fact)
    except RecordProblem as problem:
        raise DataError(
            f"cannot write {shortened(repr(fact), 300)}: {problem.what}", where=where, advice=problem.advice
        ) from None


def _unusable(character: str, what: str) -> RecordProblem:
    if "\ud800" <= character <= "\udfff":
        return RecordProblem(
            "not-unicode",
            f"the {what} holds half a character (U+{ord(character):04X}, a lone surrogate).",
            "Write the file as UTF-8 again from its source.",
        )
    return RecordProblem(
        "control-character",
        f"the {what} holds the control character U+{ord(character):04X}.",
        "Remove it: names are printable text.",
    )


NUMBER_PATTERN = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LONGEST_NUMBER = 400
"""Characters: more than any double needs, and short enough to be converted in no time."""

_NUMBER = re.compile(NUMBER_PATTERN)
_SPECIAL = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_ADVICE = "Write a finite decimal number in ASCII, such as 80, -0.5 or 1.2e6."


def parse_number(text: str) -> float:
    """The value of a number as written; a `RecordProblem` "bad-number" says what is wrong with anything else."""
    if len(text) > LONGEST_NUMBER:
        raise RecordProblem("bad-number", f"a number of {len(text)} characters is too long.", _ADVICE)
    if _NUMBER.fullmatch(text) is None:
        raise RecordProblem("bad-number", _what_is_wrong(text), _ADVICE)
    value = float(text)
    if math.isinf(value):
        raise RecordProblem("bad-number", f"{shortened(text)!r} is too large for a double-precision number.", _ADVICE)
    if value == 0.0 and _has_digits(text):
        raise RecordProblem(
            "bad-number", f"{shortened(text)!r} is too close to zero for a double-precision number.", _ADVICE
        )
    return value


def check_finite(value: float, text: str) -> float:
    """A number that came already parsed (from JSON, Parquet), refused where it is not finite."""
    if not math.isfinite(value):
        raise RecordProblem("bad-number", f"{shortened(text)!r} is not a finite number.", _ADVICE)
    return value


def looks_like_number(text: str) -> bool:
    """Whether a text is spelt as a number, good or bad: `80`, but also `nan` and `１２`, which no format takes."""
    if _NUMBER.fullmatch(text) is not None or _SPECIAL.fullmatch(text) is not None:
        return True
    return not text.isascii() and _NUMBER.fullmatch(_ascii_digits(text)) is not None


def _has_digits(text: str) -> bool:
    """Whether the part before the exponent has a digit other than zero: then a value of zero is an underflow."""
    return any(character in "123456789" for character in re.split("[eE]", text)[0])


def _ascii_digits(text: str) -> str:
    return "".join("0" if character.isdecimal() else character for character in text.replace("−", "-"))


def _what_is_wrong(text: str) -> str:
    shown = repr(shortened(text))
    if not text:
        return "a number is empty."
    if _SPECIAL.fullmatch(text):
        return f"{shown} is not a finite number."
    if not text.isascii() and _NUMBER.fullmatch(_ascii_digits(text)):
        return f"{shown} is written with characters that are not ASCII."
    return f"{shown} is not a number."


class Remembered(dict[str, Value]):
    """Values by their spelling, found once and kept, as many as fit: graphs repeat themselves."""

    def __init__(self, read: Callable[[str], Value], most: int = 500_000) -> None:
        super().__init__()
        self._read, self._most = read, most

    def __missing__(self, text: str) -> Value:
        value = self._read(text)
        if len(self) >= self._most:
            self.clear()
        self[text] = value
        return value


# The datatypes of XML Schema that say that a literal is a number or a date, by their names after `XSD`.

XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGERS = frozenset(
    {
        "integer",
        "long",
        "int",
        "short",
        "byte",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    }
)
NUMBERS = INTEGERS | {"decimal", "double", "float"}
DATES = frozenset({"date", "dateTime", "gYear", "gYearMonth"})


def schema_type(iri: str | None, prefixed: str | None) -> str | None:
    """The name of an XML Schema type, by its address or `xsd:` before it; None for any other datatype."""
    if iri is not None and iri.startswith(XSD):
        return iri.removeprefix(XSD)
    if prefixed is not None and prefixed.startswith("xsd:"):
        return prefixed.removeprefix("xsd:")
    return None


# How our own formats, `tsv` and `jsonl`, spell numbers and dates so that nothing of a `Number` is lost.
#
# A number has a value, a unit and the literal it came with. Most often the literal is the number itself; where it is
# not (a value converted from pounds, a YAGO literal), it is written beside the value.

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
        for text in (literal, format_date(value)):
            if date_value(text) == value:
                return Spelling(text, True, "", None if text == literal else literal)
    if JSON_NUMBER.fullmatch(literal) and _number_value(literal) == value:
        return Spelling(literal, False, unit, None)
    return Spelling(repr(value), False, unit, literal)


_NUMBER_FORMAT = re.compile("1([,. '’\u00a0\u202f]?)234(?:([.,])5)?")
_GROUPED = {
    "1,234.5": r"^[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$",
    "1.234,5": r"^[-+]?[0-9]{1,3}((\.[0-9]{3})+,[0-9]+|(\.[0-9]{3}){2,})$",
    "1 234,5": "^[-+]?[0-9]{1,3}([ \u00a0\u202f][0-9]{3})+(,[0-9]+)?$",
}
"""How people group digits, by an example; 1.234 alone may be a plain number."""
_DIGITS_IN_GROUPS = re.compile("[-+0-9.,'’ \u00a0\u202f]+")


def grouping(matches: Callable[[str], object]) -> str:
    """The `number_format` that reads texts of which a pattern matches one; "" where none does."""
    return next((example for example, pattern in _GROUPED.items() if matches(pattern)), "")


@functools.cache
def written_numbers(number_format: str) -> re.Pattern[str]:
    """Numbers that are written like the example, such as 1,234.5: the sign, the digits, and those after the point."""
    found = _NUMBER_FORMAT.fullmatch(number_format)
    if found is None or (found[1] and found[1] == found[2]):
        raise UsageError(
            f"{number_format!r} does not show how numbers are written.",
            where="--number-format",
            advice="Write 1234.5 as the file would, such as 1,234.5 or 1.234,5.",
        )
    between = "[ \u00a0\u202f]" if found[1].isspace() else re.escape(found[1])
    point = found[2] or ("," if found[1] == "." else ".")
    groups = f"[0-9]{{1,3}}(?:{between}[0-9]{{3}})+|" if found[1] else ""
    return re.compile(rf"\s*([-+]?)({groups}[0-9]+)(?:{re.escape(point)}([0-9]+))?\s*")


def read_written_number(text: str, number_format: str = "") -> Number:
    """A number as tables have it: plain, or with digits in groups by the format that is given."""
    if not number_format:
        try:
            return Number(parse_number(text), text)
        except RecordProblem as problem:
            example = grouping(lambda pattern: len(text) <= LONGEST_NUMBER and re.match(pattern, text.strip()))
            if not example:
                raise
            advice = f"Say how numbers are written: --number-format '{example}'."
            raise RecordProblem(problem.reason, problem.what, advice) from None
    found = written_numbers(number_format).fullmatch(text[: LONGEST_NUMBER + 1])
    if found is None and _DIGITS_IN_GROUPS.fullmatch(text):
        what = f"{shortened(text)!r} is not written as {number_format}."
        raise RecordProblem("bad-number", what, "Correct it, or give another --number-format.")
    if found is None:
        raise RecordProblem("bad-number", _what_is_wrong(text), "Correct it, or leave it empty.")
    digits = "".join(filter(str.isdigit, found[2]))
    return Number(parse_number(f"{found[1]}{digits}.{found[3] or 0}"), text)


def read_date(text: str) -> Number:
    """A date as written by a person: 1922-01-28, 1922-01, 1922."""
    try:
        value, _ = parse_iso_date(text)
    except UnreadableDate as problem:  # an impossible date too: our own formats have no published oddities to keep
        raise RecordProblem("bad-date", problem.what, problem.advice) from None
    return Number(value, text, DATE_UNIT)


_NUMBER_AND_UNIT = re.compile(
    r"([-+]?[0-9.](?:[0-9.,'’ \u00a0\u202f]*[0-9.])?(?:[eE][-+]?[0-9]+)?)\s*((?!/?\d)\S.*)", re.DOTALL
)
_SIGN = "(?:US)?[$£€₩₪₹₽]"
_SCALES = {
    **dict.fromkeys(("k", "K", "thousand"), "thousand"),
    **dict.fromkeys(("m", "M", "mn", "mio", "Mio", "million"), "million"),
    **dict.fromkeys(("b", "B", "bn", "billion"), "billion"),
    **dict.fromkeys(("tn", "trillion"), "trillion"),
}
"""How people shorten sums of money; beside any other unit an m is a metre."""
_MONEY = re.compile(
    rf"([-+]?)\s*({_SIGN})\s*([0-9.](?:[0-9.,'’ \u00a0\u202f]*[0-9.])?(?:[eE][-+]?[0-9]+)?)\s*({'|'.join(_SCALES)})?"
)
_MONEY_BEHIND = re.compile(rf"([-+]?[0-9.].*?)\s*({'|'.join(_SCALES)})\s*({_SIGN}|[A-Z]{{3}})")


def unit_behind(text: str) -> str:
    """A text with a currency's sign behind its number, where other units are, the scale of money in full, and a plain
    minus sign: `60 $`, `692 million €`.
    """
    text = text.strip().replace("−", "-", 1)
    before = _MONEY.fullmatch(text[: LONGEST_NUMBER + 1])
    if before is not None:
        sign, currency, amount, scale = before.groups()
        return f"{sign}{amount} {_SCALES[scale] + ' ' if scale else ''}{currency}"
    behind = _MONEY_BEHIND.fullmatch(text[: LONGEST_NUMBER + 1])
    if behind is not None and (unit := lookup(behind[3])) is not None and unit.dimension.startswith("currency"):
        return f"{behind[1]} {_SCALES[behind[2]]} {behind[3]}"
    return text


def number_and_unit(text: str) -> tuple[str, str] | None:
    """The two parts of `80 kg`, `12 %` or `$60`, where the unit is known; None for any other text."""
    found = _NUMBER_AND_UNIT.fullmatch(unit_behind(text)[: LONGEST_NUMBER + 1])
    return None if found is None or lookup(found[2]) is None else (found[1], found[2])


def read_written_quantity(text: str, number_format: str = "") -> Number:
    """A number as tables have it, with its unit where the text says one: 1486.18 g, 297.20 EUR, $60."""
    parts = number_and_unit(text)
    if parts is None:
        return read_written_number(text, number_format)
    return read_written_number(parts[0], number_format)._replace(unit=parts[1])


_USUAL_DATES = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%Y/%m/%d", "%d.%m.%Y")


VAGUE = "vague-date"
"""The reason of what says about when something was."""
_ABOUT = re.compile(r"(?:c|ca|circa|about|around|approx|~|≈)[. ]*([0-9]{3,4})", re.IGNORECASE)


def read_written_date(text: str, date_format: str = "") -> Number:
    """A date as tables have it: by the format that is given, or as 1922-01-28, or as `Jan 28, 1922` and its like. What
    has another shape than the format, such as a year alone, is read as it is without one.
    """
    if date_format:
        if (found := _by_format(text, date_format)) is not None:
            return found
        if _shape(text) != _shape(datetime(1999, 12, 28).strftime(date_format)):  # noqa: DTZ001 - a spelling
            with suppress(RecordProblem):
                return read_written_date(text)
        _refuse_about(text)
        what = f"{shortened(text)!r} is not written as {date_format}."
        raise RecordProblem("bad-date", what, "Correct it, or give another --date-format.")
    try:
        return read_date(text)
    except RecordProblem as problem:
        for known in _USUAL_DATES:
            if (found := _by_format(text, known)) is not None:
                return found
        _refuse_about(text)
        advice = f"{problem.advice} Or say how it is written, as in --date-format %d/%m/%Y."
        raise RecordProblem("bad-date", problem.what, advice) from None


def _refuse_about(text: str) -> None:
    if year := _ABOUT.fullmatch(text.strip()):
        advice = f"Write the year alone, {year[1]}, or leave the date out."
        raise RecordProblem(VAGUE, f"{shortened(text)!r} says about when, which a graph cannot hold.", advice)


def _by_format(text: str, date_format: str) -> Number | None:
    try:
        found = datetime.strptime(text.strip(), date_format)  # noqa: DTZ007 - the date as it is written
    except ValueError:
        return None
    written = found.isoformat() if "%H" in date_format or "%I" in date_format else found.date().isoformat()
    return read_date(written)._replace(literal=text)


def _shape(text: str) -> str:
    """A text with its numbers and words alike: `9/9/9`, `9 a 9`."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"[0-9]+", "9", text.strip()))


def date_value(text: str) -> float | None:
    """The decimal year of a date as written; None where it is none."""
    try:
        return parse_iso_date(text)[0]
    except UnreadableDate:
        return None


def _number_value(text: str) -> float | None:
    try:
        return parse_number(text)
    except RecordProblem:
        return None
