"""Literals of YAGO and Freebase: what is in the quotes, and the datatype or language behind them.

The datatype says what a value is; nothing is a number because it looks like one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hynt.creation.sources.source import ParsedValue
from hynt.errors import RecordProblem
from hynt.formats.values import DATES, NUMBERS, XSD, check_name, parse_number
from hynt.graph.fact import DATE_UNIT
from hynt.graph.units.dates import UnreadableDate, parse_iso_date

_LITERAL = re.compile(r'"(.*)"(?:@([A-Za-z0-9-]+)|\^\^(?:<([^<>]*)>|([A-Za-z0-9_]+:[A-Za-z0-9_.-]+)))?', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


class Literal(NamedTuple):
    """A literal, taken apart. `datatype` is the name of an XML Schema type (`date`) or another type's own name."""

    text: str
    language: str = ""
    datatype: str = ""
    is_schema_type: bool = False


def read_literal(token: str) -> Literal:
    """Take a literal apart; a RecordProblem "bad-literal" where it is none."""
    found = _LITERAL.fullmatch(token)
    if found is None:
        raise RecordProblem("bad-literal", f"{token[:40]!r} is no literal.", "Get the dump again.")
    text, language, address, prefixed = found.groups()
    if address is not None and address.startswith(XSD):
        return Literal(text, "", address.removeprefix(XSD), True)
    if prefixed is not None and prefixed.startswith("xsd:"):
        return Literal(text, "", prefixed.removeprefix("xsd:"), True)
    return Literal(text, language or "", address or prefixed or "")


def date_value(literal: Literal, token: str) -> ParsedValue:
    """A date as written and as a decimal year."""
    try:
        value, _ = parse_iso_date(literal.text)
    except UnreadableDate as problem:
        raise RecordProblem("bad-date", problem.what, problem.advice) from None
    return ParsedValue("number", token, value + 0.0, DATE_UNIT)


def number_value(literal: Literal, token: str, unit: str = "") -> ParsedValue:
    """A number as written, in a unit."""
    return ParsedValue("number", check_name(token, "number"), parse_number(literal.text) + 0.0, unit)


def is_date(literal: Literal) -> bool:
    return literal.is_schema_type and literal.datatype in DATES


def is_number(literal: Literal) -> bool:
    return literal.is_schema_type and literal.datatype in NUMBERS


def text_value(literal: Literal) -> ParsedValue:
    """Text kept as an entity: its quotes tell it from an id."""
    language = f"@{literal.language}" if literal.language else ""
    return ParsedValue("text", check_name(f'"{unescaped(literal.text)}"{language}', "text"))


def unescaped(text: str) -> str:
    """The characters that N-Triples and Turtle write with a backslash; anything unknown is a RecordProblem."""
    if "\\" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "uU" and len(code) > 1:
            number = int(code[1:], 16)
            if number < 0x110000 and not 0xD800 <= number < 0xE000:
                return chr(number)
        elif code in _ESCAPED:
            return _ESCAPED[code]
        raise RecordProblem("bad-literal", f"\\{code} is no escape.", "Get the dump again.")

    return _ESCAPE.sub(character, text)
