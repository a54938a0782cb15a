"""Lines in the exact shape of Wikidata's JSON dumps, with all that a real line has: hashes, references, sitelinks."""

from __future__ import annotations

import hashlib
import json
from typing import Any

Json = dict[str, Any]


def compact(value: Any) -> bytes:
    """As the dumps are written: no spaces, non-ASCII characters escaped."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()


def item_value(identity: str) -> Json:
    return {
        "value": {"entity-type": "item", "numeric-id": int(identity[1:]), "id": identity},
        "type": "wikibase-entityid",
    }


def quantity_value(amount: str, unit: str = "1", bounds: tuple[str, str] | None = None) -> Json:
    address = unit if unit == "1" else f"http://www.wikidata.org/entity/{unit}"
    value = {"amount": amount, "unit": address}
    if bounds is not None:
        value |= {"upperBound": bounds[1], "lowerBound": bounds[0]}
    return {"value": value, "type": "quantity"}


def time_value(time: str, precision: int = 11, *, julian: bool = False) -> Json:
    calendar = "Q1985786" if julian else "Q1985727"
    return {
        "value": {
            "time": time,
            "timezone": 0,
            "before": 0,
            "after": 0,
            "precision": precision,
            "calendarmodel": f"http://www.wikidata.org/entity/{calendar}",
        },
        "type": "time",
    }


def coordinate_value(latitude: float, longitude: float, globe: str = "Q2") -> Json:
    return {
        "value": {
            "latitude": latitude,
            "longitude": longitude,
            "altitude": None,
            "precision": 0.0001,
            "globe": f"http://www.wikidata.org/entity/{globe}",
        },
        "type": "globecoordinate",
    }


def string_value(text: str) -> Json:
    return {"value": text, "type": "string"}


def monolingual_value(text: str, language: str) -> Json:
    return {"value": {"text": text, "language": language}, "type": "monolingualtext"}


def snak(property_id: str, value: Json | None, kind: str = "value", datatype: str = "wikibase-item") -> Json:
    held: Json = {
        "snaktype": kind,
        "property": property_id,
        "hash": hashlib.sha1(repr((property_id, value)).encode()).hexdigest(),
    }
    if value is not None:
        held["datavalue"] = value
    return held | {"datatype": datatype}


def statement(
    property_id: str,
    value: Json | None,
    *,
    kind: str = "value",
    rank: str = "normal",
    qualifiers: list[Json] | None = None,
) -> Json:
    main = snak(property_id, value, kind)
    del main["hash"]  # main snaks of dumps have none
    held: Json = {"mainsnak": main, "type": "statement"}
    if qualifiers:
        grouped: dict[str, list[Json]] = {}
        for qualifier in qualifiers:
            grouped.setdefault(qualifier["property"], []).append(qualifier)
        held |= {"qualifiers": grouped, "qualifiers-order": list(grouped)}
    held |= {"id": f"q1${hashlib.md5(repr((property_id, value)).encode()).hexdigest()}", "rank": rank}
    reference = {
        "hash": "fa278ebfc458360e5aed63d5058cca83c46134f1",
        "snaks": {"P143": [snak("P143", item_value("Q328"))]},
        "snaks-order": ["P143"],
    }
    return held | {"references": [reference]}


def entity(identity: str, statements: list[Json], *, label: str | None = "", others: Json | None = None) -> Json:
    """An item as dumps have it; `label` "" makes one up and None leaves labels empty, which dumps write as []."""
    claims: dict[str, list[Json]] = {}
    for held in statements:
        claims.setdefault(held["mainsnak"]["property"], []).append(held)
    name = f"the {identity}" if label == "" else label
    labels: Any = {"de": {"language": "de", "value": f"das {name}"}, "en": {"language": "en", "value": name}}
    return {
        "type": "item",
        "id": identity,
        "labels": labels if name is not None else [],
        "descriptions": [],
        "aliases": {"en": [{"language": "en", "value": "another name"}]},
        "claims": claims or [],
        "sitelinks": {"enwiki": {"site": "enwiki", "title": str(name), "badges": []}},
        "pageid": 123,
        "ns": 0,
        "title": identity,
        "lastrevid": 1234567890,
        "modified": "2026-01-02T03:04:05Z",
        **(others or {}),
    }


def property_entity(identity: str, label: str, datatype: str, description: str = "") -> Json:
    return {
        "type": "property",
        "datatype": datatype,
        "id": identity,
        "labels": {"en": {"language": "en", "value": label}},
        "descriptions": {"en": {"language": "en", "value": description}} if description else {},
        "aliases": [],
        "claims": [],
        "pageid": 5,
        "ns": 120,
        "title": f"Property:{identity}",
        "lastrevid": 99,
        "modified": "2026-01-02T03:04:05Z",
    }


def dump(entities: list[Json | bytes], *, line_end: bytes = b"\n") -> bytes:
    """A whole dump: a JSON array with one entity per line."""
    lines = [held if isinstance(held, bytes) else compact(held) for held in entities]
    return b"[" + line_end + (b"," + line_end).join(lines) + line_end + b"]" + line_end
