"""The questions of a split: every component of every fact, hidden in turn."""

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
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.models.contract import Model

TaskName: TypeAlias = Literal["link", "relation", "number"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
KIND_OF_TASK: dict[TaskName, int] = {"link": ENTITY_KIND, "relation": RELATION_KIND, "number": NUMBER_KIND}

AccountScope: TypeAlias = Literal["triplet", "all"]
SCOPES: tuple[AccountScope, ...] = get_args(AccountScope)


def checked_tasks(names: Iterable[str]) -> tuple[TaskName, ...]:
    """These tasks in their usual order, each once; an unknown name is a `UsageError`."""
    given = list(names)
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
