"""Binary cross entropy over all candidates against the true answers of each question ("1-N" or "KvsAll").

The labels are never made: with y = (1 − ε)·[true answer] + 1/N for N candidates, the loss Σ softplus(x) − x·y needs a
sum over all scores and the scores of the few true answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor


class TrueAnswers(NamedTuple):
    """The true answers of a batch's questions, end to end, with filler up to a fixed number."""

    row: Tensor  # (places,) int64 the question
    candidate: Tensor  # (places,) int64
    is_real: Tensor  # (places,) bool, false for filler


def true_answers(questions: Tensor, weights: Tensor, offsets: Tensor, answers: Tensor, places: int) -> TrueAnswers:
    """The answers of (rows,) questions whose weight is not 0, from lists end to end. Static shapes, no waiting."""
    first = offsets[questions]
    counts = torch.where(weights > 0, offsets[questions + 1] - first, 0)
    ends = counts.cumsum(0)
    place = torch.arange(places, device=questions.device)
    row = torch.searchsorted(ends, place, right=True).clamp(max=len(questions) - 1)
    is_real = place < ends[-1]
    slot = torch.where(is_real, first[row] + place - (ends - counts)[row], 0)
    return TrueAnswers(row, answers[slot], is_real)


def binary_loss(logits: Tensor, true: TrueAnswers, smoothing: float) -> Tensor:
    """(rows,) float32: each question's mean over its candidates, from (rows, candidates) logits.

    Smoothing ε > 0 is that of ConvE: labels (1 − ε)·y + 1/N, whose rows do not sum to one; 0 leaves y as it is.
    """
    result: Tensor = _BinaryLoss.apply(logits, true.row, true.candidate, true.is_real, smoothing)  # type: ignore[no-untyped-call]
    return result


class _BinaryLoss(torch.autograd.Function):
    """One function, because the logits are by far the largest tensor of a step: nothing else of their size is kept."""

    @staticmethod
    def forward(
        context: Any, logits: Tensor, row: Tensor, candidate: Tensor, is_real: Tensor, smoothing: float
    ) -> Tensor:
        wide, candidates = logits.float(), logits.shape[1]
        base = 1 / candidates if smoothing > 0 else 0.0
        picked = torch.where(is_real, wide[row, candidate], 0.0) * (1 - smoothing)
        total = functional.softplus(wide).sum(1) - base * wide.sum(1)
        context.save_for_backward(logits, row, candidate, is_real)
        context.smoothing, context.base = smoothing, base
        return total.index_add(0, row, -picked) / candidates

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        logits, row, candidate, is_real = context.saved_tensors
        (outer,) = (gradient / logits.shape[1] for gradient in gradients)
        gradient = (torch.sigmoid(logits.float()) - context.base) * outer.unsqueeze(1)
        picked = torch.where(is_real, outer[row], 0.0) * (context.smoothing - 1)
        gradient = gradient.index_put((row, candidate), picked, accumulate=True)
        return gradient.to(logits.dtype), None, None, None, None
