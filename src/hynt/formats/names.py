"""What the name of an entity or a relation may be, in every format.

A name is any text that is not empty and holds no control characters; tab, line feed and carriage return are allowed
where the format can write them. Control characters are signs of a broken file, and could command a terminal that
prints them.
"""

from __future__ import annotations

import re

from hynt.errors import DataError, RecordProblem
from hynt.graph.fact import Fact, Number, Value

CONTROL_CHARACTERS = "".join(map(chr, (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)))
"""C0 and delete, without tab, line feed and carriage return."""

_UNUSABLE = re.compile(f"[{re.escape(CONTROL_CHARACTERS)}\ud800-\udfff]")


def shortened(text: str, length: int = 60) -> str:
    """A text for a message: whole if it is short, else its beginning."""
    return text if len(text) <= length else text[: length - 3] + "..."


def check_name(name: str, what: str) -> str:
    """The name, or a `RecordProblem`: "empty-name", "control-character", "not-unicode". `what` is "head", "tail" …"""
    if not name:
        raise empty_name(what)
    found = _UNUSABLE.search(name)
    if found is not None:
        raise _unusable(found[0], what)
    return name


def check_value(value: Value, what: str) -> None:
    """A value's name, or a number's literal and unit, which may be empty, held to the same rule."""
    if not isinstance(value, Number):
        check_name(value, what)
        return
    for text in (value.literal, value.unit):
        found = _UNUSABLE.search(text)
        if found is not None:
            raise _unusable(found[0], what)


def empty_name(what: str) -> RecordProblem:
    """The problem of a name that is missing between its separators."""
    return RecordProblem("empty-name", f"the {what} is empty.", "Give it a name, or remove the record.")


def check_names(fact: Fact) -> None:
    """A `RecordProblem` for a fact with a name that holds what no name may hold."""
    check_name(fact.head, "head")
    check_name(fact.relation, "relation")
    check_value(fact.tail, "tail")
    for relation, value in fact.qualifiers:
        check_name(relation, "qualifier relation")
        check_value(value, "qualifier value")


def check_writable(fact: Fact, *, where: str) -> None:
    """A `DataError` for a fact with a name that no text file may hold, before it is written."""
    try:
        check_names(fact)
    except RecordProblem as problem:
        raise DataError(
            f"cannot write {shortened(repr(fact), 300)}: {problem.what}", where=where, advice=problem.advice
        ) from None


def _unusable(character: str, what: str) -> RecordProblem:
    if "\ud800" <= character <= "\udfff":
        return RecordProblem(
            "not-unicode",
            f"the {what} holds half a character (U+{ord(character):04X}, a lone surrogate).",
            "Write the file as UTF-8 again from its source.",
        )
    return RecordProblem(
        "control-character",
        f"the {what} holds the control character U+{ord(character):04X}.",
        "Remove it: names are printable text.",
    )
