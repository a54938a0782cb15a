"""A question as Python users write it: a fact, a tuple or a mapping, taken apart. No torch here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hynt.errors import UsageError
from hynt.names import advice_on

_KEYS = ("head", "relation", "tail", "qualifiers")


class QuestionParts(NamedTuple):
    """The components of a question as they were written, with "?" for the hole."""

    head: Any
    relation: Any
    tail: Any
    qualifiers: Any


def parts_of(question: Any, where: str = "") -> QuestionParts:
    """From a `Fact`, `(head, relation, tail)`, `(head, relation, tail, qualifiers)` or a mapping with these keys."""
    if isinstance(question, Mapping):
        for key in question:
            if key not in _KEYS:
                raise UsageError(
                    f"{key!r:.60} is no part of a question.", where=where, advice=advice_on(str(key)[:100], _KEYS)
                )
        head, relation, tail, qualifiers = (question.get(key) for key in _KEYS)
        return QuestionParts(head, relation, tail, () if qualifiers is None else qualifiers)
    if isinstance(question, str) or not isinstance(question, Sequence) or len(question) not in (3, 4):
        raise UsageError(
            f"{question!r:.60} is no fact.",
            where=where,
            advice="Give (head, relation, tail) or (head, relation, tail, qualifiers).",
        )
    return QuestionParts(question[0], question[1], question[2], question[3] if len(question) == 4 else ())


def wishes_of(candidates: str | Sequence[str | Iterable[str]]) -> list[str | Iterable[str]]:
    """What `candidates_for` takes: "type", "unknown", a list of names, or several of these in a list."""
    wishes: list[str | Iterable[str]] = [candidates] if isinstance(candidates, str) else list(candidates)
    if wishes and all(isinstance(wish, str) and wish not in ("type", "unknown") for wish in wishes):
        return [[str(wish) for wish in wishes]]  # a plain list of names
    return wishes
