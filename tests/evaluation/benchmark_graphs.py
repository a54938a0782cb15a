"""A tiny reader of published benchmark files, independent of the package's own formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Entity, Relation, Vocabulary
from tests.oracle.plain_facts import table_of


def read_benchmark(
    folder: Path, separator: str = "\t", count_line: bool = True, numeric: bool = True
) -> KnowledgeGraph:
    """The graph in train.txt, valid.txt and test.txt; if `numeric`, relations with only digits hold numbers."""
    lines = {}
    for split in ("train", "valid", "test"):
        text = (folder / f"{split}.txt").read_text(encoding="utf-8").splitlines()[int(count_line) :]
        lines[split] = [line.split(separator) for line in text]
    rows = [parts for split in lines.values() for parts in split]
    pairs = [(parts[at], parts[at + 1]) for parts in rows for at in range(1, len(parts), 2)]
    entity_relations = {relation for relation, value in pairs if not (numeric and _looks_numeric(value))}
    relations = {relation: index for index, relation in enumerate(dict.fromkeys(relation for relation, _ in pairs))}
    entities: dict[str, int] = {}

    def value(relation: str, text: str) -> int | float:
        return entities.setdefault(text, len(entities)) if relation in entity_relations else float(text)

    splits = {}
    for split, rows in lines.items():
        facts = []
        for parts in rows:
            head = entities.setdefault(parts[0], len(entities))
            found = [(relations[parts[at]], value(parts[at], parts[at + 1])) for at in range(1, len(parts), 2)]
            facts.append((head, found[0][0], found[0][1], found[1:]))
        splits[split] = table_of(facts)
    kinds = tuple(Relation(name, "entity" if name in entity_relations else "number") for name in relations)
    return KnowledgeGraph(Vocabulary(tuple(entities), kinds), splits, tuple(Entity(name) for name in entities))


def _looks_numeric(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
