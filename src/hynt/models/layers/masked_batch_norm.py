"""Batch normalisation in which padding does not count."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MaskedBatchNorm(nn.Module):
    """Normalises each feature of (n, features) or (n, features, width) by statistics of the rows that count.

    As torch's own, but shapes stay static: rows are left out by a weight, not by picking the others.
    """

    running_mean: Tensor  # (features,)
    running_variance: Tensor  # (features,)

    def __init__(self, features: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.epsilon = momentum, epsilon
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_variance", torch.ones(features))

    def forward(self, x: Tensor, counted: Tensor) -> Tensor:
        """The same shape. `counted` (n,) bool says which rows make the statistics while training."""
        if not self.training:
            return self.fixed(x, 1)
        x = x.float()
        rows, one_each = counted.float(), (1, -1, 1)[: x.dim()]
        share = rows.view(-1, *(1,) * (x.dim() - 1))
        size = rows.sum() * (x.shape[2] if x.dim() == 3 else 1)
        over = (0, 2)[: x.dim() - 1]
        mean = (x * share).sum(over) / size.clamp(min=1)
        centred = x - mean.view(one_each)
        variance = (centred.square() * share).sum(over) / size.clamp(min=1)
        with torch.no_grad():
            # A batch without a row that counts, such as one of facts without qualifiers, leaves no trace.
            step = torch.where(size > 1, self.momentum, 0.0)
            self.running_mean += step * (mean - self.running_mean)
            self.running_variance += step * (variance * size / (size - 1).clamp(min=1) - self.running_variance)
        scale = self.weight * torch.rsqrt(variance + self.epsilon)
        return centred * scale.view(one_each) + self.bias.view(one_each)

    def fixed(self, x: Tensor, axis: int) -> Tensor:
        """Any shape with features at `axis`, by the running statistics: then every row is normalised by itself."""
        scale, shift = self.scale_and_shift()
        shape = [1] * x.dim()
        shape[axis] = len(scale)
        return x * scale.view(shape) + shift.view(shape)

    def scale_and_shift(self) -> tuple[Tensor, Tensor]:
        """(features,) each: the running statistics as a factor and a term."""
        scale = self.weight * torch.rsqrt(self.running_variance + self.epsilon)
        return scale, self.bias - self.running_mean * scale
