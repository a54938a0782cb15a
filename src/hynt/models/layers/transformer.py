"""A transformer over groups of tokens: post-norm, ReLU, multi-head, as in the paper.

Tokens of all groups lie flat in one tensor, so each linear map is one matrix product over all of them. Only one
output a row is ever needed, so the last layer computes queries, feed-forward and norms for that token alone; keys
and values still come from all. That is exact, not an approximation.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.kernels.dropout import Dropout
from hynt.models.layers.attention import Group, attend_groups, attend_to_itself


class TransformerLayer(nn.Module):
    """Attention, then a feed-forward net; after each a residual connection and a layer norm."""

    def __init__(self, dimension: int, heads: int, feedforward: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.projection = nn.Linear(dimension, 3 * dimension)  # queries, keys and values: Q, K, V of the paper
        self.output = nn.Linear(dimension, dimension)
        self.expand = nn.Linear(dimension, feedforward)  # W_1, b_1
        self.contract = nn.Linear(feedforward, dimension)  # W_2, b_2
        self.attention_norm = nn.LayerNorm(dimension)
        self.feedforward_norm = nn.LayerNorm(dimension)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)
        nn.init.zeros_(self.output.bias)

    def forward(self, tokens: Tensor, groups: Sequence[Group], asked: Tensor | None = None) -> Tensor:
        """(tokens, dimension) from the same; or, with `asked` (rows,) token numbers, one a row, (rows, dimension) of
        these.
        """
        drop = Dropout(self.dropout if self.training else 0.0, 4, tokens.device)
        weight, bias, width = self.projection.weight, self.projection.bias, tokens.shape[-1]
        source = tokens
        if all(group.length == 1 for group in groups):  # no queries, no keys
            value = functional.linear(tokens, weight[2 * width :], bias[2 * width :])
            mixed = attend_to_itself(value.view(len(tokens), 1, self.heads, -1), drop).flatten(1)
            source, mixed = (source, mixed) if asked is None else (source[asked], mixed[asked])
        elif asked is None:  # one product for all three: cheaper than leaving out what lone tokens do not need
            mixed = attend_groups(self.projection(tokens), None, groups, self.heads, drop)
        else:
            source = tokens[asked]
            query = functional.linear(source, weight[:width], bias[:width])
            both = functional.linear(tokens, weight[width:], bias[width:])
            mixed = attend_groups(both, query, groups, self.heads, drop)
        attended = self.output(mixed)
        middle = self.attention_norm(source + drop(attended))
        hidden = drop(functional.relu(self.expand(middle)))
        result: Tensor = self.feedforward_norm(middle + drop(self.contract(hidden)))
        return result


class Transformer(nn.Module):
    """Several layers; the outcome is one token a row."""

    def __init__(
        self, dimension: int, layers: int, heads: int, feedforward: int, dropout: float, equal_start: bool = False
    ) -> None:
        """`equal_start` gives all layers the same initial weights, as the released code does."""
        super().__init__()
        first = TransformerLayer(dimension, heads, feedforward, dropout)
        rest = [
            copy.deepcopy(first) if equal_start else TransformerLayer(dimension, heads, feedforward, dropout)
            for _ in range(layers - 1)
        ]
        self.layers = nn.ModuleList([first, *rest])

    def last_norm(self) -> nn.LayerNorm:
        """What the outcome comes from: its gain is how large the outcome is."""
        norm: nn.LayerNorm = self.layers[-1].feedforward_norm  # type: ignore[assignment]
        return norm

    def forward(self, tokens: Tensor, groups: Sequence[Group], asked: Tensor) -> Tensor:
        """(rows, dimension): the final representations of the `asked` tokens, (rows,) token numbers, one a row in
        order.
        """
        for layer in self.layers[:-1]:
            tokens = layer(tokens, groups)
        result: Tensor = self.layers[-1](tokens, groups, asked)
        return result
