"""Intervals around predicted numbers by split conformal prediction.

Residuals |true − predicted| on held-out questions, on the model's own scale, say how far the truth lies from a
prediction. With n of them, the ⌈(n + 1) · level⌉-th smallest is a radius that covers a new question's truth with
probability at least `level`, whatever the model and the data are, as long as the new question is like the held-out
ones. Residuals are divided by how large they are expected to be for the question at hand (`reach`), so that easy
questions get short intervals and hard ones long ones. Where too few residuals are known for that, a relation with
enough of them gets a radius of its own; the others share one, made of residuals divided by how widely each relation's
training numbers are spread. A relation of which nothing was held out is told by how far the relations differ.

Numbers of a relation that are never below zero in training (counts, lengths, populations) have no interval below zero
either, and no interval ends further beyond the training numbers than a tenth of their range, of dates and of few
numbers further. Nothing that is left away there could be the truth but a number of a sort that training has none of,
and coverage counts such a one as missed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.batches.number_scaling import NumberScaling
from hynt.calibration.reach import BINS, FOLDS, AskedNumbers, Reach, ResidualScale, Told
from hynt.errors import DataError, UsageError
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.possible_numbers import PossibleNumbers
from hynt.graph.vocabulary import Flags, Floats, Ids, Vocabulary

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
ENOUGH = 30
"""Residuals from which on a relation has a radius of its own."""


@dataclass(frozen=True, eq=False)
class Radii:
    """For each level, how far from a prediction the interval of each relation reaches, in what `scale` says of the
    question; without one, on the model's scale.
    """

    radius: Floats  # (levels, relations); infinite where too little is known for that level
    is_own: NDArray[np.bool_]  # (levels, relations) from the relation's own residuals, not from the shared ones
    count: Ids  # (relations,) residuals
    ends_at_zero: NDArray[np.bool_]  # (relations,) where no interval goes below zero; training says so, not a file
    scale: ResidualScale | None = (
        None  # what radii are multiplied by, question by question; None in calibrations of 0.1
    )
    limits: Floats | None = None  # (2, relations) where intervals end at most, in the graph's units; None: anywhere

    def at(self, level: float) -> int:
        """The row of a level."""
        check_level(level)
        return LEVELS.index(level)

    def reach(self, asked: AskedNumbers) -> Reach | None:
        """What the radius is multiplied by for these questions; None where it is the same for all of a relation."""
        return None if self.scale is None else self.scale.reach(asked)

    def interval(
        self, scaling: NumberScaling, relation: Ids, scaled: Floats, level: float, reach: Reach | None = None
    ) -> tuple[Floats, Floats]:
        """(n,) lower and (n,) upper ends in the graph's units, around numbers on the model's scale."""
        low, high = self.ends(scaling, relation, scaled, level, reach)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.cut(relation, scaling.unscale(relation, scaled), low, high)

    def cut(self, relation: Ids, value: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(n,) the ends of intervals around the answers `value` (n,), without what cannot be. An answer that lies there
        itself stays in its interval: it is what the model says.
        """
        low = cut_at_zero(low, value, self.ends_at_zero[relation])
        if self.limits is None:
            return low, high
        least, most = self.limits[:, relation]
        return np.maximum(low, np.minimum(least, value)), np.minimum(high, np.maximum(most, value))

    def ends(
        self, scaling: NumberScaling, relation: Ids, scaled: Floats, level: float, reach: Reach | None = None
    ) -> tuple[Floats, Floats]:
        """The same before any is cut off: what a model has to say is not told by the cut."""
        radius = self.radius[self.at(level), relation]
        below, above = (1.0, 1.0) if reach is None else reach
        with np.errstate(over="ignore", invalid="ignore"):
            return scaling.unscale(relation, scaled - radius * below), scaling.unscale(
                relation, scaled + radius * above
            )

    def to_mapping(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """By relation name, for JSON; a level that too little is known for is left out."""
        return {
            vocabulary.relations[index].name: {
                "values": int(self.count[index]),
                "radius": {
                    f"{level:g}": float(self.radius[row, index])
                    for row, level in enumerate(LEVELS)
                    if math.isfinite(self.radius[row, index])
                },
                "own": [f"{level:g}" for row, level in enumerate(LEVELS) if self.is_own[row, index]],
            }
            for index in np.flatnonzero(vocabulary.relation_is_number).tolist()
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], vocabulary: Vocabulary, where: str) -> Radii:
        """Reads what `to_mapping` wrote."""
        size = (len(LEVELS), vocabulary.relation_count)
        none = np.zeros(size, np.bool_)
        found = cls(np.full(size, np.inf), none, np.zeros(size[1], np.int64), none[0].copy())
        try:
            for index in np.flatnonzero(vocabulary.relation_is_number).tolist():
                entry = mapping[vocabulary.relations[index].name]
                found.count[index] = int(entry["values"])
                for row, level in enumerate(LEVELS):
                    found.radius[row, index] = float(entry["radius"].get(f"{level:g}", math.inf))
                    found.is_own[row, index] = f"{level:g}" in entry["own"]
            if (found.count < 0).any() or not (found.radius >= 0).all():
                raise ValueError("a count or a radius is below zero, or none at all")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise DataError("the intervals are not those of this graph.", where=where) from None
        return found


