"""The lowest of each fact's qualifiers, feature by feature."""

from __future__ import annotations

import torch
from torch import Tensor

from hynt.batches.buckets import BatchLayout

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
