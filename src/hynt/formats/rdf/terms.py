"""IRIs and names: what an RDF term is called in a graph, and back.

An IRI is its own name, with three exceptions: Wikidata's entities and properties go by their ids (`Q42`, `P31`), the
properties of any other Wikibase by the IRI of the property itself, and names that hynt wrote (`urn:hynt:entity:…`,
`urn:hynt:relation:…`) come back as they were.

In statements of Wikidata, and of any other Wikibase, an item links to a node with the value and the qualifiers:

    wd:Q90 p:P1082 s:1 .
    s:1 ps:P1082 2102650 ; psv:P1082 v:1 ; pq:P585 "2020-01-01T00:00:00Z"^^xsd:dateTime .
    v:1 wikibase:quantityAmount 2102650 ; wikibase:quantityUnit wd:Q199 .

Value nodes hold what a plain literal cannot: the unit of a quantity, the precision of a time, the two numbers of a
coordinate.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from hynt.errors import RecordProblem
from hynt.formats import values as xml_schema
from hynt.formats.values import XSD, check_name, date_value, parse_number, read_date
from hynt.graph.fact import DATE_UNIT, Number, Value
from hynt.graph.units.dates import UnreadableDate, format_date, parse_iso_date
from hynt.names import shortened

if TYPE_CHECKING:
    from pyoxigraph import Literal

    from hynt.formats.rdf.parsing import Object

ENTITY_BASE = "urn:hynt:entity:"
RELATION_BASE = "urn:hynt:relation:"
UNIT_BASE = "urn:hynt:unit:"
GRAPH = RELATION_BASE + "graph"
"""The qualifier that names the graph of a triple, where it is asked for."""

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TYPE = RDF + "type"
REIFIES = RDF + "reifies"
LANGUAGE_STRINGS = frozenset({RDF + "langString", RDF + "dirLangString"})
LIST_PARTS = frozenset({RDF + "first", RDF + "rest"})
EMPTY_LIST = RDF + "nil"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

_RDFS, _SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
_SCHEMA = ("http://schema.org/", "https://schema.org/")
TEXT_FOR_PEOPLE = frozenset(
    [LABEL, _RDFS + "comment", *(_SKOS + name for name in ("prefLabel", "altLabel", "definition"))]
    + [base + name for base in _SCHEMA for name in ("name", "description", "alternateName")]
)
"""Predicates whose texts name or describe a thing. Such a triple is no candidate fact."""
LABELS = (
    LABEL,
    _SKOS + "prefLabel",
    *(base + "name" for base in _SCHEMA),
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/terms/title",
)
"""Predicates whose texts name a thing; where several do, the first of these counts."""
MEANINGS = frozenset([_RDFS + "comment", _SKOS + "definition", *(base + "description" for base in _SCHEMA)])
"""Those that say what a property means."""

WIKIDATA = "http://www.wikidata.org/"
WIKIDATA_ENTITY = WIKIDATA + "entity/"
WIKIBASE = "http://wikiba.se/ontology#"
STATEMENT = "/entity/statement/"
"""What the IRIs of statements hold, in every Wikibase."""
PAGE = "/Special:EntityData/"
ABOUT_PAGES = frozenset(base + name for base in _SCHEMA for name in ("about", "version", "dateModified"))
ON_PROPERTY = "http://www.w3.org/2002/07/owl#onProperty"

_WIKIDATA_ID = re.compile(r"[QPLE][1-9][0-9]*(?:-[FS][1-9][0-9]*)?")
_WIKIBASE_ENTITY = re.compile(rf"(https?://.+/)entity/{_WIKIDATA_ID.pattern}")
_PROPERTY_USE = re.compile(r"(https?://.+/)prop/((?:[a-z-]+/)*)(P[1-9][0-9]*)")
_PLAIN_IRI = re.compile(r"https?://[A-Za-z0-9.-]+/[A-Za-z0-9._~/?#&=+:@,;!$'()*-]*")
_END_OF_IRI = re.compile(r"https?://[^/]+/(?:.*[/#])?([^/#]+)[/#]?")
_NEW_WORD = re.compile("(?<=[a-z0-9])[A-Z](?=[a-z])")
_SAFE = "._~!$'()*,;=@-"
_LIKE_BLANK = ("_:", ENTITY_BASE + "_%3A")
"""How names begin that stay written as IRIs until blank nodes have their names: nobody must take them for these."""


class PropertyUse(NamedTuple):
    """A predicate of a Wikibase: the property, and what its IRI uses it for."""

    property: str  # P31 in Wikidata, the property's own IRI elsewhere
    role: str  # "" links to a statement; "direct", "statement", "statement/value", "qualifier", …


@lru_cache(maxsize=65_536)
def property_use(predicate: str) -> PropertyUse | None:
    """What a predicate such as `prop/statement/P31` of Wikidata or any other Wikibase stands for: all build them so."""
    found = _PROPERTY_USE.fullmatch(predicate)
    if found is None:
        return None
    base, role, name = found.groups()
    return PropertyUse(name if base == WIKIDATA else f"{base}entity/{name}", role.removesuffix("/"))


def is_wikibase_entity(iri: str) -> bool:
    """Whether an IRI names an item, a property or a lexeme of some Wikibase."""
    return "/entity/" in iri and _WIKIBASE_ENTITY.fullmatch(iri) is not None


def entity_name(iri: str) -> str:
    """The name of the entity that an IRI or a blank node (`_:b1`) stands for."""
    if iri.startswith(WIKIDATA_ENTITY):
        identity = iri[len(WIKIDATA_ENTITY) :]
        return identity if _WIKIDATA_ID.fullmatch(identity) else iri
    if iri.startswith(ENTITY_BASE):
        name = unquote(iri[len(ENTITY_BASE) :])
        return iri if name.startswith(_LIKE_BLANK) else name
    return iri


def settled_name(name: str) -> str:
    """A name that `entity_name` left as an IRI, because it looks like that of a blank node, as the graph has it."""
    if name.startswith(ENTITY_BASE):
        plain = unquote(name[len(ENTITY_BASE) :])
        return plain if plain.startswith(_LIKE_BLANK) else name
    return name


@lru_cache(maxsize=65_536)
def relation_name(iri: str) -> str:
    """The name of the relation that a predicate stands for."""
    used = property_use(iri)
    if used is not None:
        return used.property if used.role in ("", "direct") else iri
    if iri.startswith(WIKIDATA_ENTITY):
        return entity_name(iri)
    return unquote(iri[len(RELATION_BASE) :]) if iri.startswith(RELATION_BASE) else iri


def local_name(iri: str, *, is_relation: bool = False) -> str:
    """What the end of an IRI says to people, "" where that is nothing: of a relation in words (`pointInTime`)."""
    found = _END_OF_IRI.fullmatch(iri)
    text = "" if found is None else unquote(found[1]).replace("_", " ").strip()
    if is_relation:
        text = _NEW_WORD.sub(lambda start: f" {start[0].lower()}", text)
    return text if text.isprintable() and any(map(str.isalpha, text)) else ""


def entity_iri(name: str) -> str:
    """The IRI to write an entity with: its name where that is an IRI already, else the name under
    `urn:hynt:entity:`."""
    special = (
        name.startswith((WIKIDATA, WIKIBASE)) or STATEMENT in name or PAGE in name or property_use(name) is not None
    )
    if _PLAIN_IRI.fullmatch(name) and entity_name(name) == name and not special:
        return name
    return ENTITY_BASE + quote(name, safe=_SAFE)


@lru_cache(maxsize=65_536)
def relation_iri(name: str) -> str:
    """The IRI to write a relation with; predicates that mean something to the reader are not written as they are."""
    special = name in TEXT_FOR_PEOPLE | ABOUT_PAGES | {REIFIES, ON_PROPERTY} or name.startswith((WIKIDATA, WIKIBASE))
    if _PLAIN_IRI.fullmatch(name) and not special and property_use(name) is None:
        return name
    return RELATION_BASE + quote(name, safe=_SAFE)


def unit_iri(unit: str) -> str:
    """The datatype of numbers in a unit."""
    return UNIT_BASE + quote(unit, safe=_SAFE)


def unit_name(datatype: str) -> str:
    """The unit of a datatype made by `unit_iri`."""
    return unquote(datatype[len(UNIT_BASE) :])


# RDF literals as values, and values as RDF literals. The datatype says what a literal is; nothing is guessed from
# its text.

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
            f"{shortened(text, 40)!r} is text, and a fact holds entities and numbers.",
            "To make an entity of each text, give --string-literals keep.",
        )
    if datatype.startswith(UNIT_BASE):
        return [ReadValue("", Number(parse_number(text), text, unit_name(datatype)))]
    if datatype == WKT and (found := _POINT.fullmatch(text.strip(_XML_SPACE))):
        return coordinates(found[2], found[1])
    raise RecordProblem(
        "unsupported-datatype",
        f"{shortened(text, 40)!r} has the datatype {datatype}.",
        "Numbers and dates of XML Schema are read; write the value as one of them.",
    )


def coordinates(latitude: str, longitude: str) -> list[ReadValue]:
    """A place on a globe as two numbers."""
    return [
        ReadValue("-latitude", Number(parse_number(latitude), latitude, "degree")),
        ReadValue("-longitude", Number(parse_number(longitude), longitude, "degree")),
    ]


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
            if datatype and date_value(text) == value:
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
            f"{shortened(text, 40)!r} is not an integer, though its datatype says {datatype.removeprefix(XSD)!r}.",
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
