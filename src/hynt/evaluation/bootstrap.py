"""Bootstrap intervals: how much a metric would move with other facts of the same kind.

Facts are resampled, not questions: the questions of one fact share everything but their blank, so they stand or fall
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hynt.errors import UsageError
from hynt.evaluation.metrics import (
    LOWER_IS_BETTER,
    NUMBER_METRICS,
    RANKING_METRICS,
    SCOPES,
    AccountScope,
    TaskName,
    Ties,
    finish,
    in_scope,
    number_sums,
    ranking_sums,
)
from hynt.evaluation.results import Evaluation, NumberQuestions, RankedQuestions, TaskQuestions, columns
from hynt.graph.vocabulary import Floats

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


def fact_sums(questions: TaskQuestions, scope: AccountScope = "all", ties: Ties = "realistic") -> FactSums:
    keep = in_scope(questions.position, scope)
    if isinstance(questions, RankedQuestions):
        names = RANKING_METRICS
        above, below = ranking_sums(questions.rank(ties)[keep], questions.candidates[keep])
    else:
        names = NUMBER_METRICS
        against = None if questions.against is None else questions.against[keep]
        above, below = number_sums(questions.mean_error[keep], questions.error[keep], against)
    fact, owner = np.unique(questions.row[keep], return_inverse=True)

    def summed(values: Floats) -> Floats:
        return np.stack([np.bincount(owner, column, minlength=len(fact)) for column in values.T], axis=1)

    return FactSums(names, fact, summed(above), summed(below))


def resampled(sums: list[FactSums], samples: int, seed: int) -> Floats:
    """(samples, len(sums), metrics): metrics of facts drawn with replacement, the same draw for all of `sums`."""
    if samples < 1:
        what = f"a bootstrap needs at least one sample, not {samples}."
        raise UsageError(what, where="samples", advice="Ask for 1,000 or more.")
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
        what = f"an interval's level lies between 0 and 1, not at {level}."
        raise UsageError(what, where="level", advice="Give a share such as 0.95.")
    finite = values[np.isfinite(values)]
    if not len(finite):
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def intervals(
    questions: TaskQuestions,
    scope: AccountScope = "all",
    ties: Ties = "realistic",
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[str, Interval]:
    """The bootstrap interval of each metric by name; the same seed gives the same interval. A metric that nothing was
    asked for has none.
    """
    sums = fact_sums(questions, scope, ties)
    values = resampled([sums], samples, seed)[:, 0]
    found = {name: interval(values[:, index]) for index, name in enumerate(sums.names)}
    return {name: one for name, one in found.items() if np.isfinite(one).all()}


# Two runs on the same questions, compared in pairs.
#
# A difference of two means says little by itself; the same questions asked of both say much more. Each fact's
# contributions are kept together and both runs are resampled alike, so what the runs share cancels out.

MUST_AGREE = ("graph", "split", "filter", "ties", "scaled_on", "candidates")
"""What two protocols must have in common for their numbers to be comparable; who was trained how may differ."""


def compare(
    first: Evaluation, second: Evaluation, samples: int = SAMPLES, level: float = LEVEL, seed: int = 0
) -> dict[str, Any]:
    """For each task both answer, each scope and metric: both values, first minus second, its interval and p-value."""
    _refuse_unlike(first, second)
    shared = [task for task in first.per_question if task in second.per_question]
    if not shared:
        raise UsageError("the two runs were evaluated on different tasks.", advice="Evaluate both on one task.")
    found: dict[str, Any] = {}
    for task in shared:
        one, other = first.per_question[task], second.per_question[task]
        _refuse_other_questions(one, other, task)
        found[task] = {scope: _one_scope(one, other, scope, first.ties, samples, level, seed) for scope in SCOPES}
    return found


def _one_scope(
    one: TaskQuestions, other: TaskQuestions, scope: AccountScope, ties: Ties, samples: int, level: float, seed: int
) -> dict[str, Any]:
    sums = [fact_sums(one, scope, ties), fact_sums(other, scope, ties)]
    drawn = resampled(sums, samples, seed)
    found: dict[str, Any] = {}
    for index, name in enumerate(sums[0].names):
        values = [float(each.value()[index]) for each in sums]
        differences = drawn[:, 0, index] - drawn[:, 1, index]
        low, high = interval(differences, level)
        if not np.isfinite([*values, low, high]).all():
            continue  # nothing was asked for it
        found[name] = {
            "first": values[0],
            "second": values[1],
            "difference": values[0] - values[1],
            "low": low,
            "high": high,
            "p_value": p_value(differences),
            "lower_is_better": name in LOWER_IS_BETTER,
        }
    keep = in_scope(one.position, scope)
    gap = (_badness(one, ties) - _badness(other, ties))[keep]
    found["questions"] = {
        "first_better": int((gap < 0).sum()),
        "second_better": int((gap > 0).sum()),
        "equal": int((gap == 0).sum()),
    }
    return found


def p_value(differences: NDArray[np.float64]) -> float:
    """Two-sided: how often resampling turns the sign of the difference, twice; one is added so that it is never 0."""
    finite = differences[np.isfinite(differences)]
    fewer = min(int((finite <= 0).sum()), int((finite >= 0).sum()))
    return min(1.0, 2 * (fewer + 1) / (len(finite) + 1))


def _badness(questions: TaskQuestions, ties: Ties) -> NDArray[np.float64]:
    """(n,) the lower the better: the rank, or the size of the error."""
    return questions.rank(ties) if isinstance(questions, RankedQuestions) else np.abs(questions.error)


def _refuse_unlike(first: Evaluation, second: Evaluation) -> None:
    for key in MUST_AGREE:
        one, other = first.protocol.get(key), second.protocol.get(key)
        if one != other:
            raise UsageError(
                f"the two runs may not be compared: {key} is {one!r} for the first and {other!r} for the second.",
                where=f"protocol.{key}",
                advice="Evaluate both by the same protocol.",
            )


def _refuse_other_questions(one: TaskQuestions, other: TaskQuestions, task: TaskName) -> None:
    names = ["row", "position", "truth"] if isinstance(one, NumberQuestions) else ["row", "position", "answer"]
    mine, theirs = columns(one), columns(other)
    for name in names:
        if name not in theirs or not np.array_equal(mine[name], theirs[name]):
            raise UsageError(
                f"the two runs were not asked the same {task} questions: they differ in {name!r} "
                f"({len(one)} and {len(other)} questions).",
                advice="Evaluate both on the same graph and split; models must answer the same positions.",
            )
