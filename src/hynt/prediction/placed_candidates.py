"""Relations are judged among those that could stand there: seen in that position with values of the same kind and unit.

A relation question beside a number shows the model the number without its unit. Left to itself it may say that a
longitude is a population; no graph could hold that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.evaluation.questions import TaskName
from hynt.prediction.decoys import Places
from hynt.prediction.held_out import HeldOut

Ids = NDArray[np.int64]

AMONG_PLACE: frozenset[TaskName] = frozenset({"relation"})
"""The tasks whose candidates are the values seen in the place that is asked for."""


def keep_seen(scores: Tensor, places: Places, keys: Ids) -> None:
    """Puts −∞ for what is not seen in the place (n,) of each question; `scores` (n, candidates) is written to."""
    different, which = np.unique(keys, return_inverse=True)
    seen = torch.from_numpy(places.seen(different, scores.shape[1])).to(scores.device)
    scores.masked_fill_(~seen[torch.from_numpy(which.reshape(-1)).to(scores.device)], -torch.inf)


@dataclass(frozen=True, eq=False)
class HeldOutInPlace(HeldOut):
    """Held-out questions with only the candidates of their places, so that sharpness is fitted on what is judged."""

    places: Places
    keys: Ids  # (n,) the place of each question

    def _scored(self) -> Iterator[tuple[Tensor, Tensor]]:
        for tile, (scores, answer) in zip(self.tiles, super()._scored(), strict=True):
            keep_seen(scores, self.places, self.keys[tile.which])
            yield scores, answer
