"""Small random graphs for tests: facts of both kinds with a chosen spread of lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from torch import Tensor

from hynt.batches.buckets import BatchLayout
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.graph.fact_table import FactTable, component_count
from hynt.graph.vocabulary import Relation, Vocabulary

ENTITIES, RELATIONS = 23, 9
VOCABULARY = Vocabulary(
    tuple(f"e{i}" for i in range(ENTITIES)),
    tuple(Relation(f"r{i}", "number" if i % 3 == 2 else "entity") for i in range(RELATIONS)),
)


def random_table(lengths: Sequence[int], seed: int = 0) -> FactTable:
    """One fact for each length, with so many qualifiers; relations r2, r5 and r8 carry numbers."""
    random = np.random.default_rng(seed)
    n, m = len(lengths), int(np.sum(lengths))
    relation = random.integers(0, RELATIONS, n + m).astype(np.int32)
    is_number = VOCABULARY.relation_is_number[relation]
    entity = np.where(is_number, 0, random.integers(0, ENTITIES, n + m)).astype(np.int32)
    number = np.where(is_number, random.normal(10, 5, n + m), 0.0)
    pairs = zip(number.tolist(), is_number.tolist(), strict=True)
    literal = [repr(value) if kind else None for value, kind in pairs]
    return FactTable(
        random.integers(0, ENTITIES, n).astype(np.int32),
        relation[:n],
        entity[:n],
        number[:n],
        pa.array(literal[:n], type=pa.string()),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        relation[n:],
        entity[n:],
        number[n:],
        pa.array(literal[n:], type=pa.string()),
    )


def random_facts(lengths: Sequence[int], seed: int = 0) -> FactTensors:
    """`random_table` as tensors, scaled on itself."""
    table = random_table(lengths, seed)
    return FactTensors.from_table(table, VOCABULARY, NumberScaling.fit([table], VOCABULARY))


def mixed_facts(count: int, seed: int = 0) -> FactTensors:
    """So many facts, most of them without qualifiers and some with up to twelve."""
    random = np.random.default_rng(seed)
    lengths = np.where(random.random(count) < 0.3, random.integers(1, 13, count), 0)
    return random_facts(lengths.tolist(), seed)


def check_fit(facts: FactTensors, rows: Tensor, asked: Tensor, layout: BatchLayout) -> None:
    """Raises ValueError where `mask` could not be exact: wrong lengths, a fact longer than its place, a position it
    lacks.
    """
    if len(rows) != layout.rows or len(asked) != layout.rows:
        given = f"{len(rows)} facts and {len(asked)} positions were given"
        raise ValueError(f"the layout has {layout.rows} rows, but {given}")
    count = facts.qualifier_counts()[rows]
    for span in layout.spans():
        if bool((count[span.rows] > span.capacity).any()):
            raise ValueError(f"a fact has more qualifiers than the {span.capacity} its segment has places for")
    if bool(((asked < 0) | (asked >= component_count(count))).any()):
        raise ValueError("a position was asked for that its fact does not have")
