"""What `hynt`, `stare` and `tsv` share: head, relation, tail, then pairs of a qualifier relation and its value."""

from __future__ import annotations

from collections.abc import Sequence

from hynt.errors import RecordProblem
from hynt.formats.names import empty_name, shortened

_MAIN = ("head", "relation", "tail")


def wrong_shape(cells: Sequence[str], separator: str) -> RecordProblem:
    """What is wrong with a row that has too few cells, a qualifier without a value, or an empty cell."""
    count = len(cells)
    if count < 3:
        found = "1 column" if count == 1 else f"{count} columns"
        return RecordProblem(
            "missing-columns",
            f"{found} where a fact has at least 3: head, relation, tail.",
            f"Separate them with {separator}.",
        )
    if count % 2 == 0:
        return RecordProblem(
            "qualifier-without-value",
            f"the last qualifier, {shortened(cells[-1])!r}, has no value.",
            "After head, relation and tail come pairs: a qualifier's relation and its value.",
        )
    return empty_name(place(cells.index("")))


def place(index: int) -> str:
    """A column in words: "head", "qualifier 2's value" …"""
    if index < 3:
        return _MAIN[index]
    number, is_value = divmod(index - 3, 2)
    return f"qualifier {number + 1}'s {'value' if is_value else 'relation'}"


def number_as_head(text: str) -> RecordProblem:
    """The problem of a fact about a number: only entities have facts."""
    return RecordProblem(
        "number-as-head",
        f"the head is a number: {shortened(text)}",
        "A head is an entity: give it a name, or turn the fact around.",
    )
