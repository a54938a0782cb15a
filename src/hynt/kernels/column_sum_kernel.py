"""Sums of the columns of a tall matrix: a Triton kernel for parts of it, in a fixed order.

The plain twin is `x.sum(0)`. Import this module only where Triton is installed.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

COLUMNS, BLOCK = 128, 64
"""Columns of a program, and rows that it reads together."""

PROGRAMS = 528
"""Four for each processor of an H200."""


@triton.jit  # type: ignore[untyped-decorator]
def _add_rows(  # type: ignore[no-untyped-def]
    x, out, rows, each, width: tl.constexpr, columns: tl.constexpr, block: tl.constexpr
):
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    total = tl.zeros([block, columns], tl.float32)
    first = tl.program_id(0) * each
    for start in range(first, first + each, block):
        row = start + tl.arange(0, block)
        there = (row < rows) & (row < first + each)
        at = x + row.to(tl.int64)[:, None] * width + column[None, :]
        total += tl.load(at, there[:, None] & (column < width)[None, :], 0.0).to(tl.float32)
    found = tl.sum(total, 0).to(out.dtype.element_ty)
    tl.store(out + tl.program_id(0) * width + column, found, column < width)


def column_sums(x: Tensor, kind: torch.dtype = torch.float32) -> Tensor:
    """(width,) of this precision from (rows, width), contiguous; added up in float32."""
    rows, width = x.shape
    columns = min(COLUMNS, triton.next_power_of_2(width))
    across = triton.cdiv(width, columns)
    each = triton.cdiv(triton.cdiv(max(rows, 1) * across, PROGRAMS), BLOCK) * BLOCK
    parts = triton.cdiv(max(rows, 1), each)
    out = torch.empty(width, dtype=kind, device=x.device)
    if parts == 1:
        _add_rows[(1, across)](x, out, rows, each, width, columns, BLOCK, num_warps=4)
        return out
    partial = torch.empty(parts, width, dtype=torch.float32, device=x.device)
    _add_rows[(parts, across)](x, partial, rows, each, width, columns, BLOCK, num_warps=4)
    _add_rows[(1, across)](partial, out, parts, triton.cdiv(parts, BLOCK) * BLOCK, width, columns, BLOCK, num_warps=4)
    return out
