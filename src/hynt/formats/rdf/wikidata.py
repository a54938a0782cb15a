"""Statements of Wikidata, and of any other Wikibase: an item links to a node with the value and the qualifiers.

    wd:Q90 p:P1082 s:1 .
    s:1 ps:P1082 2102650 ; psv:P1082 v:1 ; pq:P585 "2020-01-01T00:00:00Z"^^xsd:dateTime .
    v:1 wikibase:quantityAmount 2102650 ; wikibase:quantityUnit wd:Q199 .

Value nodes hold what a plain literal cannot: the unit of a quantity, the precision of a time, the two numbers of a
coordinate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from hynt.errors import RecordProblem
from hynt.formats.numbers import parse_number
from hynt.formats.rdf.terms import (
    ABOUT_PAGES,
    ON_PROPERTY,
    PAGE,
    STATEMENT,
    WIKIBASE,
    WIKIDATA,
    WIKIDATA_ENTITY,
    ReadValue,
    coordinates,
    is_wikibase_entity,
    property_use,
)
from hynt.graph.fact import DATE_UNIT, Number
from hynt.graph.units.dates import UnreadableDate, format_date, parse_iso_date

if TYPE_CHECKING:
    from hynt.formats.rdf.parsing import Object

VALUE = WIKIDATA + "value/"
RANK = WIKIBASE + "rank"
DEPRECATED = WIKIBASE + "DeprecatedRank"
_NO_UNIT = ("", "1", WIKIDATA_ENTITY + "Q199")  # the number one

ValueNode: TypeAlias = "Mapping[str, Object]"
"""Predicate → object of a value node; each occurs once."""

_VALUE_PREDICATES = frozenset(
    WIKIBASE + name
    for name in ("quantityAmount", "quantityUnit", "timeValue", "timePrecision", "geoLatitude", "geoLongitude")
)


def is_statement(node: object) -> bool:
    """Whether a node is one of a Wikibase's statements."""
    return isinstance(node, str) and STATEMENT in node


def is_value_node(subject: str, pairs: Collection[tuple[str, object]]) -> bool:
    """Whether a node holds a quantity, a time or a coordinate."""
    return subject.startswith(VALUE) or any(predicate in _VALUE_PREDICATES for predicate, _ in pairs)


def is_unknown_value(node: str) -> bool:
    """Wikidata's "some value": it exists and nobody knows it."""
    return node.startswith("_:") or "/.well-known/genid/" in node


def is_bookkeeping(subject: str, pairs: Collection[tuple[str, object]]) -> bool:
    """Whether a subject is about the dump and not the world: a page, a reference, the description of a property's
    IRIs."""
    if subject.startswith((WIKIDATA, "https://www.wikidata.org/")):
        return not subject.startswith(WIKIDATA_ENTITY)
    if subject.startswith(WIKIBASE) or PAGE in subject or ("/prop/" in subject and property_use(subject)):
        return True
    for predicate, value in pairs:
        used = property_use(predicate)
        if used is not None and used.role.startswith("reference"):
            return True
        if isinstance(value, str) and (
            (predicate in ABOUT_PAGES and is_wikibase_entity(value))
            or (predicate == ON_PROPERTY and property_use(value) is not None)
        ):
            return True
    return False


def trimmed_value_node(pairs: Collection[tuple[str, Object]]) -> dict[str, Object]:
    """What a value node says, without what no fact needs."""
    return {predicate: value for predicate, value in pairs if predicate in _VALUE_PREDICATES}


def node_values(node: ValueNode) -> list[ReadValue]:
    """The values of a value node. RecordProblem: it says none, or a wrong one."""

    def text(name: str) -> str:
        value = node.get(WIKIBASE + name)
        return "" if value is None else value if isinstance(value, str) else str(getattr(value, "value", ""))

    if amount := text("quantityAmount"):
        unit = text("quantityUnit")
        known = "" if unit in _NO_UNIT else unit.removeprefix(WIKIDATA_ENTITY)
        return [ReadValue("", Number(parse_number(amount), amount, known))]
    if time := text("timeValue"):
        return [ReadValue("", _time(time, text("timePrecision")))]
    if (latitude := text("geoLatitude")) and (longitude := text("geoLongitude")):
        return coordinates(latitude, longitude)
    raise RecordProblem("value-node-empty", "a value node holds no amount, time or place.", "Get the dump again.")


def _time(text: str, precision: str) -> Number:
    """A time of Wikidata's RDF, whose years are astronomical; what lies below its precision is left out."""
    try:
        value, known = parse_iso_date(text)
        if precision.isascii() and precision.isdecimal() and int(precision) < 11 and known in ("day", "time"):
            coarse = format_date(value, "month" if int(precision) == 10 else "year")
            return Number(parse_iso_date(coarse)[0], coarse, DATE_UNIT)
    except UnreadableDate as problem:
        raise RecordProblem("bad-date", problem.what, problem.advice) from None
    return Number(value, text, DATE_UNIT)
