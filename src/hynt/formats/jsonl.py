"""Our own JSON lines: one fact per line.

    {"head": "Robert", "relation": "weight", "tail": {"number": 80, "unit": "kg"},
     "qualifiers": [["point in time", {"date": "1922-01-28"}], ["measured by", "Anna"]]}

A value is a string (an entity), a JSON number, `{"number": 80, "unit": "kg"}` or `{"date": "1922-01-28"}`; the last two
may carry the "literal" they came from. Qualifiers may also be an object, `{"relation": value}`, or a list of objects,
`{"relation": …, "value": …}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import RecordProblem
from hynt.formats.format import ReadOptions, ReadReport, write_text_folder
from hynt.formats.lines import facts_from_lines, kind_of, number_as_head, quoted, read_object
from hynt.formats.values import check_names, empty_name, read_date, spell
from hynt.graph.fact import Fact, Number, Qualifier, Value, as_pairs
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

_REQUIRED = frozenset({"head", "relation", "tail"})
_KEYS = ("head", "relation", "tail", "qualifiers")
_VALUE_ADVICE = 'A value is a string for an entity, a number, {"number": 80, "unit": "kg"} or {"date": "1922-01-28"}.'


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    return facts_from_lines(path, options, report, _parse)


def _parse(line: str) -> Fact | None:
    if not line.strip(" \t"):
        return None
    fact = fact_of(read_object(line))
    if "\\u" in line:  # the only way to write what the line itself may not hold
        check_names(fact)
    return fact


def fact_of(record: dict[str, Any]) -> Fact:
    """The fact that a JSON object is; its numbers are `Number`s already."""
    keys = record.keys()
    if not keys >= _REQUIRED:
        missing = next(key for key in _KEYS if key not in record)
        raise RecordProblem(
            "missing-key", f"the key {missing!r} is missing.", "A fact has a head, a relation and a tail."
        )
    if len(keys) > 4 or (len(keys) == 4 and "qualifiers" not in record):
        _check_keys(record, _KEYS)
    head = record["head"]
    if isinstance(head, Number):
        raise number_as_head(head.literal)
    return Fact(
        _name(head, "head"),
        _name(record["relation"], "relation"),
        _value(record["tail"], "tail"),
        _qualifiers(record["qualifiers"]) if "qualifiers" in record else (),
    )


def _check_keys(record: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in record:
        if key == "split" and "head" in known:
            raise RecordProblem(
                "unknown-key",
                "the key 'split' is not read: a file holds one split.",
                "Use train.jsonl, valid.jsonl, test.jsonl.",
            )
        if key not in known:
            raise RecordProblem("unknown-key", f"the key {quoted(key)} is not known here.", advice_on(key[:100], known))


def _name(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise RecordProblem("bad-value", f"the {what} is {kind_of(name)}.", f"The {what} is a name: a JSON string.")
    if not name:
        raise empty_name(what)
    return name


def _value(value: object, what: str) -> Value:
    if isinstance(value, str):
        if not value:
            raise empty_name(what)
        return value
    if isinstance(value, Number):
        return value
    if isinstance(value, dict):
        return _number_or_date(value, what)
    raise RecordProblem("bad-value", f"the {what} is {kind_of(value)}.", _VALUE_ADVICE)


def _number_or_date(record: dict[str, Any], what: str) -> Number:
    number = record.get("number")
    if isinstance(number, Number):
        _check_keys(record, ("number", "unit", "literal"))
        unit, literal = record.get("unit", ""), record.get("literal", number.literal)
    elif isinstance(date := record.get("date"), str):
        _check_keys(record, ("date", "literal"))
        number = read_date(date)
        unit, literal = number.unit, record.get("literal", number.literal)
    else:
        raise RecordProblem("bad-value", f"the {what} is an object with neither a number nor a date.", _VALUE_ADVICE)
    if not isinstance(unit, str) or not isinstance(literal, str):
        raise RecordProblem("bad-value", f"the unit or literal of the {what} is not a text.", _VALUE_ADVICE)
    return Number(number.value, literal, unit)


def _qualifiers(given: object) -> tuple[Qualifier, ...]:
    pairs: list[tuple[object, object]] = []
    if isinstance(given, dict):
        pairs += as_pairs(given)
    elif isinstance(given, list):
        pairs += (_pair(one) for one in given)
    else:
        raise RecordProblem(
            "bad-value",
            f"the qualifiers are {kind_of(given)}.",
            'Write [["relation", value], …] or {"relation": value, …}.',
        )
    return tuple(
        Qualifier(_name(relation, "qualifier relation"), _value(value, "qualifier value")) for relation, value in pairs
    )


def _pair(given: object) -> tuple[object, object]:
    if isinstance(given, dict):
        _check_keys(given, ("relation", "value"))
        if "value" in given and "relation" in given:
            return given["relation"], given["value"]
    elif isinstance(given, list) and len(given) == 2:
        return given[0], given[1]
    raise RecordProblem(
        "qualifier-without-value",
        "a qualifier is not a pair of a relation and a value.",
        'Write ["relation", value] or {"relation": …, "value": …}.',
    )


def write_graph(graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
    """A folder with a file for each split, and what is known of entities and relations beside them."""
    return write_text_folder(graph, path, ".jsonl", write_fact)


def write_fact(fact: Fact) -> str:
    qualifiers = ", ".join(f"[{_text(relation)}, {_json(value)}]" for relation, value in fact.qualifiers)
    more = f', "qualifiers": [{qualifiers}]' if qualifiers else ""
    return f'{{"head": {_text(fact.head)}, "relation": {_text(fact.relation)}, "tail": {_json(fact.tail)}{more}}}'


def _json(value: Value) -> str:
    if not isinstance(value, Number):
        return _text(value)
    text, is_date, unit, literal = spell(value)
    parts = [f'"date": {_text(text)}' if is_date else f'"number": {text}']
    if unit:
        parts.append(f'"unit": {_text(unit)}')
    if literal is not None:
        parts.append(f'"literal": {_text(literal)}')
    return text if parts == [f'"number": {text}'] else "{" + ", ".join(parts) + "}"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
