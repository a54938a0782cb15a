"""The numbers of each relation in a few numbers: frequency, extremes, mean, standard deviation, quantiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Relation

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class NumberSummary:
    """The numbers that stand under one relation, as tails and as qualifier values, in the relation's unit."""

    relation: int
    frequency: int  # how many numbers: tails + qualifier values
    as_tail: int
    as_qualifier: int
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float  # of these numbers as a whole population: divided by n
    quantiles: Mapping[float, float]

    def to_mapping(self, relation: Relation) -> dict[str, Any]:
        """The summary as plain values that JSON can hold."""
        quantiles = {f"{share:g}": value for share, value in self.quantiles.items()}
        told = {**named(relation), "description": relation.description, "scale": relation.scale}
        plain = {name: value for name, value in vars(self).items() if name != "relation"}
        return {**told, **plain, "quantiles": quantiles}


def named(relation: Relation) -> dict[str, str]:
    """What says which relation it is, as plain values."""
    return {"relation": relation.name, "label": relation.label or relation.name, "unit": relation.unit}


@dataclass(frozen=True)
class SortedNumbers:
    """Every number of a table, ordered by relation and value, with where it stands."""

    relation: NDArray[np.int32]  # (k,) ascending
    value: NDArray[np.float64]  # (k,) ascending within a relation
    row: NDArray[np.int64]  # (k,) the fact that holds it
    is_tail: NDArray[np.bool_]  # (k,) whether it is the fact's tail
    present: NDArray[np.int64]  # (p,) the relations that have numbers, ascending
    start: NDArray[np.int64]  # (p,) where each of them begins
    size: NDArray[np.int64]  # (p,) how many numbers it has

    def quantile(self, share: float) -> NDArray[np.float64]:
        """(p,) of each relation, interpolated between neighbours as numpy does."""
        place = (self.size - 1) * share
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, self.size - 1)
        part = place - below
        low, high = self.value[self.start + below], self.value[self.start + above]
        return np.asarray(low * (1 - part) + high * part)  # not low + part * (high - low): that may overflow

    def without_ends(self, share: float) -> NDArray[np.float64]:
        """(2, p) the least and the greatest number of each relation but for this share, and one at least, of either
        end; the other way round where nothing is left.
        """
        cut = np.maximum(np.ceil((self.size - 1) * share), 1).astype(np.int64)
        ends = np.stack([np.minimum(cut, self.size - 1), np.maximum(self.size - 1 - cut, 0)])
        return np.asarray(self.value[self.start + ends])


def sorted_numbers(table: FactTable, relation_is_number: NDArray[np.bool_]) -> SortedNumbers:
    """The numbers of a table, sorted once for whatever is asked of them."""
    tails = np.flatnonzero(relation_is_number[table.relation])
    values = np.flatnonzero(relation_is_number[table.qualifier_relation])
    relation = np.concatenate([table.relation[tails], table.qualifier_relation[values]])
    value = np.concatenate([table.tail_number[tails], table.qualifier_number[values]])
    row = np.concatenate([tails, table.qualifier_owner()[values]]).astype(np.int64)
    is_tail = np.arange(len(relation)) < len(tails)
    order = np.lexsort((value, relation))
    relation = relation[order]
    present, start, size = np.unique(relation, return_index=True, return_counts=True)
    return SortedNumbers(
        relation,
        value[order],
        row[order],
        is_tail[order],
        present.astype(np.int64),
        start.astype(np.int64),
        size.astype(np.int64),
    )


def summarise_numbers(table: FactTable, relation_is_number: NDArray[np.bool_]) -> tuple[NumberSummary, ...]:
    """A summary for each relation that carries numbers in this table, by relation id."""
    numbers = sorted_numbers(table, relation_is_number)
    if not len(numbers.value):
        return ()
    # Around the middle value and in halves, so that neither a sum nor a square of large numbers overflows.
    middle = numbers.quantile(0.5)
    spread = numbers.value[numbers.start + numbers.size - 1] / 2 - numbers.value[numbers.start] / 2
    spread[spread == 0] = 1.0
    scaled = (numbers.value / 2 - np.repeat(middle / 2, numbers.size)) / np.repeat(spread / 2, numbers.size)
    shift = np.add.reduceat(scaled, numbers.start) / numbers.size
    square = np.add.reduceat((scaled - np.repeat(shift, numbers.size)) ** 2, numbers.start) / numbers.size
    as_tail = np.add.reduceat(numbers.is_tail.astype(np.int64), numbers.start)
    columns = np.stack(
        [
            numbers.value[numbers.start],
            numbers.value[numbers.start + numbers.size - 1],
            middle + shift * spread,
            np.sqrt(square) * spread,
            *(numbers.quantile(share) for share in QUANTILES),
        ],
        axis=1,
    )
    return tuple(
        NumberSummary(
            relation,
            frequency,
            tails,
            frequency - tails,
            *(least, most, mean, deviation),
            dict(zip(QUANTILES, quantiles, strict=True)),
        )
        for relation, frequency, tails, (least, most, mean, deviation, *quantiles) in zip(
            numbers.present.tolist(), numbers.size.tolist(), as_tail.tolist(), columns.tolist(), strict=True
        )
    )
