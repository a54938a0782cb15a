"""The values of Wikidata's snaks as values of a graph."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import numpy as np

from hynt.creation.reading import Scan
from hynt.creation.sources.source import ParsedValue
from hynt.errors import RecordProblem
from hynt.formats.values import check_name, parse_number
from hynt.graph.fact import DATE_UNIT
from hynt.graph.units.dates import UnreadableDate, parse_wikidata_time

# The shape of Wikidata's JSON: only what a graph needs, typed; everything else is skipped while decoding.
#
# Values stay undecoded until they are wanted: most statements of a dump are identifiers and text, which a graph drops.
# An empty object comes as [] in dumps, because PHP cannot tell them apart.

IDENTITY = re.compile(r"[QPLM][1-9][0-9]{0,17}(?:-[FS][1-9][0-9]{0,8})?|E[1-9][0-9]{0,17}")
"""Items, properties, lexemes with their forms and senses, media, schemas."""


class DataValue(msgspec.Struct, gc=False):
    type: str
    value: msgspec.Raw


class Snak(msgspec.Struct, gc=False):
    """A property and its value: `value`, `somevalue` (exists, unknown) or `novalue` (known not to exist)."""

    snaktype: str
    property: str
    datavalue: DataValue | None = None
    datatype: str = ""


class Statement(msgspec.Struct, gc=False):
    mainsnak: Snak
    rank: str = "normal"
    qualifiers: dict[str, list[Snak]] | list[Any] = msgspec.field(default_factory=dict)


class Redirect(msgspec.Struct, gc=False):
    """What the API adds when it was asked for an old id."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")


class Label(msgspec.Struct, gc=False):
    value: str


class EntityIdentity(msgspec.Struct, gc=False):
    identity: str = msgspec.field(name="id", default="")
    kind: str = msgspec.field(name="entity-type", default="")
    numeric: int = msgspec.field(name="numeric-id", default=0)  # dumps before 2017 have no id beside it


class Quantity(msgspec.Struct, gc=False):
    amount: str
    unit: str = "1"
    upper_bound: str | None = msgspec.field(name="upperBound", default=None)
    lower_bound: str | None = msgspec.field(name="lowerBound", default=None)


class Time(msgspec.Struct, gc=False):
    time: str
    precision: int
    calendar: str = msgspec.field(name="calendarmodel", default="")


class Coordinate(msgspec.Struct, gc=False):
    latitude: msgspec.Raw  # kept as written
    longitude: msgspec.Raw
    globe: str = ""


class Monolingual(msgspec.Struct, gc=False):
    text: str
    language: str


class Envelope(msgspec.Struct, gc=False):
    """What the API and Special:EntityData answer: entities by the id that was asked for."""

    entities: dict[str, msgspec.Raw] | None = None  # None: this is an entity itself


@cache
def texts_structure(language: str) -> Any:
    """Labels, or descriptions, decoded in one language, and in `mul`, which stands for all of them."""
    texts = msgspec.defstruct(
        "Texts",
        [
            ("chosen", Label | None, msgspec.field(name=language, default=None)),
            *([("shared", Label | None, msgspec.field(name="mul", default=None))] if language != "mul" else []),
        ],
        gc=False,
    )
    return texts | list[Any] | None


@cache
def entity_structure(language: str) -> type[Any]:
    """An entity with its labels in one language; descriptions are decoded only where they are needed."""
    return msgspec.defstruct(
        "Entity",
        [
            ("id", str, ""),
            ("type", str, "item"),
            ("labels", texts_structure(language), None),
            ("descriptions", msgspec.Raw, msgspec.Raw(b"null")),
            ("claims", dict[str, list[Statement]] | list[Any] | None, None),
            ("redirects", Redirect | None, None),
            ("missing", Any, None),
        ],
        gc=False,
    )


DEGREE = "degree"
LATITUDE, LONGITUDE = "-latitude", "-longitude"
_JULIAN = "Q1985786"
_EARTH = "Q2"
_ADDRESSES = ("http://www.wikidata.org/entity/", "https://www.wikidata.org/entity/")
_LETTERS = {"item": "Q", "property": "P", "lexeme": "L", "mediainfo": "M", "entity-schema": "E"}
_YEAR_PRECISION = 9

