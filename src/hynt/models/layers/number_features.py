"""Numbers as a network reads them: the value, its logarithm, its rank in its relation, and codes of all three."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

VALUE_CODES, RANK_CODES, LOG_CODES, WAVES = 32, 16, 8, 6

FEATURES = 3 + VALUE_CODES + RANK_CODES + LOG_CODES + 2 * WAVES
"""How many numbers stand for a number."""

APART = 4.0
"""How far apart relations lie on the one line on which ranks are looked up; values are clamped to [−1, 2]."""


class NumberFeatures(nn.Module):
    """φ(v) of scaled numbers. Ranks are among the values that each relation had when this was made."""

    line: Tensor  # (values,) float64 relation × APART + value, sorted
    begin: Tensor  # (relations + 1,) int64 where each relation's values begin on the line

    def __init__(self, relations: int, relation: Tensor, value: Tensor) -> None:
        """From (values,) int64 relations and (values,) float32 scaled numbers."""
        super().__init__()
        line, _ = torch.sort(_on_line(relation, value))
        ends = torch.arange(relations + 1, device=value.device, dtype=torch.float64) * APART - APART / 2
        self.register_buffer("line", line, persistent=False)
        self.register_buffer("begin", torch.searchsorted(line, ends), persistent=False)

    def known(self, relation: Tensor) -> Tensor:
        """(n,) bool: relations whose numbers have been seen; others have no ranks."""
        return self.begin[relation + 1] > self.begin[relation]

    def forward(self, relation: Tensor, value: Tensor) -> Tensor:
        """(n, FEATURES) float32 from (n,) int64 and (n,) float32."""
        place = _on_line(relation, value)
        first, last = self.begin[relation], self.begin[relation + 1]
        left, right = torch.searchsorted(self.line, place), torch.searchsorted(self.line, place, right=True)
        rank = ((left + right - 2 * first) / (2 * (last - first)).clamp(min=1)).float().clamp(0, 1)
        logarithm = torch.log10(value.clamp(min=1e-6)) / 6 + 1
        angle = 2 * math.pi * value.unsqueeze(1) * 2 ** torch.arange(WAVES, device=value.device)
        waves = torch.stack([angle.sin(), angle.cos()], 2).flatten(1)
        plain = torch.stack([value, logarithm, rank], 1)
        codes = [_codes(value, VALUE_CODES), _codes(rank, RANK_CODES), _codes(logarithm, LOG_CODES)]
        return torch.cat([plain, *codes, waves], 1)


def _on_line(relation: Tensor, value: Tensor) -> Tensor:
    return relation.double() * APART + value.double().clamp(-1, 2) - 0.5


def _codes(x: Tensor, count: int) -> Tensor:
    """(n, count): code k rises from 0 to 1 while x does from k/count to (k + 1)/count."""
    return (x.unsqueeze(1) * count - torch.arange(count, device=x.device)).clamp(0, 1)
