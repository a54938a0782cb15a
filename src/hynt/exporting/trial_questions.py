"""Questions about real facts, with what torch answers: what an exported model is tried on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hynt.batches.buckets import layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.batches.masking import hide
from hynt.errors import UsageError
from hynt.models.contract import Entities, Number, Position, Relations, position_of
from hynt.runs.opening import LoadedRun

FACTS = 40
"""How many facts are asked about, in each of their components."""


@dataclass(frozen=True, eq=False)
class TrialQuestions:
    """Questions in one rectangle, and torch's answers."""

    batch: MaskedBatch
    rows: dict[Task, NDArray[np.int64]]  # which rows ask for what, of those that the model answers
    truth: dict[Task, NDArray[np.float32]]  # scores or numbers of these rows


def trial_questions(loaded: LoadedRun, capacity: int) -> TrialQuestions:
    """About facts of training, long ones first, that have at most `capacity` qualifiers."""
    table = loaded.graph.split("train")
    facts = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, "cpu", loaded.literals)
    counts = facts.qualifier_counts()
    fitting = torch.nonzero(counts <= capacity).squeeze(1)
    if not len(fitting):
        raise UsageError(f"no fact has {capacity} qualifiers or fewer.", where="--qualifiers", advice="Say more.")
    longest = fitting[counts[fitting].argsort(descending=True, stable=True)][: FACTS // 2]
    chosen = torch.cat([longest, fitting[: FACTS // 2]])
    length = 3 + 2 * counts[chosen]
    rows = torch.repeat_interleave(chosen, length)
    asked = torch.cat([torch.arange(int(n)) for n in length])
    batch, answers = hide(facts, rows, asked, layout_of([(len(rows), capacity)]))
    found, truth = _answered(loaded, batch, answers.task), {}
    with torch.no_grad():
        question = loaded.model.read(batch)
        for task, candidates in ((Task.LINK, Entities()), (Task.RELATION, Relations()), (Task.NUMBER, Number())):
            if task in found:
                scores = loaded.model.score(question, candidates).float().numpy()
                truth[task] = np.asarray(scores[found[task]])
    return TrialQuestions(batch, found, truth)


def _answered(loaded: LoadedRun, batch: MaskedBatch, tasks: torch.Tensor) -> dict[Task, NDArray[np.int64]]:
    positions = position_of(batch.asked)
    found: dict[Task, NDArray[np.int64]] = {}
    for task in Task:
        known = [list(Position).index(position) for answer, position in loaded.model.answers if answer == task]
        which = (tasks == int(task)) & torch.isin(positions, torch.tensor(known, dtype=torch.int64))
        if known and bool(which.any()):
            found[task] = np.asarray(torch.nonzero(which).squeeze(1).numpy())
    return found
