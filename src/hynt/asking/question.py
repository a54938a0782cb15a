"""A question: a fact with one blank, written as a person writes it and resolved against a graph. No torch here.

ask(graph, head="Japan", relation="population", tail="?", qualifiers=[("point in time", "1995-06")])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hynt.asking.columns import AskedFact
from hynt.asking.encoding import QuestionEncoder
from hynt.asking.written import WrittenQuestions
from hynt.errors import UsageError, located
from hynt.graph.fact import Number, as_pairs
from hynt.graph.fact_table import NUMBER_KIND, RELATION_KIND
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import NameLookup, entity_position
from hynt.graph.sentences import BLANK, format_quantity
from hynt.names import advice_on


def ask(
    graph: KnowledgeGraph,
    head: Any = None,
    relation: Any = None,
    tail: Any = None,
    qualifiers: Sequence[Any] = (),
    names: NameLookup | None = None,
) -> AskedFact:
    """Resolves names, ids, units and dates. What cannot be asked is a `UsageError`."""
    (found,) = ask_each(graph, [(head, relation, tail, qualifiers)], names)
    if isinstance(found, UsageError):
        raise found
    return found


def ask_each(
    graph: KnowledgeGraph, questions: Sequence[tuple[Any, Any, Any, Any]], names: NameLookup | None = None
) -> list[AskedFact | UsageError]:
    """The same for many questions at once: what each asks, or why it cannot be asked."""
    found: dict[int, AskedFact | UsageError] = {}
    given: list[tuple[Any, Any, Any, list[tuple[Any, Any]]]] = []
    numbers: list[int] = []
    for number, (head, relation, tail, qualifiers) in enumerate(questions):
        try:
            given.append((head, relation, tail, _pairs(qualifiers)))
            numbers.append(number)
        except UsageError as problem:
            found[number] = problem
    written = WrittenQuestions.of(given)
    encoded = QuestionEncoder(graph, names or graph.names).encode(written)
    found |= {numbers[row]: problem for row, problem in encoded.refused.items()}
    for at, row in enumerate(encoded.row.tolist()):
        one = encoded.asked.one(at, graph)
        if one.tried is not None:  # a number that nobody knows the unit of is told as it was written
            beside = one.position + 1
            parts = [*given[row][:3], *(part for pair in given[row][3] for part in pair)]
            said = parts[beside]
            text = format_quantity(said.value, said.unit) if isinstance(said, Number) else str(said)
            one = replace(one, words=(*one.words[:beside], text, *one.words[beside + 1 :]))
        found[numbers[row]] = one
    return [found[number] for number in range(len(questions))]


def pair_from_text(text: str, names: NameLookup) -> tuple[str, str]:
    """A qualifier written as `relation=value`; where there are several "=", the first that ends a known relation."""
    cuts = [place for place, letter in enumerate(text) if letter == "="]
    if not cuts:
        raise UsageError(
            f"{text[:60]!r} is not a qualifier.",
            where="--qualifier",
            advice="Write it as relation=value, with '?' for what is asked.",
        )
    for cut in cuts if len(cuts) > 1 else ():
        if text[:cut] == BLANK or _is_relation(text[:cut], names):
            return text[:cut], text[cut + 1 :]
    return text[: cuts[0]], text[cuts[0] + 1 :]


def _is_relation(name: str, names: NameLookup) -> bool:
    try:
        names.relation(name)
    except UsageError:
        return False
    return True


def _pairs(qualifiers: Sequence[Any]) -> list[tuple[Any, Any]]:
    if isinstance(qualifiers, str):
        raise UsageError(f"{qualifiers!r:.60} is not a list of qualifiers.", advice="Give pairs (relation, value).")
    found = []
    for number, pair in enumerate(qualifiers, 1):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise UsageError(
                f"{pair!r:.60} is not a qualifier.", where=f"qualifier {number}", advice="Give pairs (relation, value)."
            )
        found.append((pair[0], pair[1]))
    return found


def answer_id(asked: AskedFact, answer: str, names: NameLookup) -> int:
    """The id of an answer that a person names."""
    with located("answer"):
        if asked.kind == NUMBER_KIND:
            raise UsageError("the question asks for a number.", advice="Leave the answer out.")
        if asked.kind == RELATION_KIND:
            return names.relation(answer)
        return names.entity(answer, entity_position(asked.position), asked.relation)


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
                    f"{key!r:.60} is not part of a question.", where=where, advice=advice_on(str(key)[:100], _KEYS)
                )
        head, relation, tail, qualifiers = (question.get(key) for key in _KEYS)
        return QuestionParts(head, relation, tail, () if qualifiers is None else as_pairs(qualifiers))
    if isinstance(question, str) or not isinstance(question, Sequence) or len(question) not in (3, 4):
        raise UsageError(
            f"{question!r:.60} is not a fact.",
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


def rules_of(candidates: str | Sequence[str | Iterable[str]]) -> list[str | Iterable[str]]:
    """What `candidates_for` takes: "type", "unknown", a list of names, or several of these in a list."""
    rules: list[str | Iterable[str]] = [candidates] if isinstance(candidates, str) else list(candidates)
    if rules and all(isinstance(rule, str) and rule not in ("type", "unknown") for rule in rules):
        return [[str(rule) for rule in rules]]  # a plain list of names
    return rules
