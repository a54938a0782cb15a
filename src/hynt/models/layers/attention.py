"""Multi-head attention inside groups of a few tokens.

Facts are short: most have one to four tokens. At that length the kernels made for long texts spend their time on
overhead, so on a GPU short groups have a kernel of their own. Everything else is matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.kernels.dropout import Dropout

HAS_KERNEL = find_spec("triton") is not None
if HAS_KERNEL:
    from hynt.kernels.attention import MOST_GROUPS, TILE, attend_tiles

NARROW = 128
"""The width of a head up to which the kernel serves."""


class Group(NamedTuple):
    """Consecutive tokens that attend to each other: `size` rows of `length` tokens each."""

    size: int
    length: int
    present: Tensor | None  # (size, length) bool, false for padding; None where there is none

    @property
    def tokens(self) -> int:
        return self.size * self.length


def attend_groups(
    projected: Tensor, query: Tensor | None, groups: Sequence[Group], heads: int, dropout: Dropout
) -> Tensor:
    """(tokens, d): what each token takes from its group. Groups lie one after another, shortest first.

    `projected` (tokens, 3·d) holds queries, keys and values; or (tokens, 2·d) keys and values, and `query` (rows, d)
    one query a row: then the outcome is (rows, d). Each row's first token may be looked at.
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


def _by_tiles(projected: Tensor, query: Tensor | None, groups: Sequence[Group], heads: int, dropout: Dropout) -> Tensor:
    """`attend_groups` by the kernel for short ones."""
    everywhere = torch.ones(max(group.tokens for group in groups), dtype=torch.bool, device=projected.device)
    present = [everywhere[: g.tokens] if g.present is None else g.present.flatten() for g in groups]
    sizes, lengths = [group.size for group in groups], [group.length for group in groups]
    return attend_tiles(projected, query, sizes, lengths, torch.cat(present), heads, dropout.keys(), dropout.rate)


def _by_products(
    projected: Tensor, query: Tensor | None, groups: Sequence[Group], heads: int, dropout: Dropout
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
