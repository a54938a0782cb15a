"""Facts as plain Python tuples of ids, to and from tables, and random ones: what slow, obvious oracles work on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hynt.graph.fact_table import FactTable

# A value is an int (entity id) or a float (number), a qualifier (relation id, value),
# a fact (head, relation, tail, qualifiers).
PlainFact = tuple[int, int, int | float, list[tuple[int, int | float]]]


def table_of(facts: Sequence[PlainFact]) -> FactTable:
    """A table of plain facts."""

    def columns(values):
        entity = np.array([0 if isinstance(value, float) else value for value in values], dtype=np.int32)
        number = np.array([value if isinstance(value, float) else 0.0 for value in values], dtype=np.float64)
        literal = pa.array([repr(value) if isinstance(value, float) else None for value in values], type=pa.string())
        return entity, number, literal

    pairs = [pair for fact in facts for pair in fact[3]]
    offsets = np.cumsum([0] + [len(fact[3]) for fact in facts]).astype(np.int64)
    return FactTable(
        np.array([fact[0] for fact in facts], dtype=np.int32),
        np.array([fact[1] for fact in facts], dtype=np.int32),
        *columns([fact[2] for fact in facts]),
        offsets,
        np.array([pair[0] for pair in pairs], dtype=np.int32),
        *columns([pair[1] for pair in pairs]),
    )


def random_facts(
    rng: np.random.Generator, count: int, entities: int, relation_is_number: np.ndarray, most_qualifiers: int = 3
) -> list[PlainFact]:
    """Facts over few ids and few numbers, so that questions have several answers and qualifiers repeat."""

    def value(relation: int) -> int | float:
        if relation_is_number[relation]:
            return float(rng.choice([-0.0, 0.0, 0.5, 1.0, 1984.25]))
        return int(rng.integers(entities))

    facts: list[PlainFact] = []
    for _ in range(count):
        relation = int(rng.integers(len(relation_is_number)))
        qualifiers = []
        for _ in range(int(rng.integers(most_qualifiers + 1))):
            qualifier = int(rng.integers(len(relation_is_number)))
            qualifiers.append((qualifier, value(qualifier)))
        facts.append((int(rng.integers(entities)), relation, value(relation), qualifiers))
    return facts


def component(fact: PlainFact, position: int) -> int | float:
    """What stands at a position."""
    if position < 3:
        return fact[position]
    return fact[3][(position - 3) // 2][(position - 3) % 2]


def with_blank(fact: PlainFact, position: int):
    """The question that hides a position, as something that compares: qualifiers sorted, kinds kept, -0.0 as 0.0."""

    def shown(value):
        return ("number", value + 0.0) if isinstance(value, float) else ("id", float(value))

    blank = ("hole", 0.0)
    triplet = [shown(part) for part in fact[:3]]
    pairs = [[shown(relation), shown(value)] for relation, value in fact[3]]
    if position < 3:
        triplet[position] = blank
    else:
        pairs[(position - 3) // 2][(position - 3) % 2] = blank
    return tuple(triplet), tuple(sorted(tuple(pair) for pair in pairs))
