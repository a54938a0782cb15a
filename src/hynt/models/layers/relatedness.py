"""How related the pairs of a fact are: the heart of NaLP, pooled without ever forming pairs of pairs."""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.models.layers.masked_batch_norm import MaskedBatchNorm


def uniform_table(rows: int, dimension: int) -> nn.Parameter:
    """(rows, dimension), uniform within ± 1 / √dimension."""
    bound = dimension**-0.5
    return nn.Parameter(torch.empty(rows, dimension).uniform_(-bound, bound))


class Relatedness(nn.Module):
    """o_i = ReLU(BN(W_c [p_i; x_i])); ρ_ij = ReLU(G [o_i; o_j] + b); the score is linear in the minimum over all i, j.

    With G = [G₁ G₂] the minimum over pairs (i, j) is ReLU(min_i G₁o_i + min_j G₂o_j + b): i and j range
    independently and ReLU is monotone. So (G₁o_i, G₂o_i) is what a pair of role and value becomes.
    """

    def __init__(self, roles: int, values: int, dimension: int, filters: int, hidden: int) -> None:
        super().__init__()
        self.width = 2 * hidden
        self.role = uniform_table(roles, dimension)
        self.value = uniform_table(values, dimension)
        self.convolution = nn.Parameter(torch.empty(filters, 2 * dimension))  # W_c
        nn.init.trunc_normal_(self.convolution, std=0.1, a=-0.2, b=0.2)
        self.norm = MaskedBatchNorm(filters)
        self.relate = nn.Parameter(nn.init.xavier_uniform_(torch.empty(hidden, 2 * filters)))  # G
        self.relate_bias = nn.Parameter(torch.zeros(hidden))
        self.output = nn.Linear(hidden, 1)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def role_part(self, roles: Tensor) -> Tensor:
        """(…, filters): the left half of W_c on roles."""
        d = self.role.shape[1]
        return functional.linear(functional.embedding(roles, self.role), self.convolution[:, :d])

    def value_part(self, values: Tensor) -> Tensor:
        """(…, filters): the right half of W_c on values."""
        d = self.role.shape[1]
        return functional.linear(functional.embedding(values, self.value), self.convolution[:, d:])

    def after(self, joined: Tensor, counted: Tensor | None) -> Tensor:
        """(…, 2 hidden): G₁o and G₂o."""
        normal = self.norm.fixed(joined, -1) if counted is None else self.norm(joined, counted)
        filters = len(self.convolution)
        both = torch.cat([self.relate[:, :filters], self.relate[:, filters:]])
        return functional.linear(functional.relu(normal), both)

    def finish(self, lowest: Tensor) -> Tensor:
        """(…) from the minima of G₁o and of G₂o."""
        first, second = lowest.chunk(2, -1)
        scores: Tensor = self.output(functional.relu(first + second + self.relate_bias))
        return scores.squeeze(-1)
