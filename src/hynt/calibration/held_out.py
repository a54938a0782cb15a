"""Held-out questions as calibration sees them: each right answer among the candidates that are not known otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.calibration.temperature import FirstAnswers, first_answers_of_chunks
from hynt.evaluation.questions import KIND_OF_TASK, POSITION_GROUPS, TaskName, of_task, position_group
from hynt.graph.components import Components, components
from hynt.graph.known_answers import AnswerLists, KnownAnswers
from hynt.graph.question_keys import question_keys
from hynt.models.contract import Model
from hynt.runs.opening import LoadedRun
from hynt.runs.scoring import ReadTile, read_tiles

MOST_QUESTIONS = 4096
"""Enough for one number to three digits; more are thinned out evenly."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Questions of one task that the model has read, to be scored as often as needed."""

    task: TaskName
    tiles: list[ReadTile]
    answer: Ids  # (n,) the right answers
    others: AnswerLists  # known answers of each question, the right one among them
    total: int  # questions of the split, before some were left out

    def __len__(self) -> int:
        return len(self.answer)

    def first_answers(self, sharpness: float) -> FirstAnswers:
        """The first answers at a sharpness."""
        with torch.no_grad():
            return FirstAnswers.joined([self._of_tile(tile, sharpness) for tile in self.tiles])

    def _of_tile(self, tile: ReadTile, sharpness: float) -> FirstAnswers:
        answer = torch.from_numpy(self.answer[tile.which]).to(tile.question.encoded.device)
        return first_answers_of_chunks(self._chunks(tile), answer, sharpness)

    def _chunks(self, tile: ReadTile) -> Iterator[tuple[int, Tensor]]:
        """(first, scores): (k, width) scores of the candidates from `first` on, with −∞ for other known answers."""
        row, candidate = self._known_in(tile.which)
        is_other = candidate != self.answer[tile.which][row]
        row, candidate = row[is_other], candidate[is_other]
        for first, whole in tile.entity_chunks() if self.task == "link" else tile.relation_chunks():
            scores = whole[: len(tile.which)].clone()
            here = (candidate >= first) & (candidate < first + scores.shape[1])
            places = (torch.from_numpy(one).to(scores.device) for one in (row[here], candidate[here] - first))
            scores[tuple(places)] = -torch.inf
            yield first, scores

    def _known_in(self, which: Ids) -> tuple[Ids, Ids]:
        starts, ends = self.others.offsets[which], self.others.offsets[which + 1]
        count = ends - starts
        row = np.repeat(np.arange(len(which), dtype=np.int64), count)
        slot = np.repeat(starts - (np.cumsum(count) - count), count) + np.arange(int(count.sum()), dtype=np.int64)
        return row, self.others.answers[slot].astype(np.int64)


def held_out(loaded: LoadedRun, split: str, task: TaskName, device: torch.device) -> HeldOut | None:
    """The link or relation questions of a split that the model answers; None where there are none."""
    table, is_number = loaded.graph.split(split), loaded.graph.vocabulary.relation_is_number
    parts = components(table, is_number)
    chosen = answerable(loaded.model, parts, task)
    if not len(chosen):
        return None
    few = chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_QUESTIONS)).astype(np.int64)]
    index = KnownAnswers.build(loaded.graph.splits, is_number).of_kind(KIND_OF_TASK[task])
    taken = parts.take(few)
    tiles: list[ReadTile] = []
    read_tiles(loaded, table, taken.row, taken.position, device, tiles.append)
    answer = (taken.entity if task == "link" else taken.relation).astype(np.int64)
    return HeldOut(task, tiles, answer, index.lookup(question_keys(table, is_number)[few]), len(chosen))


def answerable(model: Model, parts: Components, task: TaskName) -> Ids:
    """(n,) the components of a task at positions that the model answers."""
    chosen = of_task(parts, task)
    kind = KIND_OF_TASK[task]
    places = [POSITION_GROUPS.index(position) for answer, position in model.answers if int(answer) == kind]
    return chosen[np.isin(position_group(parts.position[chosen]), places)]
