"""The numbers of each relation in a few numbers: frequency, extremes, mean, standard deviation, quantiles.

Training also says what a relation's numbers can be: never below zero, always whole. A population of −23 million or 2.4
airports is no answer. What a model says is brought back to what can be where it is shown; metrics are read before that,
so that a protocol's errors stay the model's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact import DATE_UNIT, Fact
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences
from hynt.graph.vocabulary import Floats, Ids, Relation, Vocabulary

WIDE = 100.0
"""Positive numbers that span more than this may be looked at by their logarithms."""

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
        named = {**_named(relation), "description": relation.description, "scale": relation.scale}
        return {**named, **_without_relation(self), "quantiles": quantiles}


def _named(relation: Relation) -> dict[str, str]:
    return {"relation": relation.name, "label": relation.label or relation.name, "unit": relation.unit}


def _without_relation(found: NumberSummary | RobustRange) -> dict[str, Any]:
    return {name: value for name, value in vars(found).items() if name != "relation"}


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


# Numbers that are probably wrong: "(Glee, number of seasons, 91)".
#
# The rule, for each relation with at least twenty numbers: let `median`, `low` (5 %) and `high` (95 %) be quantiles of
# its numbers. A number is suspicious when it lies further out than
#
#     low − 3 · (median − low)        or        high + 3 · (high − median)
#
# Quantiles, because up to a twentieth of wrong numbers on each side cannot move them; a distance for each side, because
# most relations lean to one. Where a relation without negative numbers is marked for log scale, or the middle 98 % of
# its numbers are positive and span more than three orders of magnitude, the rule looks at logarithms and reaches once,
# not three times, as far (a zero is then far below). Where one side has no distance the other side's is used, and where
# neither has one (nineteen of twenty numbers are equal) the standard deviation. Suspicious is not wrong: nothing is
# removed without a rule file (`hynt.graph.outlier_rules`).

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
        return {**_named(relation), **_without_relation(self)}


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


FEWEST_TO_JUDGE = 10
"""The least number of training numbers whose common traits are taken for rules. Numbers without a unit are counts as
long as all are whole, however few.
"""
_WHOLE = 2.0**53
"""Doubles from here on are all whole, and say nothing by it."""


@dataclass(frozen=True, eq=False)
class PossibleNumbers:
    """By relation, what training has never met otherwise. Dates have no such rule: there are years before the first."""

    never_negative: NDArray[np.bool_]  # (relations,)
    whole: NDArray[np.bool_]  # (relations,)
    of_hundred: NDArray[np.bool_]  # (relations,) percentages of which the greatest is 100: shares of something

    @classmethod
    def of(cls, vocabulary: Vocabulary, tables: Sequence[FactTable]) -> PossibleNumbers:
        """From the facts that a run learned from."""
        found = cls(*(np.zeros(vocabulary.relation_count, dtype=np.bool_) for _ in range(3)))
        numbers = sorted_numbers(concatenate(list(tables)), vocabulary.relation_is_number)
        if len(numbers.value):
            enough = (numbers.size >= FEWEST_TO_JUDGE) & ~vocabulary.relation_is_date[numbers.present]
            units = np.array([vocabulary.relations[one].unit for one in numbers.present.tolist()], dtype=np.object_)
            in_percent, counts = units == "percent", units == ""
            greatest = numbers.value[numbers.start + numbers.size - 1]
            is_whole = (numbers.value == np.rint(numbers.value)) & (np.abs(numbers.value) < _WHOLE)
            found.never_negative[numbers.present] = enough & (numbers.value[numbers.start] >= 0)
            found.of_hundred[numbers.present] = enough & in_percent & (greatest == 100)
            found.whole[numbers.present] = (enough | counts) & np.logical_and.reduceat(is_whole, numbers.start)
        return found

    def nearest(self, relation: Ids, value: Floats) -> Floats:
        """(n,) the possible numbers nearest to these (n,)."""
        value = np.where(self.never_negative[relation], np.maximum(value, 0.0), value)
        value = np.where(self.of_hundred[relation], np.minimum(value, 100.0), value)
        return np.where(self.whole[relation], np.rint(value), value)

    def interval(self, relation: Ids, value: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(n,) the ends of intervals around possible answers (n,), without what cannot be: whole ones are the outermost
        whole numbers inside, so that nothing is lost and nothing promised that was not.
        """
        whole, above = self.whole[relation], self.never_negative[relation]
        low = np.where(whole, np.minimum(np.ceil(low), value), low)
        high = np.where(whole, np.maximum(np.floor(high), value), high)
        low, high = np.where(above, np.maximum(low, 0.0), low), np.where(above, np.maximum(high, 0.0), high)
        below = np.where(self.of_hundred[relation], 100.0, np.inf)
        return np.minimum(low, below), np.minimum(high, below)
