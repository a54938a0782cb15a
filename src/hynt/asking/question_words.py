"""From the parts of a question to words, and from words to an answer of it. No torch here."""

from __future__ import annotations

from hynt.asking.question import HOLE, AskedFact
from hynt.errors import UsageError
from hynt.graph.components import FIRST_QUALIFIER, HEAD, NUMBER_KIND, RELATION_KIND, TAIL
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import NameLookup, Position
from hynt.graph.sentences import format_quantity


def qualifier_texts(graph: KnowledgeGraph, asked: AskedFact) -> list[str]:
    """Each qualifier in words, with ? for the hole."""
    found = []
    for number in range(int(asked.table.offsets[1])):
        first = FIRST_QUALIFIER + 2 * number
        found.append(" ".join(said(graph, asked, place) for place in (first, first + 1)))
    return found


def said(graph: KnowledgeGraph, asked: AskedFact, place: int) -> str:
    """What stands at a position, in words; ? for the hole."""
    table = asked.table
    if place == asked.position:
        return HOLE
    if place == HEAD:
        return graph.entity_labels[int(table.head[0])]
    slot = (place - FIRST_QUALIFIER) // 2
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
    try:
        if asked.kind == NUMBER_KIND:
            raise UsageError("the question asks for a number.", advice="Leave the answer out.")
        if asked.kind == RELATION_KIND:
            return names.relation(answer)
        place: Position = "head" if asked.position == HEAD else "tail" if asked.position == TAIL else "value"
        return names.entity(answer, place, asked.relation)
    except UsageError as problem:
        raise UsageError(problem.what, where="answer", advice=problem.advice) from None