def check_level(level: float) -> None:
    """Refuses a level that no radii are kept for."""
    if level not in LEVELS:
        listed = ", ".join(f"{known:g}" for known in LEVELS)
        raise UsageError(f"there are no intervals of {level:g}.", where="level", advice=f"Choose from {listed}.")


def conformal_radius(residuals: Floats, level: float) -> float:
    """The ⌈(n + 1) · level⌉-th smallest of n absolute residuals; infinite where n is too small for the level."""
    rank = math.ceil((len(residuals) + 1) * level - 1e-9)  # 10 · 0.9 is 9, not 9.000000000000002
    if rank > len(residuals):
        return math.inf
    return float(np.partition(residuals, rank - 1)[rank - 1])


def fit_radii(relation: Ids, residual: Floats, spread: Floats) -> Radii:
    """From the relations (n,) and absolute residuals (n,) of held-out questions, and each relation's spread."""
    relations = len(spread)
    count = np.bincount(relation, minlength=relations).astype(np.int64)
    order = np.argsort(relation, kind="stable")
    of_relation = np.split(residual[order], np.cumsum(count)[:-1])
    normalised = residual / spread[relation]
    radius, is_own = np.full((len(LEVELS), relations), np.inf), np.zeros((len(LEVELS), relations), np.bool_)
    for row, level in enumerate(LEVELS):
        own = np.array([conformal_radius(found, level) for found in of_relation])
        is_own[row] = (count >= ENOUGH) & np.isfinite(own)
        # Those who share are like one another: few values each. Only where even they are too few do all join in.
        shared = conformal_radius(normalised[~is_own[row, relation]], level)
        if not math.isfinite(shared):
            shared = conformal_radius(normalised, level)
        radius[row] = np.where(is_own[row], own, shared * spread)
    return Radii(radius, is_own, count, np.zeros(relations, np.bool_))


def fit_conditional_radii(
    asked: AskedNumbers, truth: Floats, scale: ResidualScale, is_beyond: Flags | None = None
) -> Radii:
    """From held-out questions and their true numbers (n,), on the model's scale. `scale` has no effects yet; numbers
    that are `is_beyond` (n,) where any interval ends are missed by all.

    Where there are enough questions, errors divided by their expected size are nearly alike: a relation's radius is
    drawn to that of all, the less the more questions it has. With fewer questions, a relation that has enough has a
    radius of its own, and the others share theirs. Of a relation without any question nobody has seen an error: it has
    the radius of strangers, and one with few a radius between.
    """
    fitted, told = scale.fitted(asked, truth)
    if is_beyond is not None:
        strangers = None if told.strange is None else np.where(is_beyond, np.inf, told.strange)
        told = Told(np.where(is_beyond, np.inf, told.beside), strangers)
    count = np.bincount(asked.relation, minlength=len(scale.spread)).astype(np.int64)
    of_others = told.beside if told.strange is None else told.strange
    strange = np.array([_of_strangers(asked.relation, of_others, level) for level in LEVELS])
    if told.strange is None:
        radii = fit_radii(asked.relation, told.beside, np.ones(len(count)))
        return replace(radii, radius=np.where(count > 0, radii.radius, strange[:, None]), scale=scale)
    furthest = float(np.max(of_others, where=np.isfinite(of_others), initial=0.0))
    of_levels = []
    for level, far in zip(LEVELS, strange.tolist(), strict=True):
        drawn = _drawn_radii(asked.relation, told.beside, asked.row % FOLDS, count, min(far, furthest), level)
        of_levels.append(np.where(count > 0, drawn, far))
    radius = np.maximum.accumulate(of_levels)  # a surer interval is never shorter
    return Radii(radius, (count >= ENOUGH) & np.isfinite(radius), count, np.zeros(len(count), np.bool_), fitted)


_TO_SHARED = 100.0
"""How many questions the radius of all relations weighs beside a relation's own."""
_TO_STRANGERS = 3.0
"""How many questions the radius of strangers weighs beside what a relation's own questions say of their errors."""


def _of_strangers(relation: Ids, ratio: Floats, level: float) -> float:
    """The radius of a relation like these, of which no question is known: what holds `level` of the errors where each
    relation weighs the same. Infinite where there are too few relations to say so.
    """
    order = np.argsort(ratio)
    _, place, count = np.unique(relation[order], return_inverse=True, return_counts=True)
    at = int(np.searchsorted(np.cumsum(1.0 / count[place]), (len(count) + 1) * level - 1e-9))
    return float(ratio[order[at]]) if at < len(order) else math.inf


