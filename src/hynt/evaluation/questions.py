"""The questions of a split: every component of every fact, hidden in turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from hynt.errors import UsageError
from hynt.graph.components import ENTITY_KIND, FIRST_QUALIFIER, NUMBER_KIND, RELATION_KIND, Components
from hynt.names import advice_on

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


def position_group(position: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the place of a component whatever the qualifier's number: an index into POSITION_GROUPS."""
    return np.where(position < FIRST_QUALIFIER, position, FIRST_QUALIFIER + (position - FIRST_QUALIFIER) % 2)


POSITION_GROUPS: Sequence[str] = ("head", "relation", "tail", "qualifier relation", "qualifier value")
