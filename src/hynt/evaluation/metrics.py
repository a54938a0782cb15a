"""The questions of a split, every component of every fact hidden in turn, and what is made of their ranks and errors:
the numbers of a table. No torch here.

Every metric is a ratio of sums over questions (for RMSE, the root of one). So it can be resampled by fact: sums per
fact are all that a bootstrap needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from hynt.errors import UsageError
from hynt.graph.fact_table import (
    ENTITY_KIND,
    FIRST_QUALIFIER,
    KIND_NAMES,
    NUMBER_KIND,
    POSITION_GROUPS,
    RELATION_KIND,
    Components,
    position_group,
)
from hynt.graph.vocabulary import Floats
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.models.contract import Model

TaskName: TypeAlias = Literal["link", "relation", "number"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
KIND_OF_TASK: dict[TaskName, int] = {"link": ENTITY_KIND, "relation": RELATION_KIND, "number": NUMBER_KIND}

AccountScope: TypeAlias = Literal["triplet", "all"]
SCOPES: tuple[AccountScope, ...] = get_args(AccountScope)


def checked_tasks(names: str | Iterable[str]) -> tuple[TaskName, ...]:
    """These tasks, as a list or with commas between them, in their usual order, each once; an unknown name is a
    `UsageError`.
    """
    given = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
    for name in given:
        if name not in TASKS:
            raise UsageError(f"unknown task {name!r}.", where="task", advice=advice_on(name, list(TASKS)))
    if not given:
        raise UsageError("no task was given.", where="task", advice=f"Choose from {', '.join(TASKS)}.")
    return tuple(task for task in TASKS if task in given)


def of_task(components: Components, task: TaskName) -> NDArray[np.int64]:
    """(n,) the numbers of the components that a task asks for."""
    return np.flatnonzero(components.kind == KIND_OF_TASK[task]).astype(np.int64)


def in_scope(position: NDArray[np.int64], scope: AccountScope) -> NDArray[np.bool_]:
    """(n,) whether questions at these positions count: all of them, or those of the primary triplet."""
    return position < FIRST_QUALIFIER if scope == "triplet" else np.ones(len(position), dtype=np.bool_)


def answerable(model: Model, position: NDArray[np.int64], kind: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(n,) whether a model answers these kinds at these positions."""
    table = np.zeros((len(KIND_NAMES), len(POSITION_GROUPS)), dtype=np.bool_)
    for task, place in model.answers:
        table[int(task), POSITION_GROUPS.index(place)] = True
    found: NDArray[np.bool_] = table[kind, position_group(position)]
    return found


def answerable_components(model: Model, components: Components, task: TaskName) -> NDArray[np.int64]:
    """(n,) the numbers of the components of a task that a model answers."""
    from hynt.models.contract import unpredictable

    chosen = of_task(components, task)
    chosen = chosen[answerable(model, components.position[chosen], components.kind[chosen])]
    return chosen[~unpredictable(model, components.relation[chosen])] if task == "number" else chosen


Metrics: TypeAlias = dict[str, float | int | None]

Ties: TypeAlias = Literal["realistic", "hynt"]
TIES: tuple[Ties, ...] = get_args(Ties)

RANKING_METRICS: tuple[str, ...] = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "amri")
NUMBER_METRICS: tuple[str, ...] = ("rmse", "mae", "vs_median")
LOWER_IS_BETTER = frozenset({"mean_rank", "rmse", "mae", "vs_median"})


def ranks(better: NDArray[np.int64], ties: NDArray[np.int64], rule: Ties = "realistic") -> Floats:
    """(n,) 1 + better + ties / 2 over the other candidates; `hynt` floors the half, as the published script does."""
    half = ties // 2 if rule == "hynt" else ties / 2
    return np.asarray(1.0 + better + half, dtype=np.float64)


def ranking_sums(rank: Floats, candidates: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """(n, metrics) numerators and denominators, question by question, of RANKING_METRICS.

    AMRI, the adjusted mean rank index (Berrendorf et al.), is 1 for perfect ranks, 0 for chance and negative for
    worse. Chance puts the answer in the middle of its `candidates` (n,), which the filter makes differ from question
    to question.
    """
    one = np.ones_like(rank)
    tops = [(rank <= top).astype(np.float64) for top in (1, 3, 10)]
    above = np.stack([1.0 / rank, *tops, rank, rank - 1.0], axis=1)
    below = np.stack([one, one, one, one, one, (candidates - 1) / 2], axis=1)
    return above, below


def number_sums(mean_error: Floats, error: Floats, against: Floats | None = None) -> tuple[Floats, Floats]:
    """(n, metrics) numerators and denominators, question by question, of NUMBER_METRICS: squares of what the means are
    off, sizes of what the answers are off, and `against` (n,), what `against_medians` says; None: it was not asked.
    """
    one = np.ones(len(error))
    known = np.zeros(len(error)) if against is None else one
    above = np.stack([mean_error**2, np.abs(error), np.zeros(len(error)) if against is None else against], axis=1)
    return above, np.stack([one, one, known], axis=1)


ROUNDING = 1e-6
"""What an answer in single precision may be off and still be the number itself."""


def against_medians(predicted: Floats, truth: Floats, median: Floats, scaled_error: Floats) -> Floats:
    """(n,) the answer's share of what it and the relation's training `median` are off together: 0 is perfect, ½ as good
    as the median, 1 infinitely worse. No unit and no scale enters, and no single answer counts for more than 1.
    """
    own, other = np.abs(predicted - truth), np.abs(median - truth)
    rounded = (np.abs(scaled_error) <= ROUNDING) | (own <= ROUNDING * np.abs(truth))
    own = np.where((other == 0) & rounded, 0.0, own)  # many numbers are the median, and so is the answer
    most = np.maximum(own, other)
    share = np.divide(own, most, out=np.ones_like(own), where=most > 0)
    rest = np.divide(other, most, out=np.ones_like(own), where=most > 0)
    return np.asarray(share / (share + rest))


def finish(names: tuple[str, ...], above: Floats, below: Floats) -> Floats:
    """(…, metrics) from summed numerators and denominators; NaN where there is nothing to divide by."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(below > 0, above / below, np.nan)
    for index, name in enumerate(names):
        if name == "rmse":
            values[..., index] = np.sqrt(values[..., index])
        if name == "amri":
            values[..., index] = 1.0 - values[..., index]
    return values


def ranking_metrics(rank: Floats, candidates: NDArray[np.int64]) -> Metrics:
    """RANKING_METRICS and the count of questions."""
    return _named(RANKING_METRICS, *ranking_sums(rank, candidates))


def number_metrics(mean_error: Floats, error: Floats, against: Floats | None = None) -> Metrics:
    """NUMBER_METRICS and the count of questions."""
    return _named(NUMBER_METRICS, *number_sums(mean_error, error, against))


def _named(names: tuple[str, ...], above: Floats, below: Floats) -> Metrics:
    """Metrics by name; None, JSON's null, where no question gives a value."""
    values = finish(names, above.sum(axis=0), below.sum(axis=0))
    pairs = zip(names, values.tolist(), strict=True)
    found: Metrics = {name: None if np.isnan(value) else value for name, value in pairs}
    return {**found, "count": len(above)}
