"""A graph, and the facts of an entity, as a notebook shows them."""

from __future__ import annotations

from itertools import islice

from hynt.graph.entity_facts import EntityFacts
from hynt.graph.fact import Fact
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences
from hynt.markup import Markup
from hynt.notebook import SHOWN, box, more, pairs, quiet, table

FEW = 5
"""Facts that stand for a whole graph."""


def graph_html(graph: KnowledgeGraph) -> str:
    """What a graph holds, and its first facts."""
    numeric = int(graph.vocabulary.relation_is_number.sum())
    listed = ", ".join(f"{name} {len(part):,}" for name, part in graph.splits.items())
    about = [
        ("facts", f"{len(graph):,} ({listed})"),
        ("entities", f"{len(graph.entities):,}"),
        ("relations", f"{len(graph.relations):,}, {numeric:,} of them with numbers"),
    ]
    about += [(name, value) for name, value in (("licence", graph.manifest.licence),) if value]
    first = facts_table(graph, list(islice(graph.facts(), FEW)))
    return box(f"graph {graph.name or 'without a name'}", pairs(about), first, more(len(graph) - FEW, "facts"))


def entity_facts_html(found: EntityFacts) -> str:
    """The facts of an entity, up to a screenful."""
    graph, few = found.graph, found.facts[:SHOWN]
    shown = facts_table(graph, [one.fact for one in few], [one.split for one in few])
    return (
        box(graph.entity_labels[found.entity], shown, more(found.total - len(few), "facts"))
        if few
        else box(graph.entity_labels[found.entity], quiet("No facts."))
    )


def facts_table(graph: KnowledgeGraph, facts: list[Fact], splits: list[str] | None = None) -> Markup:
    """Facts in words, a row each."""
    words = Sentences(graph)
    rows = [
        [
            words.entity(fact.head),
            words.relation(fact.relation),
            words.value(fact.tail),
            "; ".join(f"{words.relation(name)} {words.value(value)}" for name, value in fact.qualifiers),
            *([] if splits is None else [splits[place]]),
        ]
        for place, fact in enumerate(facts)
    ]
    return table(["head", "relation", "tail", "qualifiers", *([] if splits is None else ["split"])], rows)
