"""RDF literals as values, and values as RDF literals. The datatype says what a literal is; nothing is guessed from
its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hynt.errors import RecordProblem
from hynt.formats import xml_schema
from hynt.formats.names import check_name
from hynt.formats.numbers import parse_number
from hynt.formats.rdf.names import LANGUAGE_STRINGS, UNIT_BASE, entity_name, unit_iri, unit_name
from hynt.formats.xml_schema import XSD
from hynt.graph.fact import DATE_UNIT, Number, Value
from hynt.graph.units.dates import UnreadableDate, format_date, parse_iso_date

if TYPE_CHECKING:
    from pyoxigraph import Literal

WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
INTEGERS = frozenset(XSD + name for name in xml_schema.INTEGERS)
DECIMALS = frozenset(XSD + name for name in xml_schema.NUMBERS) - INTEGERS
DATES = frozenset(XSD + name for name in (*xml_schema.DATES, "dateTimeStamp"))
TEXTS = frozenset({XSD + "string", *LANGUAGE_STRINGS})

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]+|\.[0-9]+)")
_XML_SPACE = " \t\n\r"
_POINT = re.compile(r"(?:<[^<>]*> +)?point *\( *([^ ()]+) +([^ ()]+) *\)", re.IGNORECASE)


class ReadValue(NamedTuple):
    """A value, and what its relation's name ends in beyond the predicate: coordinates become two relations."""

    suffix: str
    value: Value


def node_value(node: str) -> list[ReadValue]:
    """An IRI or blank node as a value."""
    return [ReadValue("", check_name(entity_name(node), "entity"))]


def literal_values(literal: Literal, keep_text: bool) -> list[ReadValue]:
    """The values of a literal: one, or latitude and longitude of a point. RecordProblem: it has none."""
    datatype = literal.datatype.value
    text = literal.value
    if datatype in INTEGERS or datatype in DECIMALS:
        return [ReadValue("", _number(text.strip(_XML_SPACE), datatype))]
    if datatype in DATES:
        return [ReadValue("", read_date(text.strip(_XML_SPACE)))]
    if datatype in TEXTS:
        if keep_text:
            return [ReadValue("", text_entity(text, literal.language))]
        raise RecordProblem(
            "text-literal",
            f"{_shown(text)} is text, and a fact holds entities and numbers.",
            "To make an entity of each text, give --string-literals keep.",
        )
    if datatype.startswith(UNIT_BASE):
        return [ReadValue("", Number(parse_number(text), text, unit_name(datatype)))]
    if datatype == WKT and (found := _POINT.fullmatch(text.strip(_XML_SPACE))):
        return coordinates(found[2], found[1])
    raise RecordProblem(
        "unsupported-datatype",
        f"{_shown(text)} has the datatype {datatype}.",
        "Numbers and dates of XML Schema are read; write the value as one of them.",
    )


def coordinates(latitude: str, longitude: str) -> list[ReadValue]:
    """A place on a globe as two numbers."""
    return [
        ReadValue("-latitude", Number(parse_number(latitude), latitude, "degree")),
        ReadValue("-longitude", Number(parse_number(longitude), longitude, "degree")),
    ]


def read_date(text: str) -> Number:
    """A date as written; RecordProblem "bad-date" where it is none."""
    try:
        return Number(parse_iso_date(text)[0], text, DATE_UNIT)
    except UnreadableDate as problem:
        raise RecordProblem("bad-date", problem.what, problem.advice) from None


def text_entity(text: str, language: str | None) -> str:
    """The entity that stands for a text: quoted, so that it is never taken for an IRI or an id."""
    quoted = f'"{text}"' if language is None else f'"{text}"@{language}'
    return check_name(quoted, "text")


def literal_of(number: Number) -> tuple[str, str]:
    """A number as (lexical form, datatype); read back, it has the same value and unit, and where possible the same
    literal."""
    value, literal, unit = number
    if unit == DATE_UNIT:
        for text in (literal, format_date(value)):
            datatype = _date_datatype(text)
            if datatype and _same_date(text, value):
                return text, XSD + datatype
    try:
        text = literal if parse_number(literal) == value else repr(value)
    except RecordProblem:
        text = repr(value)
    if unit:
        return text, unit_iri(unit)
    if _INTEGER.fullmatch(text):
        return text, XSD + "integer"
    return text, XSD + ("decimal" if _DECIMAL.fullmatch(text) else "double")


def _number(text: str, datatype: str) -> Number:
    if datatype in INTEGERS and not _INTEGER.fullmatch(text):
        raise RecordProblem(
            "bad-number",
            f"{_shown(text)} is not an integer, though its datatype says {datatype.removeprefix(XSD)!r}.",
            "Correct the text or the datatype.",
        )
    return Number(parse_number(text), text)


def _date_datatype(text: str) -> str:
    """The XML Schema type of a date in its spelling, "" where it has none."""
    shapes = {
        r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?Z?": "dateTime",
        r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}": "date",
        r"-?[0-9]{4,}-[0-9]{2}": "gYearMonth",
        r"-?[0-9]{4,}": "gYear",
    }
    return next((datatype for shape, datatype in shapes.items() if re.fullmatch(shape, text, re.ASCII)), "")


def _same_date(text: str, value: float) -> bool:
    try:
        return parse_iso_date(text)[0] == value
    except UnreadableDate:
        return False


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
