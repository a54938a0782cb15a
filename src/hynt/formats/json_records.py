"""One JSON object a line, read strictly: what both JSON formats stand on.

Numbers come out as `Number` with the literal as written. Refused: `NaN` and `Infinity`, a key given twice, nesting
without end.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from hynt.errors import RecordProblem
from hynt.formats.names import shortened
from hynt.formats.numbers import check_finite, parse_number
from hynt.graph.fact import Number


def read_object(line: str) -> dict[str, Any]:
    """The object on a line; a `RecordProblem` for anything else."""
    try:
        record = _DECODER.decode(line)
    except json.JSONDecodeError as problem:
        raise RecordProblem(
            "bad-json", f"no valid JSON at character {problem.colno}: {problem.msg}.", "Write one JSON object a line."
        ) from None
    except RecursionError:
        raise RecordProblem("too-deep", "the JSON is nested too deeply.", "A fact needs three levels.") from None
    if not isinstance(record, dict):
        raise RecordProblem("not-an-object", f"{kind_of(record)} instead of a JSON object.", "Write one object a line.")
    return record


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    kinds = {
        str: "a text",
        bool: "true or false",
        list: "a list",
        dict: "an object",
        Number: "a number",
        type(None): "null",
    }
    return kinds.get(type(value), "something else")


def shown(name: str) -> str:
    """A name for a message, shortened."""
    return repr(shortened(name))


def _number(text: str) -> Number:
    return Number(parse_number(text), text)


def _constant(text: str) -> NoReturn:
    check_finite(float(text), text)
    raise AssertionError(text)  # json calls this for NaN and the infinities only


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise RecordProblem(
            "duplicate-key",
            f"the key {shown(twice)} is given twice.",
            "Give it once, with a list of values if need be.",
        )
    return record


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_float=_number, parse_int=_number, parse_constant=_constant
)
