"""Attention among a few tokens, each way one Triton kernel: scores, softmax, dropout and the mix never leave the
processor.

Facts are so short that a program takes several of them at once, a head at a time. What was dropped is a hash of its
place, so the way back finds it again. Import this module only where Triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

PRODUCTS = 4096
"""How many products of a query's and a key's numbers a program holds at a time, where facts are short enough."""


@triton.jit  # type: ignore[untyped-decorator]
def _tokens(base, row, per_row, stride, head, rows, most: tl.constexpr, width: tl.constexpr, wide: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where the numbers of some rows' tokens lie, (rows, most, wide), and which of them are there."""
    token = tl.arange(0, most)
    number = tl.arange(0, wide)
    at = ((row * per_row)[:, None] + token[None, :]) * stride
    there = (row < rows)[:, None] & (token < per_row)[None, :]
    place = base + at[:, :, None] + (head * width + number)[None, None, :]
    return place, there[:, :, None] & (number < width)[None, None, :]


@triton.jit  # type: ignore[untyped-decorator]
def _weights(  # type: ignore[no-untyped-def]
    q, k, present, keys, row, head, rows, scale, limit,
    heads: tl.constexpr, queries: tl.constexpr, length: tl.constexpr, most_q: tl.constexpr, most: tl.constexpr,
    masks: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    """(rows, queries, keys) attention before dropout, and which of it is kept."""
    key_at = tl.arange(0, most)
    query_at = tl.arange(0, most_q)
    scores = tl.sum(q[:, :, None, :] * k[:, None, :, :], 3) * scale
    seen = (row < rows)[:, None] & (key_at < length)[None, :]
    if masks:
        seen = seen & (tl.load(present + row[:, None] * length + key_at[None, :], seen, 0) != 0)
    seen = seen | (key_at == 0)[None, :]  # every row sees its first token, so that no sum is 0
    scores = tl.where(seen[:, None, :], scores, float("-inf"))
    raised = tl.exp(scores - tl.max(scores, 2)[:, :, None])
    weights = raised / tl.sum(raised, 2)[:, :, None]
    kept = weights >= 0
    if drops:
        question = (row * heads + head)[:, None] * queries + query_at[None, :]
        place = question[:, :, None] * length + key_at[None, None, :]
        x = place.to(tl.uint32) + tl.load(keys).to(tl.uint32)
        x = (x ^ (x >> 16)) * 0x7FEB352D
        x = x ^ tl.load(keys + 1).to(tl.uint32)
        x = (x ^ (x >> 15)) * 0x846CA68B
        x = (x ^ (x >> 16)) * 0x9E3779B1
        x = x ^ (x >> 15)
        kept = (x >> 1) >= limit
    return weights, kept


@triton.jit  # type: ignore[untyped-decorator]
def _attend(  # type: ignore[no-untyped-def]
    query, key, value, present, keys, out,
    rows, query_stride, key_stride, value_stride, scale, limit, grown,
    heads: tl.constexpr, width: tl.constexpr, queries: tl.constexpr, length: tl.constexpr,
    most_q: tl.constexpr, most: tl.constexpr, wide: tl.constexpr, block: tl.constexpr,
    masks: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * block + tl.arange(0, block)
    head = tl.program_id(1)
    q_at, q_there = _tokens(query, row, queries, query_stride, head, rows, most_q, width, wide)
    k_at, k_there = _tokens(key, row, length, key_stride, head, rows, most, width, wide)
    v_at, v_there = _tokens(value, row, length, value_stride, head, rows, most, width, wide)
    q = tl.load(q_at, q_there, 0.0).to(tl.float32)
    k = tl.load(k_at, k_there, 0.0).to(tl.float32)
    v = tl.load(v_at, v_there, 0.0).to(tl.float32)
    weights, kept = _weights(
        q, k, present, keys, row, head, rows, scale, limit, heads, queries, length, most_q, most, masks, drops
    )
    mixed = tl.where(kept, weights * grown, 0.0)
    found = tl.sum(mixed[:, :, :, None] * v[:, None, :, :], 2)
    o_at, o_there = _tokens(out, row, queries, heads * width, head, rows, most_q, width, wide)
    tl.store(o_at, found.to(out.dtype.element_ty), o_there)


@triton.jit  # type: ignore[untyped-decorator]
def _attend_back(  # type: ignore[no-untyped-def]
    query, key, value, present, keys, outer, of_query, of_key, of_value,
    rows, query_stride, key_stride, value_stride, outer_stride, scale, limit, grown,
    heads: tl.constexpr, width: tl.constexpr, queries: tl.constexpr, length: tl.constexpr,
    most_q: tl.constexpr, most: tl.constexpr, wide: tl.constexpr, block: tl.constexpr,
    masks: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * block + tl.arange(0, block)
    head = tl.program_id(1)
    q_at, q_there = _tokens(query, row, queries, query_stride, head, rows, most_q, width, wide)
    k_at, k_there = _tokens(key, row, length, key_stride, head, rows, most, width, wide)
    v_at, v_there = _tokens(value, row, length, value_stride, head, rows, most, width, wide)
    o_at, o_there = _tokens(outer, row, queries, outer_stride, head, rows, most_q, width, wide)
    q = tl.load(q_at, q_there, 0.0).to(tl.float32)
    k = tl.load(k_at, k_there, 0.0).to(tl.float32)
    v = tl.load(v_at, v_there, 0.0).to(tl.float32)
    o = tl.load(o_at, o_there, 0.0).to(tl.float32)
    weights, kept = _weights(
        q, k, present, keys, row, head, rows, scale, limit, heads, queries, length, most_q, most, masks, drops
    )
    mixed = tl.where(kept, weights * grown, 0.0)
    to_value = tl.sum(mixed[:, :, :, None] * o[:, :, None, :], 1)
    to_weights = tl.sum(o[:, :, None, :] * v[:, None, :, :], 3)
    to_weights = tl.where(kept, to_weights * grown, 0.0)
    to_scores = weights * (to_weights - tl.sum(weights * to_weights, 2)[:, :, None]) * scale
    to_query = tl.sum(to_scores[:, :, :, None] * k[:, None, :, :], 2)
    to_key = tl.sum(to_scores[:, :, :, None] * q[:, :, None, :], 1)
    whole = heads * width
    q_out, q_there = _tokens(of_query, row, queries, whole, head, rows, most_q, width, wide)
    k_out, k_there = _tokens(of_key, row, length, whole, head, rows, most, width, wide)
    v_out, v_there = _tokens(of_value, row, length, whole, head, rows, most, width, wide)
    tl.store(q_out, to_query.to(of_query.dtype.element_ty), q_there)
    tl.store(k_out, to_key.to(of_key.dtype.element_ty), k_there)
    tl.store(v_out, to_value.to(of_value.dtype.element_ty), v_there)


def attend_short(
    query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, keys: Tensor | None, rate: float
) -> Tensor:
    """(rows, queries, heads, width) from queries of that shape and (rows, keys, heads, width) keys and values.

    `present` (rows, keys) bool says which keys may be looked at; the first always may. `keys` (2,) int32 choose what
    is dropped, None drops nothing.
    """
    found: Tensor = _forward(query, key, value, present, keys, rate)
    return found


@torch.library.custom_op("hynt::attend_short", mutates_args=())
def _forward(
    query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, keys: Tensor | None, rate: float
) -> Tensor:
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    query, key, value = _flat(query), _flat(key), _flat(value)
    _attend[_grid(query, key)](
        query, key, value, *_choices(query, present, keys), out, len(query), query.stride(1), key.stride(1),
        value.stride(1), *_numbers(query, rate), *_shape(query, key), present is not None, keys is not None,
        num_warps=_warps(query, key),
    )  # fmt: skip
    return out


@_forward.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, keys: Tensor | None, rate: float) -> Tensor:
    return torch.empty(query.shape, dtype=query.dtype, device=query.device)


@torch.library.custom_op("hynt::attend_short_backward", mutates_args=())
def _backward(
    outer: Tensor, query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, keys: Tensor | None, rate: float
) -> tuple[Tensor, Tensor, Tensor]:
    found = tuple(torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (query, key, value))
    query, key, value, outer = _flat(query), _flat(key), _flat(value), _flat(outer)
    _attend_back[_grid(query, key)](
        query, key, value, *_choices(query, present, keys), outer, *found, len(query), query.stride(1), key.stride(1),
        value.stride(1), outer.stride(1), *_numbers(query, rate), *_shape(query, key), present is not None,
        keys is not None, num_warps=_warps(query, key),
    )  # fmt: skip
    return found[0], found[1], found[2]


@_backward.register_fake
def _(
    outer: Tensor, query: Tensor, key: Tensor, value: Tensor, present: Tensor | None, keys: Tensor | None, rate: float
) -> tuple[Tensor, Tensor, Tensor]:
    of_query, of_key, of_value = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (query, key, value))
    return of_query, of_key, of_value


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.rate = inputs[5]


def _return(ctx: Any, outer: Tensor) -> tuple[Any, ...]:
    return (*_backward(outer, *ctx.saved_tensors, ctx.rate), None, None, None)


torch.library.register_autograd("hynt::attend_short", _return, setup_context=_remember)


def _flat(x: Tensor) -> Tensor:
    """The same numbers, (rows, tokens, heads, width), with a token's numbers side by side and tokens evenly apart."""
    rows, tokens, _, width = x.shape
    even = x.stride(3) == 1 and x.stride(2) == width and (rows == 1 or x.stride(0) == tokens * x.stride(1))
    return x if even else x.contiguous()


def _choices(query: Tensor, present: Tensor | None, keys: Tensor | None) -> tuple[Tensor, Tensor]:
    """Pointers for the kernel; where there is none, any other stands in and is not looked at."""
    return query if present is None else present.contiguous(), query if keys is None else keys.contiguous()


def _numbers(query: Tensor, rate: float) -> tuple[float, int, float]:
    """The scale of scores, the limit that a hash must reach, and what the rest grows by."""
    return query.shape[-1] ** -0.5, int(rate * 2**31), 1 / (1 - rate)


def _powers(query: Tensor, key: Tensor) -> tuple[int, int, int, int]:
    """Queries, keys and width rounded up to powers of two, and how many rows a program takes."""
    most_q, most, wide = (triton.next_power_of_2(n) for n in (query.shape[1], key.shape[1], query.shape[3]))
    return most_q, most, wide, max(1, PRODUCTS // (most_q * most * wide))


def _shape(query: Tensor, key: Tensor) -> tuple[int, ...]:
    return (query.shape[2], query.shape[3], query.shape[1], key.shape[1], *_powers(query, key))


def _grid(query: Tensor, key: Tensor) -> tuple[int, int]:
    return triton.cdiv(len(query), _powers(query, key)[3]), query.shape[2]


def _warps(query: Tensor, key: Tensor) -> int:
    most_q, most, wide, _ = _powers(query, key)
    return 4 if most_q * most * wide <= PRODUCTS else 8
