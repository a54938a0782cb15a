"""The shape of Wikidata's JSON: only what a graph needs, typed; everything else is skipped while decoding.

Values stay undecoded until they are wanted: most statements of a dump are identifiers and text, which a graph drops.
An empty object comes as [] in dumps, because PHP cannot tell them apart.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

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

    entities: dict[str, msgspec.Raw]


@cache
def entity_structure(language: str) -> type[Any]:
    """An entity whose labels are decoded in one language, and in `mul`, which stands for all of them."""
    labels = msgspec.defstruct(
        "Labels",
        [
            ("chosen", Label | None, msgspec.field(name=language, default=None)),
            *([("shared", Label | None, msgspec.field(name="mul", default=None))] if language != "mul" else []),
        ],
        gc=False,
    )
    return msgspec.defstruct(
        "Entity",
        [
            ("id", str, ""),
            ("type", str, "item"),
            ("labels", labels | list[Any] | None, None),
            ("claims", dict[str, list[Statement]] | list[Any] | None, None),
            ("redirects", Redirect | None, None),
            ("missing", Any, None),
        ],
        gc=False,
    )
