"""Every component that was judged, with the evidence against it, put together from all parts of an audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.auditing.judges import Judged
from hynt.auditing.judging import relation_sorts
from hynt.auditing.plan import AuditPart, AuditPlan
from hynt.batches.epoch_plan import derived_seed
from hynt.batches.number_scaling import NumberScaling
from hynt.calibration.intervals import LEVELS, cut_at_zero, fit_radii, never_negative, training_spread
from hynt.graph.fact_table import POSITION_GROUPS, Components, component_starts, components, position_group
from hynt.graph.seen_values import place_keys
from hynt.graph.vocabulary import Flags, Floats, Ids

LEVEL = 0.9
"""Of the intervals around predicted numbers."""

MANY = 300
"""The least number of stored values for which a place is judged by decoys of its own."""

_FEW_ERRORS = 5

_LEAST = 1e-3
"""Of a radius: a residual below this is as good as none."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """`m` components. Columns of ranked ones hold fillers for numbers, and the other way round: `stored.kind` says."""

    stored: Components  # (m,) what the graph holds; `row` is the fact's number in the whole graph
    part: Ids  # (m,) the part that judged it
    score: Floats  # (m,) log10 of the evidence against the stored value
    log_probability: Floats  # (m,) of the stored value
    place: Floats  # (m,) of the stored value, from 1
    best: Ids  # (m,) what the model would have said
    best_log_probability: Floats  # (m,)
    values: Ids  # (m,) how many values a blind guess would be among
    predicted: Floats  # (m,) the number that the model would have said
    residual: Floats  # (m,) |stored − predicted| / radius of the interval
    low: Floats  # (m,) ends of the interval; infinite where too little is known
    high: Floats  # (m,)
    is_own: Flags  # (m,) whether the interval is from the relation's own residuals, not from shared ones

    def about(self, wanted: Flags) -> Verdicts:
        """Those about the facts that are wanted (n,)."""
        rows = np.flatnonzero(wanted[self.stored.row])
        columns = {one.name: getattr(self, one.name)[rows] for one in fields(self) if one.name != "stored"}
        return Verdicts(stored=self.stored.take(rows), **columns)


def verdicts(plan: AuditPlan, judged: Sequence[tuple[AuditPart, Judged]]) -> Verdicts:
    """Puts it all together. What calibrates a part comes from the other parts that judges of the same sort judged."""
    vocabulary = plan.graph.vocabulary
    everything, starts = components(plan.table, vocabulary.relation_is_number), component_starts(plan.table)
    ranked = [(index, one) for index, (_, found) in enumerate(judged) for one in (found.link, found.relation)]
    numbers = [(index, found.number) for index, (_, found) in enumerate(judged)]
    fact = np.concatenate([*(one.fact for _, one in ranked), *(one.fact for _, one in numbers)])
    position = np.concatenate([*(one.position for _, one in ranked), *(one.position for _, one in numbers)])
    lengths = [(index, len(one.fact)) for index, one in ranked] + [(index, len(one.fact)) for index, one in numbers]
    part = np.repeat([index for index, _ in lengths], [length for _, length in lengths]).astype(np.int64)
    stored = everything.take(starts[fact] + position)
    size, first = len(stored), sum(len(one.fact) for _, one in ranked)

    def column(name: str) -> NDArray[Any]:
        return _padded([getattr(one, name) for _, one in ranked], size, 0)

    found = Verdicts(
        stored,
        part,
        np.zeros(size),
        column("log_probability"),
        column("place"),
        column("best"),
        column("best_log_probability"),
        column("values"),
        _padded([one.predicted for _, one in numbers], size, first),
        np.zeros(size),
        np.full(size, -np.inf),
        np.full(size, np.inf),
        np.zeros(size, np.bool_),
    )
    decoys = column("decoy_log_probability")
    keys = place_keys(stored.position, stored.relation, relation_sorts(vocabulary))
    by_run = np.array([one.by_run for one, _ in judged], dtype=np.bool_)
    for sort in (False, True):
        rows = np.flatnonzero(by_run[part] == sort)
        _ranked_scores(found, rows[rows < first], decoys, keys)
        _number_scores(found, rows[rows >= first], plan, by_run=sort)
    return found


def _padded(columns: Sequence[NDArray[Any]], size: int, first: int) -> NDArray[Any]:
    joined = np.concatenate([*columns]) if columns else np.zeros(0)
    found = np.zeros(size, dtype=joined.dtype)
    found[first : first + len(joined)] = joined
    return found


def _ranked_scores(found: Verdicts, rows: Ids, decoys: Floats, keys: Ids) -> None:
    """Entities and relations, each position for itself; places with many of them each for themselves. Where there was
    nothing to choose from the score stays 0.
    """
    rows = rows[found.values[rows] > 1]
    if not len(rows):
        return
    values = np.log(found.values[rows])
    signal, other = -(found.log_probability[rows] + values), -(decoys[rows] + values)
    group, part = _groups(found.stored.take(rows), keys[rows]), found.part[rows]
    for one in np.unique(group).tolist():
        own = np.flatnonzero(group == one)
        drawn = own[np.isfinite(other[own])]
        found.score[rows[own]] = evidence(signal[own], part[own], other[drawn], part[drawn])


def _groups(stored: Components, keys: Ids) -> Ids:
    """(n,) which components are set beside the same decoys: how well a birthplace can be told says little about how
    well a colour can, and a relation in degrees is told from the other less well than one in metres.
    """
    _, which, count = np.unique(keys, return_inverse=True, return_counts=True)
    many = count[which.reshape(-1)] >= MANY
    return np.where(many, len(POSITION_GROUPS) + keys, position_group(stored.position))


def _number_scores(found: Verdicts, rows: Ids, plan: AuditPlan, *, by_run: bool) -> None:
    """Numbers, all positions together: the radius has made them alike. All are measured on one scale, that of the whole
    graph: each fold's own differs a little. A run has learned numbers that are far off as they are, unlike the models
    of folds, and may err in such a relation far beyond its spread: there its own errors say what is usual.
    """
    if not len(rows):
        return
    scaling = NumberScaling.fit([plan.learned], plan.graph.vocabulary, plan.settings.log_relations)
    stored, part = found.stored.take(rows), found.part[rows]
    relation = stored.relation.astype(np.int64)
    middle = scaling.scale(relation, found.predicted[rows])
    error = np.abs(scaling.scale(relation, stored.number) - middle)
    spread = training_spread(plan.graph, [plan.learned], scaling)
    level, radius = LEVELS.index(LEVEL), np.full(len(rows), np.inf)
    for one in np.unique(part).tolist():
        own, others = part == one, part != one
        if others.any():
            usual = _usual_spread(relation[others], error[others], spread) if by_run else spread
            fitted = fit_radii(relation[others], error[others], usual)
            radius[own] = fitted.radius[level, relation[own]]
            found.is_own[rows[own]] = fitted.is_own[level, relation[own]]
    with np.errstate(over="ignore", invalid="ignore"):
        known = np.isfinite(radius)
        low = scaling.unscale(relation[known], (middle - radius)[known])
        ends = never_negative(plan.graph.vocabulary, [plan.learned])[relation[known]]
        found.low[rows[known]] = cut_at_zero(low, found.predicted[rows[known]], ends)
        found.high[rows[known]] = scaling.unscale(relation[known], (middle + radius)[known])
    safe = np.maximum(radius, np.finfo(np.float64).tiny)
    found.residual[rows] = error / safe
    wrong = _wrong_numbers(stored, derived_seed(plan.settings.seed, "wrong numbers"))
    twice = np.tile(np.arange(len(rows)), len(wrong))
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.abs(scaling.scale(relation[twice], np.concatenate(wrong)) - middle[twice]) / safe[twice]
    drawn = np.flatnonzero(np.isfinite(moved) & (np.concatenate(wrong) != stored.number[twice]))
    found.score[rows] = evidence(_signal(found.residual[rows]), part, _signal(moved[drawn]), part[twice[drawn]])


def _usual_spread(relation: Ids, error: Floats, spread: Floats) -> Floats:
    """(relations,) how widely numbers are spread, or as much as the median error of a relation speaks for where that is
    more; a few errors at least must say so.
    """
    order = np.lexsort((error, relation))
    present, start, size = np.unique(relation[order], return_index=True, return_counts=True)
    median = error[order][start + size // 2]
    typical = float(np.median(error / spread[relation]))
    found = spread.copy()
    if typical > 0:
        found[present] = np.where(size >= _FEW_ERRORS, np.maximum(spread[present], median / typical), spread[present])
    return found


def _signal(residual: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(residual, _LEAST)))


def _wrong_numbers(stored: Components, seed: int) -> list[Floats]:
    """What wrong numbers are like, two decoys for each: another number of the same relation, and one off by a factor
    of ten.
    """
    random = np.random.default_rng(seed)
    order = np.lexsort((random.random(len(stored)), stored.relation))
    again = np.lexsort((random.random(len(stored)), stored.relation))
    other = np.empty(len(stored))
    other[order] = stored.number[again]
    tenfold = stored.number * np.where(random.random(len(stored)) < 0.5, 10.0, 0.1)
    return [other, tenfold]


# From what judges say to one number per fact, whatever kinds of components it has. Plain numpy.
#
# A signal x says how badly a stored value fits: for entities and relations −log(p · n), how many times less likely than
# a blind guess among the n values that could stand there; for numbers the logarithm of the residual over the conformal
# radius. Signals of different kinds do not compare: a birthplace is guessed badly for everyone, a relation hardly ever.
# So each is set beside the signals of decoys, values put in its place at random. Logistic regression says how many
# times likelier a decoy is than a stored value to have such a signal; that ratio is the evidence against the value, and
# evidence compares. If one component of a fact is wrong, and any may be, the evidence against the fact is the mean of
# the ratios of its components.

_STEPS = 50
_CLOSE = 1e-8
_RIDGE = 1.0
_FEW = 20
"""Fewer stored values or decoys than these say nothing."""


def evidence(signal: Floats, part: Ids, decoy: Floats, decoy_part: Ids) -> Floats:
    """(n,) log10 of the ratio for each stored value, from values and decoys of the other parts alone.

    `signal` (n,) and `decoy` (d,) belong to components of one group, `part` (n,) and `decoy_part` (d,) to the models
    that judged them. 0 where there is too little to go by.
    """
    found = np.zeros(len(signal))
    for one in np.unique(part).tolist():
        own = part == one
        stored, wrong = signal[~own], decoy[decoy_part != one]
        if min(len(stored), len(wrong)) >= _FEW:
            found[own] = _Ratio(stored, wrong).at(signal[own])
    return found


class _Ratio:
    """log10 of the ratio of densities at a signal, as two straight lines that meet at 0: one slope for signals that fit
    better than a guess, or lie inside the interval, and another beyond. Never falling.
    """

    def __init__(self, stored: Floats, wrong: Floats) -> None:
        values, is_wrong = np.concatenate([stored, wrong]), np.arange(len(stored) + len(wrong)) >= len(stored)
        # As many of each in weight: then the log-odds are the log of the ratio of densities.
        weight = np.where(is_wrong, 0.5 / len(wrong), 0.5 / len(stored)) * len(values)
        self._bound = math.log(min(len(stored), len(wrong)))
        self._weights = _logistic(_features(values), is_wrong.astype(np.float64), weight)

    def at(self, signal: Floats) -> Floats:
        constant, below, above = self._weights
        below, above = max(below, 0.0), max(above, 0.0)
        slopes = np.minimum(signal, 0.0) * below + np.maximum(signal, 0.0) * above
        # Bent towards a bound that it never reaches: n values cannot speak for a ratio above n.
        return np.asarray(-np.logaddexp(-(constant + slopes), -self._bound) / math.log(10))


def _features(signal: Floats) -> Floats:
    return np.stack([np.ones(len(signal)), np.minimum(signal, 0.0), np.maximum(signal, 0.0)], axis=1)


def _logistic(features: Floats, target: Floats, weight: Floats) -> Floats:
    """Newton's method with a little ridge on the slopes, so that a perfect separation stays finite."""
    found = np.zeros(features.shape[1])
    ridge = _RIDGE * np.array([0.0, *np.ones(features.shape[1] - 1)])
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(features @ found, -30.0, 30.0)))
        bend = features.T @ (features * (weight * (chance * (1.0 - chance) + 1e-9))[:, None]) + np.diag(ridge + 1e-9)
        step = np.linalg.solve(bend, features.T @ (weight * (target - chance)) - ridge * found)
        found = found + step
        if float(np.abs(step).max()) < _CLOSE:
            break
    return found


def of_facts(score: Floats, fact: Ids) -> tuple[Ids, Floats, Ids]:
    """The different facts (f,), the log10 of the mean ratio of their components, and the most suspicious component
    (f,) of each, as an index into `score`; of equal ones the first.
    """
    order = np.lexsort((np.arange(len(score)), -score, fact))
    facts, first, count = np.unique(fact[order], return_index=True, return_counts=True)
    worst = order[first]
    if not len(facts):
        return facts.astype(np.int64), np.zeros(0), worst.astype(np.int64)
    highest = score[worst]
    total = np.add.reduceat(10.0 ** (score[order] - np.repeat(highest, count)), first)
    return facts.astype(np.int64), highest + np.log10(total / count), worst.astype(np.int64)
