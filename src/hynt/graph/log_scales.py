"""Which relations are looked at by the logarithms of their numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import SortedNumbers, sorted_numbers
from hynt.graph.vocabulary import Vocabulary

WIDE = 100.0
"""Positive numbers that span more than this may be looked at by their logarithms."""


def suited_to_logarithms(vocabulary: Vocabulary, table: FactTable, others: Sequence[FactTable] = ()) -> tuple[str, ...]:
    """The relations that a log scale suits: declared so by the graph, or spread widely in `table`.

    A population ten times too large is a small step on a scale that reaches to the largest country. So are the flows of
    small rivers, where only the outermost numbers lie far apart; but then logarithms must lie more evenly around their
    median than the numbers do. A relation with a number that has no logarithm stays linear, also where only one of the
    `others` holds it; so do dates.
    """
    numbers = sorted_numbers(table, vocabulary.relation_is_number)
    if not len(numbers.value):
        return ()
    fits = numbers.value[numbers.start] > 0
    for other in others:
        more = sorted_numbers(other, vocabulary.relation_is_number)
        fits &= ~np.isin(numbers.present, more.present[more.value[more.start] <= 0])
    least, most = numbers.without_ends(0.01)
    wide = numbers.quantile(0.95) / WIDE > numbers.quantile(0.05)
    wide |= (most / WIDE > least) & _is_long_tailed(numbers)
    return tuple(
        relation.name
        for relation, is_wide, is_fit in zip(
            (vocabulary.relations[index] for index in numbers.present.tolist()), wide, fits, strict=True
        )
        if is_fit and relation.unit != DATE_UNIT and (is_wide or relation.scale == "log")
    )


def _is_long_tailed(numbers: SortedNumbers) -> NDArray[np.bool_]:
    """(p,) whether the logarithms of positive numbers lean less to one side than the numbers do."""
    parts = [numbers.quantile(share) for share in (0.05, 0.5, 0.95)]
    with np.errstate(divide="ignore", invalid="ignore"):  # those of other relations
        plain, logs = (
            abs((high - median) - (median - low)) / (high - low)
            for low, median, high in ([part / 4 for part in parts], [np.log(part) for part in parts])  # none overflows
        )
    return np.asarray(logs < plain)


ENOUGH_TO_TRY = 30
"""The least number of validation numbers that can say whether a log scale suits a relation."""


def tried_on_both(graph: KnowledgeGraph, names: Sequence[str]) -> list[int]:
    """Of relations that a log scale suits, by id, those that validation decides about: not what the graph declares."""
    valid, vocabulary = graph.splits.get("valid"), graph.vocabulary
    if valid is None:
        return []
    asked, ids = np.bincount(valid.relation, minlength=vocabulary.relation_count), vocabulary.relation_ids
    return [
        ids[name] for name in names if asked[ids[name]] >= ENOUGH_TO_TRY and graph.relations[ids[name]].scale != "log"
    ]