SnakParts = list[tuple[str, ParsedValue]]
"""What a snak becomes: one value, or the two numbers of a coordinate, each with an ending for the property's name."""

_entity_identity = msgspec.json.Decoder(EntityIdentity).decode
_quantity = msgspec.json.Decoder(Quantity).decode
_time = msgspec.json.Decoder(Time).decode
_coordinate = msgspec.json.Decoder(Coordinate).decode
_monolingual = msgspec.json.Decoder(Monolingual).decode
_text = msgspec.json.Decoder(str).decode


class NoValue(Exception):
    """A snak without a value that a graph could hold; `reason` is what it is counted under."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SnakValues:
    """Turns snaks into values. `note` is told what is kept in a simpler form than the dump has it."""

    def __init__(self, keep_text: bool) -> None:
        self._keep_text = keep_text
        self._readers: dict[str, Callable[[msgspec.Raw, Callable[[str], None]], SnakParts]] = {
            "wikibase-entityid": self._entity,
            "quantity": self._number,
            "time": self._date,
            "globecoordinate": self._place,
            "string": self._string,
            "monolingualtext": self._sentence,
        }

    def pieces(self, snak: Snak, note: Callable[[str], None]) -> SnakParts:
        """The values of a snak; NoValue where there is none."""
        if snak.snaktype != "value":
            raise NoValue("unknown-value" if snak.snaktype == "somevalue" else "no-value")
        data = snak.datavalue
        if data is None:
            raise NoValue("bad-value")
        reader = self._readers.get(data.type)
        if reader is None:
            raise NoValue("unknown-datatype")
        try:
            return reader(data.value, note)
        except (msgspec.MsgspecError, ValueError):
            raise NoValue("bad-value") from None
        except RecordProblem as problem:
            raise NoValue(problem.reason) from None

    def count(self, snak: Snak) -> int:
        """How many values a snak would give, without reading it: a coordinate counts as two."""
        return 2 if snak.datavalue is not None and snak.datavalue.type == "globecoordinate" else 1

    def _entity(self, raw: msgspec.Raw, _note: Callable[[str], None]) -> SnakParts:
        found = _entity_identity(raw)
        identity = found.identity or f"{_LETTERS.get(found.kind, '')}{found.numeric}"
        return [("", ParsedValue("entity", checked_identity(identity)))]

    def _number(self, raw: msgspec.Raw, note: Callable[[str], None]) -> SnakParts:
        found = _quantity(raw)
        if found.upper_bound is not None or found.lower_bound is not None:
            note("bounds-left-out")
        unit = "" if found.unit == "1" else checked_identity(_bare(found.unit))
        return [("", ParsedValue("number", found.amount, parse_number(found.amount) + 0.0, unit))]

    def _date(self, raw: msgspec.Raw, note: Callable[[str], None]) -> SnakParts:
        found = _time(raw)
        try:
            value, _ = parse_wikidata_time(found.time, found.precision, julian=_bare(found.calendar) == _JULIAN)
        except UnreadableDate:
            raise NoValue("bad-date") from None
        if found.precision < _YEAR_PRECISION:
            note("coarser-than-a-year")
        return [("", ParsedValue("number", found.time, value + 0.0, DATE_UNIT))]

    def _place(self, raw: msgspec.Raw, note: Callable[[str], None]) -> SnakParts:
        found = _coordinate(raw)
        if found.globe and _bare(found.globe) != _EARTH:
            note("not-on-earth")
        return [(LATITUDE, _degrees(found.latitude)), (LONGITUDE, _degrees(found.longitude))]

    def _string(self, raw: msgspec.Raw, _note: Callable[[str], None]) -> SnakParts:
        if not self._keep_text:
            raise NoValue("text")
        return [("", ParsedValue("text", check_name(f'"{_text(raw)}"', "text")))]

    def _sentence(self, raw: msgspec.Raw, _note: Callable[[str], None]) -> SnakParts:
        if not self._keep_text:
            raise NoValue("text")
        found = _monolingual(raw)
        return [("", ParsedValue("text", check_name(f'"{found.text}"@{found.language}', "text")))]


def checked_identity(identity: str) -> str:
    """An id in Wikidata's own form; anything else is a RecordProblem."""
    if IDENTITY.fullmatch(identity) is None:
        raise RecordProblem("bad-value", f"{identity[:40]!r} is not a Wikidata id.", "Get the dump again.")
    return identity


