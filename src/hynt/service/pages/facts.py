"""An entity's facts as a page shows them: one group a relation, and beside each fact the questions it suggests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hynt.graph.fact import DATE_UNIT
from hynt.service.pages.examples import written_number
from hynt.service.pages.questions import MOST_QUALIFIERS, AskedForm, address

POSITIONS = {
    "head": "What is known of it",
    "tail": "What points to it",
    "value": "Where it is the value of a qualifier",
}


def groups_of(facts: Sequence[Mapping[str, Any]], entity: str) -> list[dict[str, Any]]:
    """Facts by position and relation, in the order they come."""
    found: dict[str, dict[str, Any]] = {}
    for fact in facts:
        group = found.setdefault(
            fact["position"], {"title": POSITIONS[fact["position"]], "position": fact["position"], "relations": {}}
        )
        relation = group["relations"].setdefault(
            fact["relation"]["id"], {"name": fact["relation"]["name"], "id": fact["relation"]["id"], "facts": []}
        )
        relation["facts"].append(_view(fact, entity))
    return [{**group, "relations": list(group["relations"].values())} for group in found.values()]


def _view(fact: Mapping[str, Any], entity: str) -> dict[str, Any]:
    """A fact with the addresses that lead on from it."""
    pairs = tuple((pair["relation"]["id"], _written(pair["value"])) for pair in fact["qualifiers"])[:MOST_QUALIFIERS]
    form = AskedForm(fact["head"]["id"], fact["relation"]["id"], _written(fact["tail"]), pairs)
    dated = any(pair["value"].get("unit") == DATE_UNIT for pair in fact["qualifiers"])
    trend = None
    if "number" in fact["tail"] and dated:
        series = [pair for pair in fact["qualifiers"] if "id" in pair["value"]]  # entities tell series apart
        chosen = [
            part for pair in series for part in (("qualifier", pair["relation"]["id"]), ("value", pair["value"]["id"]))
        ]
        trend = address("/trends", [("head", fact["head"]["id"]), ("relation", fact["relation"]["id"]), *chosen])
    return {
        "head": _linked(fact["head"], entity),
        "tail": _linked(fact["tail"], entity),
        "split": fact["split"],
        "text": fact["text"],
        "qualifiers": [
            {"relation": pair["relation"]["name"], "value": _linked(pair["value"], entity)}
            for pair in fact["qualifiers"]
        ],
        "ask": form.with_blank("head" if fact["position"] == "tail" else "tail").address,
        "trend": trend,
    }


def _written(value: Mapping[str, Any]) -> str:
    return str(value["id"]) if "id" in value else written_number(float(value["number"]), str(value["unit"]))


def _linked(value: Mapping[str, Any], entity: str) -> dict[str, Any]:
    """A value with where it leads; numbers, and the entity of the page itself, lead nowhere."""
    if "id" not in value:
        return {"text": value["text"], "address": None, "is_number": True}
    leads = None if value["id"] == entity else address("/entity", [("id", value["id"])])
    return {"text": value["name"], "address": leads, "is_number": False}
