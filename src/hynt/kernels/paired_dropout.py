"""Which numbers of a table are dropped: one hash decides for two neighbours, sixteen bits each.

Kernels make it where they need it and again on the way back; `kept_pairs` is the same thing for whole tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

STEPS = 2**16


def limit_and_growth(rate: float) -> tuple[int, float]:
    """The number below which sixteen bits drop, and what those kept are multiplied by."""
    limit = min(round(rate * STEPS), STEPS - 1)
    return limit, STEPS / (STEPS - limit)


def kept_pairs(rows: int, width: int, keys: Tensor, rate: float) -> Tensor:
    """(rows, width) bool, false for a share of `rate`; `keys` (2,) int32 make the choice. `width` is even."""
    limit, _ = limit_and_growth(rate)
    place = torch.arange(rows * width // 2, dtype=torch.int64, device=keys.device)
    first, second = (keys.long() & 0xFFFFFFFF).unbind()
    mixed = (place + first) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    mixed = mixed ^ second
    mixed = ((mixed ^ (mixed >> 15)) * 0x46CA68B) & 0xFFFFFFFF
    mixed = mixed ^ (mixed >> 16)
    return (torch.stack([mixed & 0xFFFF, mixed >> 16], 1) >= limit).view(rows, width)
