"""Questions that a run cannot answer, found in columns and told in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hynt.errors import DataError, UsageError
from hynt.evaluation.questions import POSITION_GROUPS, position_group
from hynt.graph.components import ENTITY_KIND, KIND_NAMES, position_name
from hynt.training.loading import LoadedRun

Ids = NDArray[np.int64]

NO_CANDIDATE = "no candidate is left."


def answerable(loaded: LoadedRun, position: Ids, kind: Ids) -> NDArray[np.bool_]:
    """(n,) whether the run's model answers these kinds at these positions."""
    table = np.zeros((len(KIND_NAMES), len(POSITION_GROUPS)), dtype=np.bool_)
    for task, place in loaded.model.answers:
        table[int(task), POSITION_GROUPS.index(place)] = True
    found: NDArray[np.bool_] = table[kind, position_group(position)]
    return found


def unanswerable(loaded: LoadedRun, position: int, kind: int) -> UsageError:
    """What the model cannot answer, and what it can."""
    group = POSITION_GROUPS[int(position_group(np.array([position]))[0])]
    offers = sorted({f"{KIND_NAMES[int(task)]} at {place}" for task, place in loaded.model.answers})
    article = "an" if kind == ENTITY_KIND else "a"
    return UsageError(
        f"the model {loaded.settings.model_name!r} cannot answer {article} {KIND_NAMES[kind]} as {group}.",
        where=position_name(position), advice=f"It answers: {', '.join(offers)}.",
    )  # fmt: skip


def non_finite(loaded: LoadedRun, question: str) -> DataError:
    """The model's own fault."""
    return DataError(
        f"the model's answer to {question} is not a finite number.", where=str(loaded.run.path),
        advice="Take an earlier checkpoint, or train again with a lower learning rate.",
    )  # fmt: skip
