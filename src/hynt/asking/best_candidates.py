"""The best candidates of a tile of questions, and the sum that makes their scores probabilities.

Candidates come in chunks, and of each chunk only the best are kept: all scores are never held at once. Everything is
done on whole tiles of one shape, so a question's result does not depend on what it is asked together with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

Allowed = Callable[[int, int], Tensor | None]
"""(first, end) → (rows, end − first) bool, which of the candidates first … end − 1 may be answered; None: all."""

_AT_ONCE = 1 << 23
"""How many scores are widened to double precision together."""


@dataclass(frozen=True, eq=False)
class Best:
    """Of `rows` questions."""

    candidate: Tensor  # (rows, k) int64 best first; of equal ones the one with the smaller id first
    score: Tensor  # (rows, k) float32; −∞ where fewer than k candidates were allowed
    total: Tensor  # (rows,) float64 logarithm of the sum of exp(score · sharpness) over the allowed candidates
    count: Tensor  # (rows,) int64 how many were allowed
    is_finite: Tensor  # (rows,) bool whether every score was a finite number, allowed or not


def best_candidates(chunks: Iterable[tuple[int, Tensor]], allowed: Allowed, sharpness: float, top: int) -> Best:
    """From (first, scores) chunks, (rows, width) float32 scores of the candidates first … first + width − 1."""
    best: Best | None = None
    for start, whole in chunks:
        width = max(1, _AT_ONCE // max(1, whole.shape[0]))
        for first in range(0, whole.shape[1], width):
            scores = whole[:, first : first + width]
            place = start + first
            found = _of_chunk(scores, place, allowed(place, place + scores.shape[1]), sharpness, top)
            best = found if best is None else _merged(best, found, top)
    assert best is not None  # a graph has an entity and a relation
    return best


def _of_chunk(scores: Tensor, first: int, allowed: Tensor | None, sharpness: float, top: int) -> Best:
    lowest, highest = torch.aminmax(scores, dim=1)  # both are NaN where any score is
    is_finite = torch.isfinite(lowest) & torch.isfinite(highest)
    count = torch.full_like(lowest, scores.shape[1], dtype=torch.int64)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
        count = torch.count_nonzero(allowed, dim=1)
    total = torch.logsumexp(scores.double() * sharpness, dim=1)
    place, value = _first(scores, min(top, scores.shape[1]))
    return Best(place + first, value, total, count, is_finite)


def _first(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """(rows, top) the best columns, and their scores; of equal ones those with smaller numbers."""
    value, place = torch.topk(scores, top, dim=1, sorted=False)
    least = value.amin(dim=1, keepdim=True)
    tied = torch.nonzero(torch.count_nonzero(scores >= least, dim=1) > top).squeeze(1)
    if len(tied):  # the last places go to the first of those that tie for them
        few, bound = scores[tied], least[tied]
        above, equal = few > bound, few == bound
        room = top - torch.count_nonzero(above, dim=1)[:, None]
        chosen = above | (equal & (equal.cumsum(dim=1) <= room))
        place[tied] = torch.nonzero(chosen)[:, 1].reshape(len(tied), top)
        value[tied] = few.gather(1, place[tied])
    return _in_order(place, value)


def _in_order(place: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Best first, and smaller numbers first among equals."""
    place, order = torch.sort(place, dim=1)
    value, order = torch.sort(value.gather(1, order), dim=1, descending=True, stable=True)
    return place.gather(1, order), value


def _merged(one: Best, other: Best, top: int) -> Best:
    place, value = _in_order(torch.cat([one.candidate, other.candidate], 1), torch.cat([one.score, other.score], 1))
    return Best(
        place[:, :top],
        value[:, :top],
        torch.logaddexp(one.total, other.total),
        one.count + other.count,
        one.is_finite & other.is_finite,
    )