def _bare(address: str) -> str:
    for start in _ADDRESSES:
        address = address.removeprefix(start)
    return address


def _degrees(raw: Any) -> ParsedValue:
    literal = bytes(raw).decode("ascii", "strict")
    value = parse_number(literal)
    if not math.isfinite(value) or abs(value) > 360:
        raise NoValue("bad-value")
    return ParsedValue("number", literal, value + 0.0, DEGREE)


# Wikidata's classes: which lines may be of a type, told from their bytes, and what the subclasses of a type are.

INSTANCE_OF, SUBCLASS_OF = "P31", "P279"
_FEW_TYPES = 4
_CLAIMS = b'"%s":[' % INSTANCE_OF.encode()
_NEXT_CLAIMS = b'],"P'
_NUMBER = re.compile(rb'"(?:id":"Q|numeric-id":)([0-9]+)')

TypeTest = Callable[[bytes, int, int], bool]
"""Whether the line from one place to another of a block may be of a type; a line that may, may still not be."""


class _Class(msgspec.Struct, gc=False):
    id: str
    claims: dict[str, list[Statement]] | list[Any] | None = None


def type_test(types: frozenset[str]) -> TypeTest | None:
    """A quick test that never says no to a line of one of the types; None where every line will do."""
    if not types:
        return None
    if len(types) > _FEW_TYPES:
        return _by_claims(frozenset(name[1:].encode() for name in types))
    needles: list[bytes] = []
    for name in sorted(types):
        number = name[1:].encode()
        needles += [b'"%s"' % name.encode(), b'"numeric-id":%s,' % number, b'"numeric-id":%s}' % number]

    def by_needles(block: bytes, start: int, end: int) -> bool:
        return any(block.find(needle, start, end) >= 0 for needle in needles)

    return by_needles


def _by_claims(numbers: frozenset[bytes]) -> TypeTest:
    """For many types: look at every id in what the line is an instance of."""

    def test(block: bytes, start: int, end: int) -> bool:
        first = block.find(_CLAIMS, start, end)
        if first < 0:
            return False
        last = block.find(_NEXT_CLAIMS, first, end)
        return not numbers.isdisjoint(_NUMBER.findall(block, first, end if last < 0 else last))

    return test


def with_subclasses(types: frozenset[str], dump: Scan) -> frozenset[str]:
    """The types and all that stand below them, however far."""
    decode = msgspec.json.Decoder(_Class).decode
    identity_of = msgspec.json.Decoder(EntityIdentity).decode
    children, parents = array("q"), array("q")  # numbers of items: a dictionary would take ten times the room
    for line in dump.lines_with(b'"%s":[' % SUBCLASS_OF.encode()):
        try:
            entity = decode(line.strip().removesuffix(b","))
            claims = entity.claims if isinstance(entity.claims, dict) else {}
            for statement in claims.get(SUBCLASS_OF, ()):
                value = statement.mainsnak.datavalue
                if statement.rank != "deprecated" and statement.mainsnak.snaktype == "value" and value is not None:
                    found = identity_of(value.value)
                    child, parent = int(entity.id[1:]), int(found.identity[1:] or found.numeric)
                    children.append(child)
                    parents.append(parent)
        except (msgspec.MsgspecError, ValueError, OverflowError):
            continue  # a line that cannot be read is counted when it is parsed
    below, above = np.frombuffer(children, dtype=np.int64), np.frombuffer(parents, dtype=np.int64)
    reached = np.array(sorted(int(name[1:]) for name in types), dtype=np.int64)
    newest = reached
    while len(newest):
        newest = np.setdiff1d(below[np.isin(above, newest)], reached)
        reached = np.union1d(reached, newest)
    return frozenset(f"Q{number}" for number in reached.tolist())
