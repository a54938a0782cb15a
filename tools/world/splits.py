"""Train, valid and test: 8:1:1 by the content of each fact, so that a new fact moves no other."""

from __future__ import annotations

import hashlib
import json

from tools.world.relations import RELATIONS
from tools.world.statement import Date, Entity, Statement, Value

SPLITS = ("train", "valid", "test")


def value_as_json(relation: str, value: Value) -> object:
    """An entity as its id, a number with its unit, a date as a date."""
    if isinstance(value, Entity):
        return value.id
    if isinstance(value, Date):
        return {"date": value.text}
    whole = value.value == value.value.to_integral_value()
    number: object = int(value.value) if whole else float(value.value)
    return {"number": number, "unit": RELATIONS[relation].unit}


def fact_as_json(statement: Statement) -> str:
    """The fact as one line of JSON, the same for the same fact whatever the order of its qualifiers."""
    pairs = [[relation, value_as_json(relation, value)] for relation, value in statement.qualifiers]
    fact = {
        "head": statement.head.id,
        "relation": statement.relation,
        "tail": value_as_json(statement.relation, statement.tail),
        "qualifiers": sorted(pairs, key=lambda pair: json.dumps(pair, ensure_ascii=False)),
    }
    return json.dumps(fact, ensure_ascii=False)


def split_of(line: str) -> str:
    """The split that the fact's content alone decides."""
    draw = int.from_bytes(hashlib.sha256(line.encode("utf-8")).digest()[:8], "big") / 2**64
    return "train" if draw < 0.8 else "valid" if draw < 0.9 else "test"


def _parts(statement: Statement) -> set[tuple[str, str]]:
    """The entities and relations of a statement."""
    pairs = ((statement.relation, statement.tail), *statement.qualifiers)
    entities = {("entity", value.id) for _, value in pairs if isinstance(value, Entity)}
    return entities | {("entity", statement.head.id)} | {("relation", relation) for relation, _ in pairs}


def split(statements: list[Statement]) -> tuple[dict[str, list[tuple[str, Statement]]], int]:
    """The splits, each sorted by its lines, and how many facts moved to train because train lacked a part of them."""
    lines = sorted((fact_as_json(statement), statement) for statement in statements)
    splits: dict[str, list[tuple[str, Statement]]] = {name: [] for name in SPLITS}
    known: set[tuple[str, str]] = set()
    for line, statement in lines:
        splits[split_of(line)].append((line, statement))
        if split_of(line) == "train":
            known |= _parts(statement)
    moved = 0
    for name in ("valid", "test"):
        stays = []
        for line, statement in splits[name]:
            if _parts(statement) <= known:
                stays.append((line, statement))
            else:
                splits["train"].append((line, statement))
                known |= _parts(statement)
                moved += 1
        splits[name] = stays
    splits["train"].sort(key=lambda pair: pair[0])
    return splits, moved
