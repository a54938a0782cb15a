"""Sums of neighbours in a sorted list as a Triton kernel. Its plain twin is `segment_sums.summed`.

Import this module only where Triton is installed.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from hynt.batches.fact_slots import Links

GROUP, BLOCK, WARPS = 4, 4, 2
"""Pieces of one program, since most rows have few items; items of each that are read at once; and its warps."""

PARTS = 32
"""Parts of a long row that are read at once."""

COLUMNS = 128


@triton.jit  # type: ignore[untyped-decorator]
def _sum_pieces(  # type: ignore[no-untyped-def]
    items, order, piece_row, piece_first, piece_last, piece_place, out, partial, pieces, rows, places,
    width: tl.constexpr, columns: tl.constexpr, group: tl.constexpr, block: tl.constexpr,
):
    piece = tl.program_id(0) * group + tl.arange(0, group)
    there = piece < pieces
    row = tl.load(piece_row + piece, there, rows)
    there = there & (row < rows)
    first, last = tl.load(piece_first + piece, there, 0), tl.load(piece_last + piece, there, 0)
    place = tl.load(piece_place + piece, there, 0)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    inside = column < width
    total = tl.zeros([group, columns], tl.float32)
    for start in range(0, tl.max(last - first, 0), block):
        at = first[:, None] + start + tl.arange(0, block)[None, :]
        mine = at < last[:, None]
        item = tl.load(order + at, mine, 0).to(tl.int64)
        where = items + item[:, :, None] * width + column[None, None, :]
        total += tl.sum(tl.load(where, mine[:, :, None] & inside[None, None, :], 0.0).to(tl.float32), 1)
    whole = there & (place == places)
    to = out + row.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(to, total.to(out.dtype.element_ty), whole[:, None] & inside[None, :])
    part = partial + place.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(part, total, (there & (place < places))[:, None] & inside[None, :])


@triton.jit  # type: ignore[untyped-decorator]
def _sum_parts(  # type: ignore[no-untyped-def]
    partial, long_row, long_first, long_last, out, rows,
    width: tl.constexpr, columns: tl.constexpr, parts: tl.constexpr,
):
    row = tl.load(long_row + tl.program_id(0))
    if row < rows:
        first, last = tl.load(long_first + tl.program_id(0)), tl.load(long_last + tl.program_id(0))
        column = tl.program_id(1) * columns + tl.arange(0, columns)
        inside = column < width
        total = tl.zeros([columns], tl.float32)
        for start in range(first, last, parts):
            at = start + tl.arange(0, parts)
            where = partial + at.to(tl.int64)[:, None] * width + column[None, :]
            total += tl.sum(tl.load(where, (at < last)[:, None] & inside[None, :], 0.0), 0)
        tl.store(out + row.to(tl.int64) * width + column, total.to(out.dtype.element_ty), inside)


def summed_by_kernel(items: Tensor, links: Links) -> Tensor:
    """(rows, width) in the precision of `items` (n, width), added up in float32."""
    items, pieces, width = items.contiguous(), links.cut(), items.shape[1]
    out = torch.empty(links.rows, width, dtype=items.dtype, device=items.device)
    partial = torch.empty(pieces.places, width, dtype=torch.float32, device=items.device)
    columns = min(COLUMNS, triton.next_power_of_2(width))
    count, across = len(pieces.row), triton.cdiv(width, columns)
    _sum_pieces[(triton.cdiv(count, GROUP), across)](
        items, links.order, pieces.row, pieces.first, pieces.last, pieces.place, out, partial,
        count, links.rows, pieces.places, width, columns, GROUP, BLOCK, num_warps=WARPS,
    )
    _sum_parts[(len(pieces.long_row), across)](
        partial, pieces.long_row, pieces.long_first, pieces.long_last, out, links.rows, width, columns, PARTS,
        num_warps=4,
    )
    return out
