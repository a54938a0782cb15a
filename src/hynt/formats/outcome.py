"""What a graph holds that is read and not yet saved: its counts, leaks, first facts, and values nobody marked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hynt.formats.unmarked import find_unmarked
from hynt.graph.assembly import Assembly
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences
from hynt.graph.splitting import find_leakage

PREVIEWED = 10
"""Facts that a preview shows."""


def _tables(assembly: Assembly) -> Iterator[FactTable]:
    return (table for split in assembly.split_names for table in assembly.tables(split))


def unmarked_in(assembly: Assembly) -> dict[str, list[str]]:
    """The relations whose values are written like numbers or dates and were read as names."""
    return find_unmarked(assembly.vocabulary, lambda: _tables(assembly))


def counts_of(assembly: Assembly) -> dict[str, int]:
    """Entities, relations, and the facts of each split."""
    vocabulary = assembly.vocabulary
    return {
        "entities": vocabulary.entity_count,
        "relations": vocabulary.relation_count,
        "number_relations": int(vocabulary.relation_is_number.sum()),
        **{split: sum(len(table) for table in assembly.tables(split)) for split in assembly.split_names},
    }


def outcome_of(assembly: Assembly) -> dict[str, Any]:
    """What a graph would hold, and the relations in it that give others away."""
    vocabulary = assembly.vocabulary
    names = [relation.name for relation in vocabulary.relations]
    leaks = find_leakage(_tables(assembly), vocabulary.relation_is_number, vocabulary.entity_count)
    left = [leak.to_mapping(names) for leak in leaks]
    return {**assembly.report, "leakage_left": left, "counts": counts_of(assembly)}


def looked_at(assembly: Assembly) -> dict[str, Any]:
    """The first facts in words, and the kind, unit and use of every relation."""
    vocabulary = assembly.vocabulary
    uses = np.zeros(vocabulary.relation_count, dtype=np.int64)
    for table in _tables(assembly):
        uses += np.bincount(np.concatenate([table.relation, table.qualifier_relation]), minlength=len(uses))
    first = next(assembly.tables(assembly.split_names[0]))
    few = first.where(np.arange(len(first)) < PREVIEWED)
    graph = KnowledgeGraph(vocabulary, {assembly.split_names[0]: few}, assembly.entities)
    return {
        "facts": [Sentences(graph).fact(fact) for fact in graph.facts()],
        "relations": [
            {"relation": one.name, "label": one.label, "kind": one.kind, "unit": one.unit, "uses": int(count)}
            for one, count in zip(vocabulary.relations, uses, strict=True)
        ],
    }
