"""Attention inside many short groups of tokens at once, each way one Triton kernel.

A tile of up to 32 consecutive tokens holds several groups whole. All its tokens are compared by one small matrix
product and those of other groups are masked: what is wasted costs less than anything finer would. Scores, softmax,
dropout and the mix never leave the processor; what was dropped is a hash of its place, so the way back finds it again.
Import this module only where Triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hynt.kernels.dropout_kernel import is_kept

TILE = 32
"""Tokens in a tile, and so the longest group there may be."""

WARPS = {16: 2, 32: 2, 64: 4, 128: 4}
"""How many warps work on a tile, by the width of a head: the best of those tried on an H200."""

MOST_GROUPS = 4
"""How many groups of another size or length one launch serves."""


@triton.jit  # type: ignore[untyped-decorator]
def _place(  # type: ignore[no-untyped-def]
    n0, n1, n2, n3, l0: tl.constexpr, l1: tl.constexpr, l2: tl.constexpr, l3: tl.constexpr, tile: tl.constexpr,
):
    """Of this program's tile: its first row, how many rows it has, its first token and the tokens of a row.

    n rows of l tokens each lie one after the other, for up to four n and l.
    """
    at = tl.program_id(0)
    r0: tl.constexpr = tile // l0
    r1: tl.constexpr = tile // l1
    r2: tl.constexpr = tile // l2
    r3: tl.constexpr = tile // l3
    t1 = tl.cdiv(n0, r0)
    t2 = t1 + tl.cdiv(n1, r1)
    t3 = t2 + tl.cdiv(n2, r2)
    length, per_tile, first_tile, row, token, rows = l0, r0, 0, 0, 0, n0
    if at >= t1:
        length, per_tile, first_tile, row, token, rows = l1, r1, t1, n0, n0 * l0, n1
    if at >= t2:
        length, per_tile, first_tile, row, token, rows = l2, r2, t2, n0 + n1, n0 * l0 + n1 * l1, n2
    if at >= t3:
        row, token = n0 + n1 + n2, n0 * l0 + n1 * l1 + n2 * l2
        length, per_tile, first_tile, rows = l3, r3, t3, n3
    skipped = (at - first_tile) * per_tile
    return row + skipped, tl.minimum(per_tile, rows - skipped), token + skipped * length, length


@triton.jit  # type: ignore[untyped-decorator]
def _looked(  # type: ignore[no-untyped-def]
    query, key, value, present, keys, query_stride, key_stride, value_stride, scale, limit,
    n0, n1, n2, n3, l0: tl.constexpr, l1: tl.constexpr, l2: tl.constexpr, l3: tl.constexpr,
    heads: tl.constexpr, width: tl.constexpr, wide: tl.constexpr, tile: tl.constexpr,
    one_query: tl.constexpr, drops: tl.constexpr,
):
    """What both ways begin with: the tile's queries, keys and values, (tile, wide) each; (queries, keys) attention
    before dropout, and which of it is kept; the numbers of its queries and of its tokens, (tile,) each; its columns;
    and which of both, (tile, wide), are there.
    """
    row, rows, token, length = _place(n0, n1, n2, n3, l0, l1, l2, l3, tile)
    at, number = tl.arange(0, tile), tl.arange(0, wide)
    column = (tl.program_id(1) * width + number)[None, :]
    question, asked = (row, rows) if one_query else (token, rows * length)
    ours = (at < rows * length)[:, None] & (number < width)[None, :]
    asks = (at < asked)[:, None] & (number < width)[None, :]
    asking, own = (question + at)[:, None], (token + at)[:, None]
    q = tl.load(query + asking * query_stride + column, asks, 0.0)
    k = tl.load(key + own * key_stride + column, ours, 0.0)
    v = tl.load(value + own * value_stride + column, ours, 0.0)
    key_row = at // length
    there = at < rows * length
    seen = there & (tl.load(present + token + at, there, 0) != 0)
    query_row = at if one_query else key_row
    pairs = (query_row[:, None] == key_row[None, :]) & seen[None, :]
    scores = tl.where(pairs, tl.dot(q, tl.trans(k), input_precision="ieee") * scale, -1e30)
    raised = tl.where(pairs, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
    weights = raised / tl.maximum(tl.sum(raised, 1), 1e-30)[:, None]  # a place without tokens looks at nothing
    kept = pairs
    if drops:
        kept = is_kept((asking * heads + tl.program_id(1)) * tile + (at % length)[None, :], keys, limit)
    return q, k, v, weights, kept, asking, own, column, asks, ours


@triton.jit  # type: ignore[untyped-decorator]
def _attend(  # type: ignore[no-untyped-def]
    query, key, value, present, keys, out, query_stride, key_stride, value_stride, scale, limit, grown,
    n0, n1, n2, n3, l0: tl.constexpr, l1: tl.constexpr, l2: tl.constexpr, l3: tl.constexpr,
    heads: tl.constexpr, width: tl.constexpr, wide: tl.constexpr, tile: tl.constexpr,
    one_query: tl.constexpr, drops: tl.constexpr,
):
    _, _, v, weights, kept, asking, _, column, asks, _ = _looked(
        query, key, value, present, keys, query_stride, key_stride, value_stride, scale, limit,
        n0, n1, n2, n3, l0, l1, l2, l3, heads, width, wide, tile, one_query, drops,
    )
    mixed = tl.where(kept, weights * grown, 0.0).to(v.dtype)
    found = tl.dot(mixed, v, input_precision="ieee")
    tl.store(out + asking * (heads * width) + column, found.to(out.dtype.element_ty), asks)


@triton.jit  # type: ignore[untyped-decorator]
def _attend_back(  # type: ignore[no-untyped-def]
    query, key, value, present, keys, outer, of_query, of_key, of_value,
    query_stride, key_stride, value_stride, outer_stride, to_query_stride, to_key_stride, scale, limit, grown,
    n0, n1, n2, n3, l0: tl.constexpr, l1: tl.constexpr, l2: tl.constexpr, l3: tl.constexpr,
    heads: tl.constexpr, width: tl.constexpr, wide: tl.constexpr, tile: tl.constexpr,
    one_query: tl.constexpr, drops: tl.constexpr,
):
    q, k, v, weights, kept, asking, own, column, asks, ours = _looked(
        query, key, value, present, keys, query_stride, key_stride, value_stride, scale, limit,
        n0, n1, n2, n3, l0, l1, l2, l3, heads, width, wide, tile, one_query, drops,
    )
    o = tl.load(outer + asking * outer_stride + column, asks, 0.0)
    mixed = tl.where(kept, weights * grown, 0.0).to(v.dtype)
    to_value = tl.dot(tl.trans(mixed), o, input_precision="ieee")
    to_weights = tl.where(kept, tl.dot(o, tl.trans(v), input_precision="ieee") * grown, 0.0)
    to_scores = weights * (to_weights - tl.sum(weights * to_weights, 1)[:, None]) * scale
    to_scores = to_scores.to(v.dtype)
    to_query = tl.dot(to_scores, k, input_precision="ieee")
    to_key = tl.dot(tl.trans(to_scores), q, input_precision="ieee")
    kind = of_key.dtype.element_ty
    tl.store(of_query + asking * to_query_stride + column, to_query.to(kind), asks)
    tl.store(of_key + own * to_key_stride + column, to_key.to(kind), ours)
    tl.store(of_value + own * to_key_stride + column, to_value.to(kind), ours)


def attend_tiles(
    projected: Tensor,
    query: Tensor | None,
    sizes: list[int],
    lengths: list[int],
    present: Tensor,
    heads: int,
    keys: Tensor | None,
    rate: float,
) -> Tensor:
    """(tokens, d): what each token takes from its group, for `sizes` rows of `lengths` tokens each, one after another.

    `projected` (tokens, 3·d) holds queries, keys and values; or (tokens, 2·d) keys and values, and `query` (rows, d)
    one query per row: then the outcome is (rows, d). `present` (tokens,) bool says which tokens may be looked at.
    `keys` (2,) int32 choose what is dropped at this `rate`; None drops nothing.
    """
    if len(sizes) > MOST_GROUPS or max(lengths) > TILE:
        raise ValueError(f"at most {MOST_GROUPS} kinds of groups, of at most {TILE} tokens")
    found: Tensor = _forward(projected, query, sizes, lengths, present, heads, keys, rate)
    return found


@torch.library.custom_op("hynt::attend_tiles", mutates_args=())
def _forward(
    projected: Tensor, query: Tensor | None, sizes: list[int], lengths: list[int], present: Tensor, heads: int,
    keys: Tensor | None, rate: float,
) -> Tensor:
    q, k, v = _parts(projected.contiguous(), None if query is None else query.contiguous())
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    _attend[(_tiles(sizes, lengths), heads)](
        q, k, v, present.contiguous(), q if keys is None else keys.contiguous(), out,
        q.stride(0), k.stride(0), v.stride(0), *_numbers(q, heads, rate), *_groups(sizes, lengths),
        heads, *_widths(q, heads), TILE, query is not None, keys is not None, num_warps=WARPS[_widths(q, heads)[1]],
    )
    return out


@_forward.register_fake
def _(
    projected: Tensor, query: Tensor | None, sizes: list[int], lengths: list[int], present: Tensor, heads: int,
    keys: Tensor | None, rate: float,
) -> Tensor:
    q, _, _ = _parts(projected, query)
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


@torch.library.custom_op("hynt::attend_tiles_backward", mutates_args=())
def _backward(
    outer: Tensor, projected: Tensor, query: Tensor | None, sizes: list[int], lengths: list[int], present: Tensor,
    heads: int, keys: Tensor | None, rate: float,
) -> tuple[Tensor, Tensor]:
    """Gradients of `projected` and of `query`, which is empty where there is none."""
    projected, outer = projected.contiguous(), outer.contiguous()
    q, k, v = _parts(projected, None if query is None else query.contiguous())
    # Every token is in some tile, so every number is written.
    to_projected = torch.empty_like(projected)
    to_query = projected.new_empty(0) if query is None else torch.empty_like(q)
    of_q, of_k, of_v = _parts(to_projected, None if query is None else to_query)
    _attend_back[(_tiles(sizes, lengths), heads)](
        q, k, v, present.contiguous(), q if keys is None else keys.contiguous(), outer, of_q, of_k, of_v,
        q.stride(0), k.stride(0), v.stride(0), outer.stride(0), of_q.stride(0), of_k.stride(0),
        *_numbers(q, heads, rate), *_groups(sizes, lengths),
        heads, *_widths(q, heads), TILE, query is not None, keys is not None, num_warps=WARPS[_widths(q, heads)[1]],
    )
    return to_projected, to_query


@_backward.register_fake
def _(
    outer: Tensor, projected: Tensor, query: Tensor | None, sizes: list[int], lengths: list[int], present: Tensor,
    heads: int, keys: Tensor | None, rate: float,
) -> tuple[Tensor, Tensor]:
    made = [torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (projected, query) if x is not None]
    return made[0], made[1] if query is not None else projected.new_empty(0)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    projected, query, ctx.sizes, ctx.lengths, present, ctx.heads, keys, ctx.rate = inputs
    ctx.save_for_backward(projected, query, present, keys)


def _return(ctx: Any, outer: Tensor) -> tuple[Any, ...]:
    projected, query, present, keys = ctx.saved_tensors
    to_projected, to_query = _backward(
        outer, projected, query, ctx.sizes, ctx.lengths, present, ctx.heads, keys, ctx.rate
    )
    return to_projected, None if query is None else to_query, None, None, None, None, None, None


torch.library.register_autograd("hynt::attend_tiles", _return, setup_context=_remember)


def _parts(projected: Tensor, query: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, (n, d) each."""
    if query is None:
        query, key, value = projected.chunk(3, 1)
    else:
        key, value = projected.chunk(2, 1)
    return query, key, value


def _tiles(sizes: list[int], lengths: list[int]) -> int:
    return sum(triton.cdiv(size, TILE // length) for size, length in zip(sizes, lengths, strict=True))


def _groups(sizes: list[int], lengths: list[int]) -> list[int]:
    """Four sizes and four lengths; what is missing has no rows."""
    more = MOST_GROUPS - len(sizes)
    return [*sizes, *[0] * more, *lengths, *[1] * more]


def _numbers(query: Tensor, heads: int, rate: float) -> tuple[float, int, float]:
    """The scale of scores, the limit that a hash must reach, and what the rest grows by."""
    return (query.shape[1] // heads) ** -0.5, int(rate * 2**31), 1 / (1 - rate)


def _widths(query: Tensor, heads: int) -> tuple[int, int]:
    """The width of a head, and the power of two that the products of a GPU take it for."""
    width = query.shape[1] // heads
    return width, max(16, triton.next_power_of_2(width))
