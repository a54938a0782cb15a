"""Numbers that are probably wrong: "(Glee, number of seasons, 91)".

The rule, for each relation with at least twenty numbers: let `median`, `low` (5 %) and `high` (95 %) be quantiles of
its numbers. A number is suspicious when it lies further out than

    low − 3 · (median − low)        or        high + 3 · (high − median)

Quantiles, because up to a twentieth of wrong numbers on each side cannot move them; a distance for each side, because
most relations lean to one. Where a relation without negative numbers is marked for log scale, or the middle 98 % of
its numbers are positive and span more than three orders of magnitude, the rule looks at logarithms and reaches once,
not three times, as far (a zero is then far below). Where one side has no distance the other side's is used, and where
neither has one (nineteen of twenty numbers are equal) the standard deviation. Suspicious is not wrong: nothing is
removed without a rule file (`hynt.graph.outlier_rules`).

Among them are those that hide all others of their relation from a model, whose scale reaches from end to end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact import Fact
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.log_scales import suited_to_logarithms
from hynt.graph.number_summary import SortedNumbers, named, sorted_numbers
from hynt.graph.sentences import Sentences
from hynt.graph.vocabulary import Relation, Vocabulary

FEWEST_NUMBERS = 20
REACH = 3.0
REACH_OF_LOGARITHMS = 1.0
LONG_TAIL = 1000.0


@dataclass(frozen=True)
class RobustRange:
    """What a relation's numbers are expected to lie in, in its unit, and how many do not."""

    relation: int
    low: float
    high: float
    log: bool  # whether the rule was applied to logarithms
    below: int
    above: int

    def to_mapping(self, relation: Relation) -> dict[str, Any]:
        return {**named(relation), **{name: value for name, value in vars(self).items() if name != "relation"}}


@dataclass(frozen=True)
class SuspiciousNumber:
    """A number outside its relation's range."""

    fact: Fact
    relation: int
    value: float
    is_tail: bool  # else it is the value of a qualifier
    distance: float  # how many times further from the median than the quantile of its side