def _drawn_radii(relation: Ids, ratio: Floats, fold: Ids, count: Ids, strange: float, level: float) -> Floats:
    """(relations,) each between its own radius, that of all and that of strangers, and then all of them so much longer
    that what they cover, each fold by the radii of the others, is as much as the level says.
    """
    covered = np.zeros(len(ratio))
    for one in np.unique(fold).tolist():
        left = fold == one
        radius = _between(relation[~left], ratio[~left], len(count), strange, level)
        covered[left] = ratio[left] / radius[relation[left]]
    return _between(relation, ratio, len(count), strange, level) * conformal_radius(covered, level)


def _between(relation: Ids, ratio: Floats, relations: int, strange: float, level: float) -> Floats:
    shared = conformal_radius(ratio, level)
    found: Floats = np.full(relations, shared if 0 < shared < math.inf else 1.0)
    order = np.argsort(relation, kind="stable")
    present, start = np.unique(relation[order], return_index=True)
    for one, errors in zip(present.tolist(), np.split(ratio[order], start[1:]), strict=True):
        own = conformal_radius(errors, level)
        if 0 < own < math.inf:
            found[one] *= (own / found[one]) ** (len(errors) / (len(errors) + _TO_SHARED))
    if 0 < shared < strange < math.inf:
        known = np.bincount(relation, minlength=relations)
        found *= (strange / shared) ** (_TO_STRANGERS / (known + _TO_STRANGERS))
    return found


def never_negative(vocabulary: Vocabulary, tables: Sequence[FactTable]) -> NDArray[np.bool_]:
    """(relations,) true where all training numbers, and enough of them, are zero or more. Dates have no such end: there
    are years before the first.
    """
    return PossibleNumbers.of(vocabulary, tables).never_negative


def cut_at_zero(low: Floats, value: Floats, ends_at_zero: NDArray[np.bool_]) -> Floats:
    """(n,) the lower ends of intervals around `value` (n,), not below zero where nothing can be."""
    return np.where(ends_at_zero, np.maximum(low, np.minimum(value, 0.0)), low)


_BEYOND = 0.1
"""Of the range of a relation's training numbers: how far beyond them an interval may end."""
_DATES_BEYOND = 1.0
"""The same of dates: time goes on."""


def furthest_ends(graph: KnowledgeGraph, tables: list[FactTable], scaling: NumberScaling) -> Floats:
    """(2, relations) where intervals end at most. The fewer numbers training has, the less it knows of their range, so
    intervals may end so much further away; nothing is known of a single one. Below a log scale the range is one of the
    logarithms. Shares end at 100 %.
    """
    numbers = sorted_numbers(concatenate(tables), graph.vocabulary.relation_is_number)
    found: Floats = np.full((2, graph.vocabulary.relation_count), np.inf) * np.array([[-1.0], [1.0]])
    if not len(numbers.value):
        return found
    low, high = numbers.value[numbers.start], numbers.value[numbers.start + numbers.size - 1]
    is_date = np.array([graph.relations[one].unit == DATE_UNIT for one in numbers.present.tolist()])
    enough = numbers.size >= ENOUGH
    beyond = np.where(is_date, _DATES_BEYOND, np.where(enough, _BEYOND, 1.0)) * np.maximum(ENOUGH / numbers.size, 1.0)
    known = enough & ~is_date | (low < high)
    relation, low, high, beyond = numbers.present[known], low[known], high[known], beyond[known]
    with np.errstate(over="ignore"):
        scaled = np.stack([scaling.scale(relation, end) for end in (low, high)])
        found[0, relation] = scaling.unscale(relation, scaled[0] - beyond * (scaled[1] - scaled[0]))
        found[1, relation] = high + beyond * (high - low)
    found[1, PossibleNumbers.of(graph.vocabulary, tables).of_hundred] = 100.0
    return found


def training_edges(graph: KnowledgeGraph, tables: list[FactTable], scaling: NumberScaling) -> Floats:
    """(relations, BINS − 1) where training numbers are cut into parts of one size, on the model's scale."""
    numbers = sorted_numbers(concatenate(tables), graph.vocabulary.relation_is_number)
    found = np.zeros((graph.vocabulary.relation_count, BINS - 1))
    for part in range(1, BINS) if len(numbers.value) else ():
        found[numbers.present, part - 1] = scaling.scale(numbers.present, numbers.quantile(part / BINS))
    return found


def training_spread(graph: KnowledgeGraph, tables: list[FactTable], scaling: NumberScaling) -> Floats:
    """(relations,) the mean distance of each relation's numbers from their median, on the model's scale.

    Where they are all the same, or there are none, nothing is known of the spread: their size stands for it, or 1.
    """
    numbers = sorted_numbers(concatenate(tables), graph.vocabulary.relation_is_number)
    spread = np.ones(graph.vocabulary.relation_count)
    if not len(numbers.value):
        return spread
    relation = numbers.relation.astype(np.int64)
    scaled = scaling.scale(relation, numbers.value)
    middle = scaled[numbers.start + numbers.size // 2]
    found = np.add.reduceat(np.abs(scaled - np.repeat(middle, numbers.size)), numbers.start) / numbers.size
    size = np.abs(numbers.value[numbers.start])
    spread[numbers.present] = np.where(found > 0, found, np.where(size > 0, size, 1.0))
    return spread
