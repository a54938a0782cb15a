"""What a graph from Wikidata must hold, worked out in the most obvious way: one pass, plain dictionaries, no SQL."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hynt.graph.fact import Fact, Number, Qualifier, value_key
from hynt.graph.units.conversion import lookup, to_si
from hynt.graph.units.dates import UnreadableDate, parse_wikidata_time


def graph_of(
    dump: bytes, wanted: set[str] | None, *, max_qualifiers: int | None = None
) -> tuple[list[Fact], Counter[str]]:
    """The distinct facts in the order of the dump, and why others are missing."""
    entities = [json.loads(line.rstrip(b",")) for line in dump.splitlines() if line.startswith(b"{")]
    items = [held for held in entities if held.get("type") == "item" and (wanted is None or held["id"] in wanted)]
    known = {held["id"] for held in items} if wanted is None else wanted
    dropped: Counter[str] = Counter()
    candidates: list[tuple[str, str, Any, list[tuple[str, Any]]]] = []
    for item in items:
        for statements in (item["claims"] or {}).values():
            for statement in statements:
                found = _values(statement["mainsnak"])
                if statement["rank"] == "deprecated" or not found:
                    dropped["parsing"] += _size(statement["mainsnak"])
                    continue
                pairs = [
                    pair
                    for held in (statement.get("qualifiers") or {}).values()
                    for snak in held
                    for pair in _values(snak)
                ]
                candidates.extend((item["id"], relation, value, pairs) for relation, value in found)

    def usable(value: Any) -> bool:
        return (
            value in known if isinstance(value, str) else value.unit in ("", "date") or lookup(value.unit) is not None
        )

    units: dict[str, Counter[str]] = {}
    for _, relation, value, pairs in candidates:
        for name, held in [(relation, value), *pairs]:
            if isinstance(held, Number) and usable(held):
                units.setdefault(name, Counter())[_si(held).unit] += 1
    main = {name: min(counts, key=lambda unit: (-counts[unit], unit)) for name, counts in units.items()}

    def stays(relation: str, value: Any) -> bool:
        return usable(value) and (isinstance(value, str) or _si(value).unit == main[relation])

    facts: dict[Any, Fact] = {}
    for head, relation, value, pairs in candidates:
        if not stays(relation, value):
            dropped["judging"] += 1
            continue
        held: dict[Any, Qualifier] = {}
        for name, other in pairs:
            if stays(name, other):
                pair = Qualifier(name, _si(other))
                held.setdefault((name, value_key(pair.value)), pair)
        fact = Fact(head, relation, _si(value), tuple(held.values())[:max_qualifiers])
        if fact.key() in facts:
            dropped["duplicate"] += 1
        facts.setdefault(fact.key(), fact)
    return list(facts.values()), dropped


def _size(snak: dict[str, Any]) -> int:
    return 2 if snak.get("datavalue", {}).get("type") == "globecoordinate" else 1


def _values(snak: dict[str, Any]) -> list[tuple[str, Any]]:
    if snak["snaktype"] != "value":
        return []
    name, kind, value = snak["property"], snak["datavalue"]["type"], snak["datavalue"]["value"]
    if kind == "wikibase-entityid":
        return [(name, value["id"])]
    if kind == "quantity":
        unit = "" if value["unit"] == "1" else value["unit"].rpartition("/")[2]
        try:
            return [(name, Number(float(value["amount"]) + 0.0, value["amount"], unit))]
        except ValueError:
            return []
    if kind == "time":
        julian = value["calendarmodel"].endswith("Q1985786")
        try:
            year, _ = parse_wikidata_time(value["time"], value["precision"], julian=julian)
            return [(name, Number(year, value["time"], "date"))]
        except UnreadableDate:
            return []
    if kind == "globecoordinate":
        return [
            (f"{name}-{part}", Number(float(value[part]), json.dumps(value[part]), "degree"))
            for part in ("latitude", "longitude")
        ]
    return []


def _si(value: Any) -> Any:
    if isinstance(value, str) or value.unit in ("", "date"):
        return value
    number, unit = to_si(value.value, value.unit)
    return Number(number, value.literal, unit)
