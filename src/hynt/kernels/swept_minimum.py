"""Scores Σ_f w_f·max(0, min(a_f + b_f, c_f + d_f)) of many questions (a, c) with many candidates (b, d).

Written out, every question and candidate have tens of thousands of features (HINGE), which would be written to memory
and read again several times. On a GPU with Triton one kernel makes them and writes the sums alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hynt.batches.buckets import BatchLayout
from hynt.kernels.device import HAS_TRITON


def block(weight: Tensor, a: Tensor, b: Tensor, c: Tensor | None, d: Tensor | None) -> Tensor:
    """(rows, candidates) from (F,), (rows, F), (candidates, F) and, where there are any, (rows, F) and (candidates, F).

    The plain twin of `convolved_minimum_kernel.swept_scores`.
    """
    found = a.unsqueeze(1) + b
    if c is not None and d is not None:
        found = torch.minimum(found, c.unsqueeze(1) + d)
    return (torch.relu(found) * weight).sum(-1)


class SweptMinimum:
    """Sweeps candidates, for a model whose `output` is linear in the rectified minima."""

    def __init__(self, output: nn.Linear) -> None:
        self.output = output

    def serves(self, ids: Tensor) -> bool:
        """Whether it can score these candidates, (candidates,) the same for all questions."""
        return HAS_TRITON and ids.is_cuda and ids.dim() == 1 and not torch.is_grad_enabled()

    def __call__(self, a: Tensor, b: Tensor, c: Tensor | None = None, d: Tensor | None = None) -> Tensor:
        """(rows, candidates), in the letters of `block`."""
        from hynt.kernels.convolved_minimum_kernel import swept_scores  # here: importing triton takes long

        return swept_scores(self.output.weight.squeeze(0), a, b, c, d) + self.output.bias


NOTHING = float("inf")
"""The minimum of nothing."""


def slot_minimum(features: Tensor, counted: Tensor, layout: BatchLayout) -> Tensor:
    """(rows, width) from (slots, width) features; `counted` (slots,) bool. Infinite for a row that has none."""
    held = torch.where(counted.unsqueeze(1), features, NOTHING)
    found = []
    for span in layout.spans():
        if span.capacity == 0:
            found.append(held.new_full((span.size, features.shape[1]), NOTHING))
        else:
            found.append(held[span.slots].view(span.size, span.capacity, -1).amin(1))
    return torch.cat(found)
