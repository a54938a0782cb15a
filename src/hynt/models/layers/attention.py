"""Multi-head attention inside groups of a few tokens.

Facts are short: most have one to four tokens. At that length the kernels made for long texts spend their time on
overhead, so on a GPU short groups have a kernel of their own. Everything else is matrix products.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.models.layers.dropout import Dropout

HAS_KERNEL = find_spec("triton") is not None
if HAS_KERNEL:
    from hynt.models.layers.attention_kernel import attend_short

SHORT = 16
"""Groups of at most so many tokens are compared by the kernel for short ones on a GPU."""

NARROW = 128
"""The width of a head up to which it serves."""


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

    `present` (rows, keys) bool says which keys may be looked at; each row's first one may.
    """
    if HAS_KERNEL and query.is_cuda and key.shape[1] <= SHORT and key.shape[3] <= NARROW:
        return attend_short(query, key, value, present, dropout.keys(), dropout.rate)
    return attend_by_product(query, key, value, present, dropout)


def attend_by_product(query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, dropout: Dropout) -> Tensor:
    """`attend` by matrix products."""
    scores = torch.einsum("rqhw,rkhw->rhqk", query, key) * query.shape[-1] ** -0.5
    if present is not None:
        scores = scores.masked_fill(~present[:, None, None, :], float("-inf"))
    weights = dropout.small(scores.softmax(-1))
    return torch.einsum("rhqk,rkhw->rqhw", weights.to(value.dtype), value)


def attend_to_itself(value: Tensor, dropout: Dropout) -> Tensor:
    """What attention gives a token that is alone: its value, (tokens, heads, width). Only dropout of whole heads
    remains.
    """
    if dropout.rate == 0:
        return value
    return value * dropout.small(value.new_ones(value.shape[0], value.shape[1], 1))
