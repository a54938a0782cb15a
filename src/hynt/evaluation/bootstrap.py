"""Bootstrap intervals: how much a metric would move with other facts of the same kind.

Facts are resampled, not questions: the questions of one fact share everything but their hole, so they stand or fall
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hynt.errors import UsageError
from hynt.evaluation.metrics import NUMBER_METRICS, RANKING_METRICS, Floats, Ties, finish, number_sums, ranking_sums
from hynt.evaluation.questions import Scope, in_scope
from hynt.evaluation.results import RankedQuestions, TaskQuestions

SAMPLES = 1000
LEVEL = 0.95
Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True, eq=False)
class FactSums:
    """What each of `f` facts adds to the numerator and the denominator of each metric."""

    names: tuple[str, ...]
    fact: NDArray[np.int64]  # (f,) rows of the split, ascending
    above: Floats  # (f, metrics)
    below: Floats  # (f, metrics)

    def value(self) -> Floats:
        """(metrics,) over all facts."""
        return finish(self.names, self.above.sum(axis=0), self.below.sum(axis=0))


def fact_sums(questions: TaskQuestions, scope: Scope = "all", ties: Ties = "realistic") -> FactSums:
    """The sums per fact of the questions of a scope."""
    keep = in_scope(questions.position, scope)
    if isinstance(questions, RankedQuestions):
        names = RANKING_METRICS
        above, below = ranking_sums(questions.rank(ties)[keep], questions.candidates[keep])
    else:
        names = NUMBER_METRICS
        above, below = number_sums(questions.error[keep])
    fact, owner = np.unique(questions.row[keep], return_inverse=True)

    def summed(values: Floats) -> Floats:
        return np.stack([np.bincount(owner, column, minlength=len(fact)) for column in values.T], axis=1)

    return FactSums(names, fact, summed(above), summed(below))


def resampled(sums: list[FactSums], samples: int, seed: int) -> Floats:
    """(samples, len(sums), metrics): metrics of facts drawn with replacement, the same draw for all of `sums`."""
    if samples < 1:
        raise UsageError(f"a bootstrap needs at least one sample, not {samples}.", where="samples")
    count = len(sums[0].fact)
    rng = np.random.default_rng([seed, 0xB007])
    above = np.empty((samples, len(sums), len(sums[0].names)))
    below = np.empty_like(above)
    for sample in range(samples if count else 0):
        times = np.bincount(rng.integers(0, count, count), minlength=count).astype(np.float64)
        for index, each in enumerate(sums):
            above[sample, index] = times @ each.above
            below[sample, index] = times @ each.below
    if not count:
        above[:] = below[:] = 0.0
    return finish(sums[0].names, above, below)


def interval(values: Floats, level: float = LEVEL) -> Interval:
    """The middle `level` of some values; NaN ones, from samples that left nothing to divide by, are left out."""
    if not 0 < level < 1:
        raise UsageError(f"an interval's level lies between 0 and 1, not at {level}.", where="level")
    finite = values[np.isfinite(values)]
    if not len(finite):
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def intervals(
    questions: TaskQuestions,
    scope: Scope = "all",
    ties: Ties = "realistic",
    samples: int = SAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> dict[str, Interval]:
    """The bootstrap interval of each metric by name; the same seed gives the same interval."""
    sums = fact_sums(questions, scope, ties)
    values = resampled([sums], samples, seed)[:, 0]
    return {name: interval(values[:, index], level) for index, name in enumerate(sums.names)}
