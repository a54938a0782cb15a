"""`paired_dropout.kept_pairs` inside kernels. Import this module only where Triton is installed."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def is_kept_pair(row, column, keys, limit, width: tl.constexpr):  # type: ignore[no-untyped-def]
    """(rows, columns) bool for rows (·,) and columns (·,) of a table of this width."""
    place = row.to(tl.uint32)[:, None] * (width // 2) + (column.to(tl.uint32) >> 1)[None, :]
    mixed = place + tl.load(keys).to(tl.uint32)
    mixed = (mixed ^ (mixed >> 16)) * 0x7FEB352D
    mixed = mixed ^ tl.load(keys + 1).to(tl.uint32)
    mixed = (mixed ^ (mixed >> 15)) * 0x46CA68B
    mixed = mixed ^ (mixed >> 16)
    bits = (mixed >> ((column & 1) * 16).to(tl.uint32)[None, :]) & 0xFFFF
    return bits >= limit
