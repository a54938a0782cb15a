"""From the parts of a question to words, and from words to an answer of it. No torch here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hynt.asking.question import BLANK, AskedFact
from hynt.errors import UsageError, located
from hynt.graph.components import HEAD, NUMBER_KIND, RELATION_KIND, TAIL, qualifier_of, relation_position
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import EntityPosition, NameLookup
from hynt.graph.sentences import format_quantity
from hynt.names import advice_on


def qualifier_texts(graph: KnowledgeGraph, asked: AskedFact) -> list[str]:
    """Each qualifier in words, with ? for the blank."""
    found = []
    for number in range(int(asked.table.offsets[1])):
        first = relation_position(number)
        found.append(" ".join(said(graph, asked, place) for place in (first, first + 1)))
    return found


def said(graph: KnowledgeGraph, asked: AskedFact, place: int) -> str:
    """What stands at a position, in words; ? for the blank."""
    table = asked.table
    if place == asked.position:
        return BLANK
    if place == HEAD:
        return graph.entity_labels[int(table.head[0])]
    slot = qualifier_of(place)
    relation = int(table.relation[0] if place <= TAIL else table.qualifier_relation[slot])
    if place % 2:
        return graph.relation_labels[relation]
    named = graph.relations[relation]
    if named.kind == "number":
        unit = "" if asked.tried is not None and place == asked.position + 1 else named.unit
        return format_quantity(float(table.tail_number[0] if place == TAIL else table.qualifier_number[slot]), unit)
    return graph.entity_labels[int(table.tail_entity[0] if place == TAIL else table.qualifier_entity[slot])]


def answer_id(asked: AskedFact, answer: str, names: NameLookup) -> int:
    """The id of an answer that a person names."""
    with located("answer"):
        if asked.kind == NUMBER_KIND:
            raise UsageError("the question asks for a number.", advice="Leave the answer out.")
        if asked.kind == RELATION_KIND:
            return names.relation(answer)
        place: EntityPosition = "head" if asked.position == HEAD else "tail" if asked.position == TAIL else "value"
        return names.entity(answer, place, asked.relation)


# A question as Python users write it: a fact, a tuple or a mapping, taken apart. No torch here.

_KEYS = ("head", "relation", "tail", "qualifiers")


class QuestionParts(NamedTuple):
    """The components of a question as they were written, with "?" for the blank."""

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
        return QuestionParts(head, relation, tail, () if qualifiers is None else as_pairs(qualifiers))
    if isinstance(question, str) or not isinstance(question, Sequence) or len(question) not in (3, 4):
        raise UsageError(
            f"{question!r:.60} is no fact.",
            where=where,
            advice="Give (head, relation, tail) or (head, relation, tail, qualifiers).",
        )
    return QuestionParts(question[0], question[1], question[2], as_pairs(question[3]) if len(question) == 4 else ())


def asked_parts(
    fact: Any = None, relation: Any = None, tail: Any = None, qualifiers: Any = (), head: Any = None
) -> QuestionParts:
    """A question given whole, as a fact, tuple or mapping, or by its parts; the head may come first or by its name."""
    if isinstance(fact, str) and head is None and (relation is not None or tail is not None):
        fact, head = None, fact
    if fact is None:
        return QuestionParts(head, relation, tail, as_pairs(qualifiers))
    if (head, relation, tail) != (None, None, None) or qualifiers:
        raise UsageError("the question was given twice.", advice="Give the fact, or its parts.")
    return parts_of(fact)


def as_pairs(qualifiers: Any) -> Any:
    """Qualifiers as pairs: those of a mapping from relation to value, where a list gives a relation several values;
    anything else as it is.
    """
    if not isinstance(qualifiers, Mapping):
        return qualifiers
    several = ((name, value if isinstance(value, list) else [value]) for name, value in qualifiers.items())
    return [(name, value) for name, values in several for value in values]


def rules_of(candidates: str | Sequence[str | Iterable[str]]) -> list[str | Iterable[str]]:
    """What `candidates_for` takes: "type", "unknown", a list of names, or several of these in a list."""
    rules: list[str | Iterable[str]] = [candidates] if isinstance(candidates, str) else list(candidates)
    if rules and all(isinstance(rule, str) and rule not in ("type", "unknown") for rule in rules):
        return [[str(rule) for rule in rules]]  # a plain list of names
    return rules
