"""LiteralE's module g: an entity's vector and its literals become one vector of the same width."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

GateKind = Literal["gated", "linear"]


class LiteralGate(nn.Module):
    """z = σ(W₁e + W₂l + b), c = tanh(W₃[e; l] + b₃), g = (1 − z)∘e + z∘c."""

    def __init__(self, dimension: int, literals: int) -> None:
        super().__init__()
        self.of_entity = nn.Linear(dimension, dimension, bias=False)
        self.of_literals = nn.Linear(literals, dimension, bias=False)
        self.bias = nn.Parameter(torch.zeros(dimension))
        self.changed = nn.Linear(dimension + literals, dimension)

    def forward(self, entities: Tensor, literals: Tensor) -> Tensor:
        """(n, dimension) from (n, dimension) and (n, literals)."""
        gate = torch.sigmoid(self.of_entity(entities) + self.of_literals(literals) + self.bias)
        changed = torch.tanh(self.changed(torch.cat([entities, literals], 1)))
        return (1 - gate) * entities + gate * changed


class LinearGate(nn.Module):
    """A single linear map of both, for ComplEx and ConvE with a tanh behind it."""

    def __init__(self, dimension: int, literals: int, *, bounded: bool) -> None:
        super().__init__()
        self.changed = nn.Linear(dimension + literals, dimension)
        self.bounded = bounded

    def forward(self, entities: Tensor, literals: Tensor) -> Tensor:
        """(n, dimension) from (n, dimension) and (n, literals)."""
        changed: Tensor = self.changed(torch.cat([entities, literals], 1))
        return torch.tanh(changed) if self.bounded else changed


def literal_gate(kind: GateKind, dimension: int, literals: int, *, bounded: bool) -> nn.Module:
    """The gate by name; `bounded` asks a linear one for its tanh."""
    return LiteralGate(dimension, literals) if kind == "gated" else LinearGate(dimension, literals, bounded=bounded)
