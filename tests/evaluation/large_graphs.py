"""A graph with the size and the skew of WD50K: as many facts, questions, entities and relations, long answer lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Entity, Relation, Vocabulary

FACTS = {"train": 166_435, "valid": 23_913, "test": 46_159}
ENTITIES, RELATIONS = 47_155, 531
TEST_QUESTIONS = 155_933


def wd50k_like(scale: float = 1.0, seed: int = 0) -> KnowledgeGraph:
    """`scale` shrinks everything but the share of qualifiers."""
    rng = np.random.default_rng(seed)
    entities, relations = max(10, int(ENTITIES * scale)), max(5, int(RELATIONS * scale))
    names = tuple(f"Q{index}" for index in range(entities))
    kinds = tuple(Relation(f"P{index}", "entity") for index in range(relations))
    tables = {split: _table(rng, int(count * scale), entities, relations) for split, count in FACTS.items()}
    return KnowledgeGraph(Vocabulary(names, kinds), tables, tuple(Entity(name) for name in names))


def _table(rng: np.random.Generator, count: int, entities: int, relations: int) -> FactTable:
    qualifiers = round(count * (TEST_QUESTIONS - 3 * FACTS["test"]) / 2 / FACTS["test"])
    counts = np.bincount(rng.choice(count, qualifiers // 2 + 1), minlength=count) * 2  # some have many, most have none
    counts[np.argmax(counts)] -= counts.sum() - qualifiers
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)

    def skewed(size: int, limit: int) -> np.ndarray:
        return (limit * rng.random(size) ** 4).astype(np.int32)

    def literals(size: int) -> pa.StringArray:
        return pa.nulls(size, pa.string())

    total = int(offsets[-1])
    return FactTable(
        rng.integers(0, entities, count).astype(np.int32),
        skewed(count, relations),
        skewed(count, entities),
        np.zeros(count),
        literals(count),
        offsets,
        skewed(total, relations),
        skewed(total, entities),
        np.zeros(total),
        literals(total),
    )
