"""Relations that were hidden beside a number: each is judged by the row that has the number on its own scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hynt.runs.scoring import ReadTile

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JudgedRelations:
    """`r` rows, each with one relation that is tried there."""

    relation: Ids  # (r,)
    score: Floats  # (r,) the model's own
    logit: Floats  # (r,) the logarithm of the relation's probability among all relations, in its own row
    is_finite: NDArray[np.bool_]  # (r,) whether every score of the row was a finite number

    @classmethod
    def empty(cls, relation: Ids) -> JudgedRelations:
        """Not judged yet."""
        count = len(relation)
        return cls(relation, np.zeros(count), np.zeros(count), np.ones(count, dtype=np.bool_))

    def judging(self, sharpness: float) -> Callable[[ReadTile], None]:
        """What is done with each tile of rows: fills in the columns."""

        def work(tile: ReadTile) -> None:
            ((_, scores),) = tile.relation_chunks()
            sharp = scores.double() * sharpness
            tried = torch.from_numpy(self.relation[tile.repeated]).to(scores.device)[:, None]
            logit = sharp.gather(1, tried).squeeze(1) - torch.logsumexp(sharp, dim=1)
            real, which = len(tile.which), tile.which
            self.score[which] = scores.gather(1, tried).squeeze(1)[:real].double().cpu().numpy()
            self.logit[which] = logit[:real].cpu().numpy()
            self.is_finite[which] = torch.isfinite(scores).all(dim=1)[:real].cpu().numpy()

        return work

    def first(self, owner: Ids, allowed: NDArray[np.bool_], top: int) -> tuple[Ids, Floats]:
        """The best `top` allowed rows of each question `owner` (r,), best first; and their probabilities (a,)."""
        rows = np.flatnonzero(allowed).astype(np.int64)
        if not len(rows):
            return rows, np.zeros(0)
        rows = rows[np.lexsort((self.relation[rows], -self.logit[rows], owner[rows]))]
        starts = np.flatnonzero(np.append(True, np.diff(owner[rows]) > 0))
        size = np.diff(np.append(starts, len(rows)))
        total = np.logaddexp.reduceat(self.logit[rows], starts)
        kept = np.arange(len(rows)) - np.repeat(starts, size) < top
        probability = np.exp(self.logit[rows] - np.repeat(total, size))
        return rows[kept], probability[kept]