@dataclass(frozen=True)
class OutlierReport:
    """Ranges by relation id, and the suspicious numbers, furthest out first."""

    ranges: tuple[RobustRange, ...]
    suspicious: tuple[SuspiciousNumber, ...]
    found: int  # how many there are in all; `suspicious` may hold only the first
    graph: KnowledgeGraph = field(compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold, with facts in words and in parts."""
        relations, words = self.graph.relations, Sentences(self.graph)
        return {
            "found": self.found,
            "ranges": [found.to_mapping(relations[found.relation]) for found in self.ranges],
            "suspicious": [
                {
                    "relation": relations[found.relation].name,
                    "label": self.graph.relation_labels[found.relation],
                    "value": found.value,
                    "is_tail": found.is_tail,
                    "distance": found.distance,
                    "fact": words.plain(found.fact),
                }
                for found in self.suspicious
            ],
        }


def find_outliers(graph: KnowledgeGraph, *, limit: int = 20) -> OutlierReport:
    """The ranges of all relations with enough numbers, and the `limit` most suspicious numbers."""
    everything = graph.columns()
    numbers = sorted_numbers(everything, graph.vocabulary.relation_is_number)
    enough = numbers.size >= FEWEST_NUMBERS
    if not enough.any():
        return OutlierReport((), (), 0, graph)
    log = _use_logarithms(numbers, graph.relations)
    scaled = _logarithms(numbers, log)
    low, median, high = (scaled.quantile(share) for share in (0.05, 0.5, 0.95))
    left, right = _distances(scaled, low, median, high)
    reach = np.where(log, REACH_OF_LOGARITHMS, REACH)
    lowest, highest = low - reach * left, high + reach * right
    size = numbers.size
    offset = scaled.value - np.repeat(median, size)
    distance = np.where(offset < 0, -offset / np.repeat(left, size), offset / np.repeat(right, size))
    under = scaled.value < np.repeat(np.where(enough, lowest, -np.inf), size)
    over = scaled.value > np.repeat(np.where(enough, highest, np.inf), size)
    below = np.add.reduceat(under.astype(np.int64), numbers.start)
    above = np.add.reduceat(over.astype(np.int64), numbers.start)
    with np.errstate(over="ignore"):
        lowest, highest = np.where(log, np.exp(lowest), lowest), np.where(log, np.exp(highest), highest)
    ranges = tuple(
        RobustRange(
            int(numbers.present[at]),
            float(lowest[at]),
            float(min(highest[at], np.finfo(np.float64).max)),
            bool(log[at]),
            int(below[at]),
            int(above[at]),
        )
        for at in np.flatnonzero(enough)
    )
    outside = np.flatnonzero(under | over)
    first = outside[np.argsort(-distance[outside], kind="stable")][:limit]
    return OutlierReport(ranges, _located(first, numbers, distance, everything, graph), len(outside), graph)


def _use_logarithms(numbers: SortedNumbers, relations: Sequence[Relation]) -> NDArray[np.bool_]:
    """(p,) the relations that the rule looks at by orders of magnitude."""
    positive = (numbers.value[numbers.start] >= 0) & (numbers.quantile(0.01) > 0)
    marked = np.array([relations[relation].scale == "log" for relation in numbers.present.tolist()], dtype=np.bool_)
    long_tailed = numbers.quantile(0.99) / LONG_TAIL > numbers.quantile(0.01)
    return np.asarray(positive & (marked | long_tailed))


def _logarithms(numbers: SortedNumbers, log: NDArray[np.bool_]) -> SortedNumbers:
    value = numbers.value.copy()
    chosen = np.repeat(log, numbers.size)
    value[chosen] = np.log(np.maximum(value[chosen], np.finfo(np.float64).tiny))
    return replace(numbers, value=value)


def _distances(
    numbers: SortedNumbers, low: NDArray[np.float64], median: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(p,) of the median to the quantile of each side, never zero."""
    left, right = median - low, high - median
    left, right = np.where(left > 0, left, right), np.where(right > 0, right, left)
    flat = left == 0
    if flat.any():
        mean = np.add.reduceat(numbers.value / np.repeat(numbers.size, numbers.size), numbers.start)
        square = (numbers.value - np.repeat(mean, numbers.size)) ** 2
        deviation = np.sqrt(np.add.reduceat(square / np.repeat(numbers.size, numbers.size), numbers.start))
        deviation[deviation == 0] = 1.0  # all numbers are equal: none is further out than another
        left, right = np.where(flat, deviation, left), np.where(flat, deviation, right)
    return left, right


def _located(
    places: NDArray[np.int64],
    numbers: SortedNumbers,
    distance: NDArray[np.float64],
    table: FactTable,
    graph: KnowledgeGraph,
) -> tuple[SuspiciousNumber, ...]:
    facts = table.take(numbers.row[places]).facts(graph.vocabulary)
    return tuple(
        SuspiciousNumber(
            fact,
            int(numbers.relation[place]),
            float(numbers.value[place]),
            bool(numbers.is_tail[place]),
            float(distance[place]),
        )
        for fact, place in zip(facts, places.tolist(), strict=True)
    )


_HIDES, _HIDES_LOGARITHMS, _HIDES_EQUALS = 1e5, 20.0, 1e18
"""How many times as far out as nine tenths of the others reach a number hides these on their scale. A log scale takes
more; and where nine tenths are equal, it is their size that counts."""


@dataclass(frozen=True)
class HidingNumber:
    """A number beside which nine tenths of its relation's others, between `low` and `high`, are as one."""

    relation: int
    value: float
    low: float
    high: float


def hiding_numbers(vocabulary: Vocabulary, tables: Sequence[FactTable]) -> list[HidingNumber]:
    """The furthest out of each relation that has such numbers: a run would learn nothing of the others."""
    table = concatenate(list(tables))
    numbers = sorted_numbers(table, vocabulary.relation_is_number)
    if not len(numbers.value):
        return []
    logs = set(suited_to_logarithms(vocabulary, table))
    log = np.array([vocabulary.relations[one].name in logs for one in numbers.present.tolist()], dtype=np.bool_)
    ends = np.stack([numbers.value[numbers.start], numbers.value[numbers.start + numbers.size - 1]])
    body = numbers.without_ends(0.05)  # not quantiles, between two of them, or the furthest would count
    found = []
    with np.errstate(over="ignore"):
        for at in np.flatnonzero(numbers.size >= FEWEST_NUMBERS).tolist():
            (least, most), (low, high) = ends[:, at].tolist(), body[:, at].tolist()
            scale, times = (math.log, _HIDES_LOGARITHMS) if log[at] else (float, _HIDES)
            reach = times * (scale(high) - scale(low)) or _HIDES_EQUALS * max(abs(low), 1.0)
            below, above = scale(low) - scale(least), scale(most) - scale(high)
            if max(below, above) > reach:
                found.append(HidingNumber(int(numbers.present[at]), most if above >= below else least, low, high))
    return found
