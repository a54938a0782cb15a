"""The values of Wikidata's snaks as values of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from hynt.creation.rows import ParsedValue
from hynt.creation.sources.wikidata_structures import (
    IDENTITY,
    Coordinate,
    EntityIdentity,
    Monolingual,
    Quantity,
    Snak,
    Time,
)
from hynt.errors import RecordProblem
from hynt.formats.names import check_name
from hynt.formats.numbers import parse_number
from hynt.graph.fact import DATE_UNIT
from hynt.graph.units.dates import UnreadableDate, parse_wikidata_time

DEGREE = "degree"
LATITUDE, LONGITUDE = "-latitude", "-longitude"
_JULIAN = "Q1985786"
_EARTH = "Q2"
_ADDRESSES = ("http://www.wikidata.org/entity/", "https://www.wikidata.org/entity/")
_LETTERS = {"item": "Q", "property": "P", "lexeme": "L", "mediainfo": "M", "entity-schema": "E"}
_YEAR_PRECISION = 9

Pieces = list[tuple[str, ParsedValue]]
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
    """Turns snaks into values. `note` hears of what is kept in a simpler form than the dump has it."""

    def __init__(self, keep_text: bool) -> None:
        self._keep_text = keep_text
        self._readers: dict[str, Callable[[msgspec.Raw, Callable[[str], None]], Pieces]] = {
            "wikibase-entityid": self._entity,
            "quantity": self._number,
            "time": self._date,
            "globecoordinate": self._place,
            "string": self._string,
            "monolingualtext": self._sentence,
        }

    def pieces(self, snak: Snak, note: Callable[[str], None]) -> Pieces:
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

    def _entity(self, raw: msgspec.Raw, _note: Callable[[str], None]) -> Pieces:
        found = _entity_identity(raw)
        identity = found.identity or f"{_LETTERS.get(found.kind, '')}{found.numeric}"
        return [("", ParsedValue("entity", checked_identity(identity)))]

    def _number(self, raw: msgspec.Raw, note: Callable[[str], None]) -> Pieces:
        found = _quantity(raw)
        if found.upper_bound is not None or found.lower_bound is not None:
            note("bounds-left-out")
        unit = "" if found.unit == "1" else checked_identity(_bare(found.unit))
        return [("", ParsedValue("number", found.amount, parse_number(found.amount) + 0.0, unit))]

    def _date(self, raw: msgspec.Raw, note: Callable[[str], None]) -> Pieces:
        found = _time(raw)
        try:
            value, _ = parse_wikidata_time(found.time, found.precision, julian=_bare(found.calendar) == _JULIAN)
        except UnreadableDate:
            raise NoValue("bad-date") from None
        if found.precision < _YEAR_PRECISION:
            note("coarser-than-a-year")
        return [("", ParsedValue("number", found.time, value + 0.0, DATE_UNIT))]

    def _place(self, raw: msgspec.Raw, note: Callable[[str], None]) -> Pieces:
        found = _coordinate(raw)
        if found.globe and _bare(found.globe) != _EARTH:
            note("not-on-earth")
        return [(LATITUDE, _degrees(found.latitude)), (LONGITUDE, _degrees(found.longitude))]

    def _string(self, raw: msgspec.Raw, _note: Callable[[str], None]) -> Pieces:
        if not self._keep_text:
            raise NoValue("text")
        return [("", ParsedValue("text", check_name(f'"{_text(raw)}"', "text")))]

    def _sentence(self, raw: msgspec.Raw, _note: Callable[[str], None]) -> Pieces:
        if not self._keep_text:
            raise NoValue("text")
        found = _monolingual(raw)
        return [("", ParsedValue("text", check_name(f'"{found.text}"@{found.language}', "text")))]


def checked_identity(identity: str) -> str:
    """An id in Wikidata's own form; anything else is a RecordProblem."""
    if IDENTITY.fullmatch(identity) is None:
        raise RecordProblem("bad-value", f"{identity[:40]!r} is no Wikidata id.", "Get the dump again.")
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
