"""A fact as a JSON object, with ids for programs and names for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hynt.graph.fact import Fact, Value
    from hynt.graph.knowledge_graph import KnowledgeGraph


def fact_as_json(fact: Fact, graph: KnowledgeGraph) -> dict[str, Any]:
    """Head, relation, tail and qualifiers, and the fact as one line of text."""
    from hynt.graph.sentences import Sentences

    sentences = Sentences(graph)
    return {
        "text": sentences.fact(fact),
        "head": {"id": fact.head, "label": sentences.entity(fact.head)},
        "relation": {"id": fact.relation, "label": sentences.relation(fact.relation)},
        "tail": _value(fact.tail, graph),
        "qualifiers": [
            {"relation": {"id": name, "label": sentences.relation(name)}, "value": _value(value, graph)}
            for name, value in fact.qualifiers
        ],
    }


def _value(value: Value, graph: KnowledgeGraph) -> dict[str, Any]:
    from hynt.graph.fact import Number
    from hynt.graph.sentences import Sentences, format_quantity

    if isinstance(value, Number):
        shown = format_quantity(value.value, value.unit)
        return {"number": value.value, "literal": value.literal, "unit": value.unit, "text": shown}
    return {"id": value, "label": Sentences(graph).entity(value)}
