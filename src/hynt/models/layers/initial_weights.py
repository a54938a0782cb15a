"""How weights start: Xavier-uniform throughout, biases at 0.

The scale is no detail here. A token of the context transformer is an encoding plus a position vector, and a layer
norm follows. Where positions start much larger than encodings, all triplets look alike and all qualifiers look alike
for many epochs, and what qualifiers say is learned late or never (measured: docs/models.md, "How weights start").
"""

from __future__ import annotations

import torch
from torch import nn


def table(rows: int, dimension: int) -> nn.Parameter:
    """(rows, dimension): vectors of entities or relations, or the weights of an output with `rows` candidates."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, dimension)))


def position_vectors(count: int, dimension: int, scale: float = 1.0) -> nn.Parameter:
    """(count, dimension): each vector by itself, as if it mapped `dimension` numbers to as many, times `scale`."""
    bound = scale * (3 / dimension) ** 0.5
    return nn.Parameter(torch.empty(count, dimension).uniform_(-bound, bound))


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear map."""
    made = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(made.weight)
    if bias:
        nn.init.zeros_(made.bias)
    return made
