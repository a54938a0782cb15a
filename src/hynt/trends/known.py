"""What a graph knows of one number of one head over time, and which of the values are of one series. No torch here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph

EntityQualifiers: TypeAlias = frozenset[tuple[int, int]]
"""Qualifiers with entities: relation and entity ids."""

NumberQualifiers: TypeAlias = frozenset[tuple[int, float]]
"""Qualifiers with numbers: relation ids and values."""

_SERIES_NAMED = 3


@dataclass(frozen=True, eq=False)
class KnownValues:
    """The facts of one head and one relation that carry the axis once, earliest first."""

    table: FactTable  # (n,)
    at: NDArray[np.float64]  # (n,) where each stands on the axis
    split: tuple[str, ...]  # (n,)
    pairs: tuple[EntityQualifiers, ...]  # (n,) the entities among the other qualifiers of each
    numbers: tuple[NumberQualifiers, ...]  # (n,) the numbers among them
    without: int  # facts that do not carry the axis, or several times

    def take(self, rows: Sequence[int]) -> KnownValues:
        """Some of them, in this order."""
        index = np.array(rows, dtype=np.int64)
        return KnownValues(
            self.table.take(index),
            self.at[index],
            tuple(self.split[row] for row in rows),
            tuple(self.pairs[row] for row in rows),
            tuple(self.numbers[row] for row in rows),
            self.without,
        )

    def of_series(self, pairs: EntityQualifiers, numbers: NumberQualifiers) -> KnownValues:
        """Those with just these entities, and at least these numbers, among their other qualifiers."""
        return self.take(
            [row for row in range(len(self.at)) if self.pairs[row] == pairs and numbers <= self.numbers[row]]
        )


def known_values(graph: KnowledgeGraph, head: int, relation: int, over: int) -> KnownValues:
    """What all splits of the graph hold."""
    tables, splits = [], []
    for name, table in graph.splits.items():
        mine = table.where((table.head == head) & (table.relation == relation))
        tables.append(mine)
        splits += [name] * len(mine)
    table = concatenate(tables)
    owner, is_over = table.qualifier_owner(), table.qualifier_relation == over
    once = np.bincount(owner[is_over], minlength=len(table)) == 1
    at = np.zeros(len(table))
    at[owner[is_over]] = table.qualifier_number[is_over]
    order = np.flatnonzero(once)[np.argsort(at[once], kind="stable")].astype(np.int64)
    kept = table.take(order)
    parts = [other_qualifiers(kept, row, graph, over) for row in range(len(kept))]
    return KnownValues(
        kept,
        at[order],
        tuple(splits[row] for row in order),
        tuple(pairs for pairs, _ in parts),
        tuple(numbers for _, numbers in parts),
        len(table) - len(order),
    )


def other_qualifiers(
    table: FactTable, row: int, graph: KnowledgeGraph, over: int
) -> tuple[EntityQualifiers, NumberQualifiers]:
    """The qualifiers of one fact besides the axis: those with entities, and those with numbers."""
    is_number = graph.vocabulary.relation_is_number
    slots = range(int(table.offsets[row]), int(table.offsets[row + 1]))
    of = [(slot, int(table.qualifier_relation[slot])) for slot in slots]
    pairs = frozenset((one, int(table.qualifier_entity[slot])) for slot, one in of if not is_number[one])
    numbers = frozenset(
        (one, float(table.qualifier_number[slot])) for slot, one in of if is_number[one] and one != over
    )
    return pairs, numbers


def usual_series(graph: KnowledgeGraph, known: Sequence[KnownValues]) -> tuple[list[tuple[int, int]], list[str]]:
    """The series with the most values of all heads together, and a word on the others."""
    counted = Counter(pairs for one in known for pairs in one.pairs)
    if not counted:
        return [], []
    best = max(counted, key=lambda pairs: (counted[pairs], -len(pairs), sorted(pairs, reverse=True)))
    others = [pairs for pairs, _ in counted.most_common() if pairs != best]
    if not others:
        return sorted(best), []
    shown = "; ".join(_qualifiers_text(graph, pairs) for pairs in others[:_SERIES_NAMED])
    more = "; …" if len(others) > _SERIES_NAMED else ""
    count = sum(counted[pairs] for pairs in others)
    values = "value" if count == 1 else "values"
    return sorted(best), [
        f"{count} known {values} of other series left out ({shown}{more}); a qualifier chooses another series"
    ]


def _qualifiers_text(graph: KnowledgeGraph, pairs: EntityQualifiers) -> str:
    if not pairs:
        return "without further qualifier"
    labels, entities = graph.relation_labels, graph.entity_labels
    return ", ".join(f"{labels[relation]} {entities[entity]}" for relation, entity in sorted(pairs))
