"""The parts of a question in words. No torch here."""

from __future__ import annotations

from hynt.graph.components import FIRST_QUALIFIER, HEAD, TAIL
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import format_quantity
from hynt.prediction.asking import HOLE, AskedFact


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
