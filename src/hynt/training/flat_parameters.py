"""Small parameters laid side by side in one tensor, so that one sweep moves them all."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class SideBySide:
    """Makes parameters, and their two states, views of three long tensors. Each begins at a multiple of `block`."""

    def __init__(
        self,
        indices: Sequence[int],
        parameters: Sequence[nn.Parameter],
        means: list[Tensor],
        squares: list[Tensor],
        block: int,
    ) -> None:
        """Of all parameters and their states those at `indices`; `means` and `squares` get the views."""
        self.indices = list(indices)
        counts = [parameters[i].numel() for i in self.indices]
        blocks = [-(-count // block) for count in counts]
        device = parameters[self.indices[0]].device
        room = block * sum(blocks)
        self.values, self.means, self.squares, self.gradients = (torch.zeros(room, device=device) for _ in range(4))
        self.owners = torch.repeat_interleave(torch.tensor(self.indices), torch.tensor(blocks)).int().to(device)
        self._places: dict[int, Tensor] = {}  # views of the gradients
        start = 0
        for i, count, wide in zip(self.indices, counts, blocks, strict=True):
            parameter, place = parameters[i], slice(start, start + count)
            self.values[place].copy_(parameter.detach().flatten())
            parameter.data = self.values[place].view(parameter.shape)
            means[i] = self.means[place].view(parameter.shape)
            squares[i] = self.squares[place].view(parameter.shape)
            self._places[i] = self.gradients[place].view(parameter.shape)
            start += block * wide

    def gradient(self, parameters: Sequence[nn.Parameter]) -> Tensor:
        """(all,) the gradients in the same order, 0 where there is none."""
        there, gradients, missing = [], [], []
        for i, place in self._places.items():
            gradient = parameters[i].grad
            if gradient is None:
                missing.append(place)
            else:
                there.append(place)
                gradients.append(gradient)
        torch._foreach_copy_(there, gradients)
        if missing:
            torch._foreach_zero_(missing)
        return self.gradients
