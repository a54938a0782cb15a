"""The dropout of `dropout.py` as one Triton kernel, for steps that run as written: there each operation of the hash
would be a sweep of its own. It keeps the very same numbers, and so does `is_kept_pair` inside other kernels. Import
this module only where Triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 2048


@triton.jit
def is_kept(place, keys, limit):  # type: ignore[no-untyped-def]
    """Whether what stands at these places is kept: a hash of place and two keys, as `dropout.kept` has it."""
    mixed = place.to(tl.uint32) + tl.load(keys).to(tl.uint32)
    mixed = (mixed ^ (mixed >> 16)) * 0x7FEB352D
    mixed = mixed ^ tl.load(keys + 1).to(tl.uint32)
    mixed = (mixed ^ (mixed >> 15)) * 0x846CA68B
    mixed = (mixed ^ (mixed >> 16)) * 0x9E3779B1
    mixed = mixed ^ (mixed >> 15)
    return (mixed & 0x7FFFFFFF) >= limit


@triton.jit  # type: ignore[untyped-decorator]
def _drop(x, keys, out, count, limit, grown, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    value = tl.load(x + at, at < count, 0.0).to(tl.float32) * grown
    kept = is_kept(at, keys, limit)
    tl.store(out + at, tl.where(kept, value, 0.0).to(out.dtype.element_ty), at < count)


def _dropped(x: Tensor, keys: Tensor, rate: float) -> Tensor:
    x = x.contiguous()
    out, count = torch.empty_like(x), x.numel()
    _drop[(triton.cdiv(count, BLOCK),)](x, keys, out, count, int(rate * 2**31), 1 / (1 - rate), BLOCK)
    return out


class HashedDropout(torch.autograd.Function):
    """`apply(x, keys, rate)`: `x` with some numbers 0 and the others grown; keys (2,) int32 choose which."""

    @staticmethod
    def forward(context: Any, x: Tensor, keys: Tensor, rate: float) -> Tensor:
        context.save_for_backward(keys)
        context.rate = rate
        return _dropped(x, keys, rate)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (keys,) = context.saved_tensors
        return _dropped(gradients[0], keys, context.rate), None, None


@triton.jit  # type: ignore[untyped-decorator]
def is_kept_pair(row, first, keys, limit, width: tl.constexpr, columns: tl.constexpr):  # type: ignore[no-untyped-def]
    """(rows, columns) bool for rows (·,) and so many columns from `first`, an even one, of a table of this width."""
    pair = first // 2 + tl.arange(0, columns // 2)
    place = row.to(tl.uint32)[:, None] * (width // 2) + pair.to(tl.uint32)[None, :]
    mixed = place + tl.load(keys).to(tl.uint32)
    mixed = (mixed ^ (mixed >> 16)) * 0x7FEB352D
    mixed = mixed ^ tl.load(keys + 1).to(tl.uint32)
    mixed = (mixed ^ (mixed >> 15)) * 0x46CA68B
    mixed = mixed ^ (mixed >> 16)
    return tl.interleave(mixed & 0xFFFF, mixed >> 16) >= limit
