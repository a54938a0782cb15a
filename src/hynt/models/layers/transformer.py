"""A transformer over groups of tokens: post-norm, ReLU, multi-head, as in the paper.

Tokens of all groups lie flat in one tensor, so each linear map is one matrix product over all of them. Only one
output a row is ever needed, so the last layer computes queries, feed-forward and norms for that token alone; keys
and values still come from all. That is exact, not an approximation.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple, cast

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.kernels.dropout import Dropout


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

    def forward(self, tokens: Tensor, groups: Sequence[TokenGroup], asked: Tensor | None = None) -> Tensor:
        """(tokens, dimension) from the same; or, with `asked` (rows,) token numbers, one per row, (rows, dimension) of
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

    def attention(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(tokens, dimension) of one group without dropout, and (heads, tokens, tokens) where each token looked."""
        query, key, value = (
            part.reshape(len(tokens), self.heads, -1).transpose(0, 1) for part in self.projection(tokens).chunk(3, -1)
        )
        weights = (query @ key.transpose(1, 2) * query.shape[-1] ** -0.5).softmax(-1)
        mixed = (weights @ value).transpose(0, 1).flatten(1)
        middle = self.attention_norm(tokens + self.output(mixed))
        return self.feedforward_norm(middle + self.contract(functional.relu(self.expand(middle)))), weights


class Transformer(nn.Module):
    """Several layers; the outcome is one token per row."""

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

    def forward(self, tokens: Tensor, groups: Sequence[TokenGroup], asked: Tensor) -> Tensor:
        """(rows, dimension): the final representations of the `asked` tokens, (rows,) token numbers, one per row in
        order.
        """
        for layer in self.layers[:-1]:
            tokens = layer(tokens, groups)
        result: Tensor = self.layers[-1](tokens, groups, asked)
        return result

    def attention(self, tokens: Tensor, asked: int) -> tuple[Tensor, Tensor]:
        """Of one group: (dimension,) the asked token after all layers; (layers, heads, tokens) where it looked."""
        looked = []
        for layer in self.layers:
            tokens, weights = cast(TransformerLayer, layer).attention(tokens)
            looked.append(weights[:, asked])
        return tokens[asked], torch.stack(looked)


# Multi-head attention inside groups of a few tokens.
#
# Facts are short: most have one to four tokens. At that length the kernels made for long texts spend their time on
# overhead, so on a GPU short groups have a kernel of their own. Everything else is matrix products.

HAS_KERNEL = find_spec("triton") is not None
if HAS_KERNEL:
    from hynt.kernels.attention import MOST_GROUPS, TILE, attend_tiles

NARROW = 128
"""The width of a head up to which the kernel serves."""


class TokenGroup(NamedTuple):
    """Consecutive tokens that attend to each other: `size` rows of `length` tokens each."""

    size: int
    length: int
    present: Tensor | None  # (size, length) bool, false for padding; None where there is none

    @property
    def tokens(self) -> int:
        return self.size * self.length


def attend_groups(
    projected: Tensor, query: Tensor | None, groups: Sequence[TokenGroup], heads: int, dropout: Dropout
) -> Tensor:
    """(tokens, d): what each token takes from its group. Groups lie one after another, shortest first.

    `projected` (tokens, 3·d) holds queries, keys and values; or (tokens, 2·d) keys and values, and `query` (rows, d)
    one query per row: then the outcome is (rows, d). Each row's first token may be looked at.
    """
    width = projected.shape[1] // (3 if query is None else 2) // heads
    if not (HAS_KERNEL and projected.is_cuda and width <= NARROW):
        return _by_products(projected, query, groups, heads, dropout)
    short = [group for group in groups if group.length <= TILE][:MOST_GROUPS]
    rows, tokens = sum(group.size for group in short), sum(group.tokens for group in short)
    if tokens == len(projected):
        return _by_tiles(projected, query, short, heads, dropout)
    own, rest = (None, None) if query is None else (query[:rows], query[rows:])
    found = [_by_tiles(projected[:tokens], own, short, heads, dropout)] if short else []
    return torch.cat([*found, _by_products(projected[tokens:], rest, groups[len(short) :], heads, dropout)])


def _by_tiles(
    projected: Tensor, query: Tensor | None, groups: Sequence[TokenGroup], heads: int, dropout: Dropout
) -> Tensor:
    """`attend_groups` by the kernel for short ones."""
    everywhere = torch.ones(max(group.tokens for group in groups), dtype=torch.bool, device=projected.device)
    present = [everywhere[: g.tokens] if g.present is None else g.present.flatten() for g in groups]
    sizes, lengths = [group.size for group in groups], [group.length for group in groups]
    return attend_tiles(projected, query, sizes, lengths, torch.cat(present), heads, dropout.keys(), dropout.rate)


def _by_products(
    projected: Tensor, query: Tensor | None, groups: Sequence[TokenGroup], heads: int, dropout: Dropout
) -> Tensor:
    """`attend_groups` by matrix products, a group at a time."""
    if query is None:
        query, key, value = projected.chunk(3, -1)
        per_row = None
    else:
        key, value = projected.chunk(2, -1)
        per_row = 1
    found, at, row = [], 0, 0
    for group in groups:
        queries = group.length if per_row is None else per_row
        q = query[row : row + group.size * queries].reshape(group.size, queries, heads, -1)
        k, v = (x[at : at + group.tokens].reshape(group.size, group.length, heads, -1) for x in (key, value))
        mixed = attend_to_itself(v, dropout) if group.length == 1 else attend(q, k, v, group.present, dropout)
        found.append(mixed.reshape(group.size * queries, -1))
        at, row = at + group.tokens, row + group.size * queries
    return torch.cat(found)


def attend(query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, dropout: Dropout) -> Tensor:
    """(rows, queries, heads, width) from queries of that shape and (rows, keys, heads, width) keys and values.

    `present` (rows, keys) bool says which keys may be looked at; each row has at least one.
    """
    scores = torch.einsum("rqhw,rkhw->rhqk", query, key) * query.shape[-1] ** -0.5
    if present is not None:
        scores = scores.masked_fill(~present[:, None, None, :], float("-inf"))
    weights = dropout.small(scores.softmax(-1))
    return torch.einsum("rhqk,rkhw->rqhw", weights.to(value.dtype), value)


def attend_to_itself(value: Tensor, dropout: Dropout) -> Tensor:
    """What attention gives tokens that are alone, (rows, 1, heads, width): their values. Only dropout of whole heads
    remains.
    """
    if dropout.rate == 0:
        return value
    return value * dropout.small(value.new_ones(*value.shape[:3], 1))


# How weights start: Xavier-uniform throughout, biases at 0.
#
# The scale is no detail here. A token of the context transformer is an encoding plus a position vector, and a layer
# norm follows. Where positions start much larger than encodings, all triplets look alike and all qualifiers look alike
# for many epochs, and what qualifiers say is learned late or never (measured: docs/background/models.md, "How weights
# start").


def embedding_table(rows: int, dimension: int) -> nn.Parameter:
    """(rows, dimension): vectors of entities or relations, or the weights of an output with `rows` candidates."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, dimension)))


def position_vectors(count: int, dimension: int, scale: float = 1.0) -> nn.Parameter:
    """(count, dimension): each vector by itself, as if it mapped `dimension` numbers to as many, times `scale`."""
    bound = scale * (3 / dimension) ** 0.5
    return nn.Parameter(torch.empty(count, dimension).uniform_(-bound, bound))


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear map that starts with Xavier's uniform weights and a bias of zero."""
    made = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(made.weight)
    if bias:
        nn.init.zeros_(made.bias)
    return made
