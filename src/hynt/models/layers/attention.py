"""Multi-head attention inside groups of a few tokens, written out.

Facts are short: most have one to four tokens. At that length a fused attention kernel spends its time on overhead,
while products and sums written out are merged by the compiler into one or two kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from hynt.models.layers.dropout import Dropout

SHORT = 16
"""Groups of at most so many tokens are compared by broadcasting on a GPU; longer ones, and all on a CPU, by matrix
products.
"""


class Group(NamedTuple):
    """Consecutive tokens that attend to each other: `size` rows of `length` tokens each."""

    size: int
    length: int
    present: Tensor | None  # (size, length) bool, false for padding; None where there is none

    @property
    def tokens(self) -> int:
        return self.size * self.length


def attend(query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, dropout: Dropout) -> Tensor:
    """(rows, queries, heads, width) from queries of that shape and (rows, keys, heads, width) keys and values.

    `present` (rows, keys) bool says which keys may be looked at; each row has at least one.
    """
    form = attend_by_broadcast if query.is_cuda and key.shape[1] <= SHORT else attend_by_product
    return form(query, key, value, present, dropout)


def attend_by_product(query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, dropout: Dropout) -> Tensor:
    """`attend` by matrix products."""
    scores = torch.einsum("rqhw,rkhw->rhqk", query, key) * query.shape[-1] ** -0.5
    if present is not None:
        scores = scores.masked_fill(~present[:, None, None, :], float("-inf"))
    weights = dropout.small(scores.softmax(-1))
    return torch.einsum("rhqk,rkhw->rqhw", weights.to(value.dtype), value)


def attend_by_broadcast(query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, dropout: Dropout) -> Tensor:
    """`attend` by products of numbers and sums, which the compiler merges."""
    scores = (query.unsqueeze(2) * key.unsqueeze(1)).sum(-1) * query.shape[-1] ** -0.5  # (rows, queries, keys, heads)
    if present is not None:
        scores = scores.masked_fill(~present[:, None, :, None], float("-inf"))
    weights = dropout.small(scores.softmax(2))
    return (weights.to(value.dtype).unsqueeze(-1) * value.unsqueeze(1)).sum(2)


def attend_to_itself(value: Tensor, dropout: Dropout) -> Tensor:
    """What attention gives a token that is alone: its value, (tokens, heads, width). Only dropout of whole heads
    remains.
    """
    if dropout.rate == 0:
        return value
    return value * dropout.small(value.new_ones(value.shape[0], value.shape[1], 1))
