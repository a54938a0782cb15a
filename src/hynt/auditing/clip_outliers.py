"""Numbers as models of an audit learn them: those far outside the bulk of their relation are pulled in to its edge.

A model sees numbers on a scale from the least to the greatest. One year written as 20250 would squeeze all others into
a tenth of it, and the very errors that an audit looks for would blind it. What is judged stays as it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Vocabulary

REACH = 3.0
"""How many widths of its bulk a number may lie outside it."""

TAIL = 0.01
"""The share on each side that is not of the bulk; more in small relations, so that a single number never is."""

ENOUGH = 10
"""Numbers from which on a relation has a bulk."""

Floats = NDArray[np.float64]


def pulled_in(table: FactTable, vocabulary: Vocabulary, log_relations: Sequence[str]) -> tuple[FactTable, int]:
    """The same facts with their numbers inside the edges, and how many were moved. Logarithms count where a relation
    has a log scale.
    """
    is_number = vocabulary.relation_is_number
    low, high = edges(table, vocabulary, log_relations)
    tail = np.clip(table.tail_number, low[table.relation], high[table.relation])
    value = np.clip(table.qualifier_number, low[table.qualifier_relation], high[table.qualifier_relation])
    tail = np.where(is_number[table.relation], tail, table.tail_number)
    value = np.where(is_number[table.qualifier_relation], value, table.qualifier_number)
    moved = int((tail != table.tail_number).sum() + (value != table.qualifier_number).sum())
    return replace(table, tail_number=tail, qualifier_number=value), moved


def edges(table: FactTable, vocabulary: Vocabulary, log_relations: Sequence[str]) -> tuple[Floats, Floats]:
    """(relations,) the least and the greatest number that each relation is learned with; infinite without a bulk."""
    low, high = np.full(vocabulary.relation_count, -np.inf), np.full(vocabulary.relation_count, np.inf)
    numbers = sorted_numbers(table, vocabulary.relation_is_number)
    logs = {vocabulary.relation_ids[name] for name in log_relations}
    for relation, start, size in zip(
        numbers.present.tolist(), numbers.start.tolist(), numbers.size.tolist(), strict=True
    ):
        if size < ENOUGH:
            continue
        value = numbers.value[start : start + size]
        if relation in logs:
            value = np.log(value)
        share = max(TAIL, 1.5 / (size - 1))
        first, last = np.quantile(value, [share, 1 - share])
        width = last - first
        ends = np.array([first - REACH * width, last + REACH * width])
        low[relation], high[relation] = np.exp(ends) if relation in logs else ends
    return low, high
