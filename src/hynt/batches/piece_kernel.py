"""Pieces as `fact_slots.pieces_of` has them, by two Triton kernels and a running sum.

Seven lists are cut for each step, and forty small operations for each would take the GPU from the step before, which
runs meanwhile. Import this module only where Triton is installed.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 256


@triton.jit  # type: ignore[untyped-decorator]
def _count(offsets, counted, rows, longest: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Of each row: how many pieces it has, and in the upper half of the number whether it is long."""
    row = tl.program_id(0) * block + tl.arange(0, block)
    there = row <= rows
    items = tl.load(offsets + row + 1, there, 0) - tl.load(offsets + row, there, 0)
    parts = tl.maximum((items + longest - 1) // longest, 1).to(tl.int64)
    tl.store(counted + row, parts + ((parts > 1).to(tl.int64) << 32), there)


@triton.jit  # type: ignore[untyped-decorator]
def _found(running, wanted, rows, steps, by_longs: tl.constexpr):  # type: ignore[no-untyped-def]
    """The first row by whose end there are as many pieces as `wanted`, or long rows; rows + 1 where none is."""
    low, high = tl.zeros_like(wanted), tl.zeros_like(wanted) + rows + 1
    for _ in range(steps):
        middle = (low + high) // 2
        reached = tl.load(running + middle, middle <= rows, 0)
        reached = (reached >> 32) if by_longs else (reached & 0x7FFFFFFF)
        below = (low < high) & (reached.to(tl.int32) < wanted)
        high = tl.where(below, high, middle)
        low = tl.where(below, middle + 1, low)
    return low


@triton.jit
def _of_row(running, row):  # type: ignore[no-untyped-def]
    """The number of a row's first piece, its first place, and its places: none unless it is long."""
    before, upto = tl.load(running + row - 1, row > 0, 0), tl.load(running + row)
    start, longs = (before & 0x7FFFFFFF).to(tl.int32), (before >> 32).to(tl.int32)
    is_long = (upto >> 32).to(tl.int32) > longs
    parts = (upto & 0x7FFFFFFF).to(tl.int32) - start
    return start, start - (row - longs), tl.where(is_long, parts, 0)  # each row that is not long is one piece


@triton.jit  # type: ignore[untyped-decorator]
def _cut(  # type: ignore[no-untyped-def]
    offsets, running, piece_row, piece_first, piece_last, piece_place, long_row, long_first, long_last,
    rows, pieces, longs, places, steps, longest: tl.constexpr, block: tl.constexpr,
):
    number = tl.program_id(0) * block + tl.arange(0, block)
    there = number < pieces
    row = _found(running, number + 1, rows, steps, False)
    real = tl.minimum(row, rows)
    start, place, of_row = _of_row(running, real)
    within = number - start
    first = tl.load(offsets + real) + within * longest
    last = tl.minimum(first + longest, tl.load(offsets + real + 1))
    tl.store(piece_row + number, row, there)
    tl.store(piece_first + number, tl.where(row > rows, 0, first), there)
    tl.store(piece_last + number, tl.where(row > rows, 0, last), there)
    tl.store(piece_place + number, tl.where(of_row > 0, place + within, places), there)
    there = number < longs
    row = _found(running, number + 1, rows, steps, True)
    _, place, of_row = _of_row(running, tl.minimum(row, rows))
    tl.store(long_row + number, row, there)
    tl.store(long_first + number, place, there)
    tl.store(long_last + number, place + of_row, there)


def cut_by_kernel(offsets: Tensor, rows: int, items: int, longest: int) -> list[Tensor]:
    """The seven lists of `Pieces`, of up to `longest` items each, from the offsets of `Links`, (rows + 2,) int32."""
    more = items // longest
    pieces, longs, places = rows + 1 + more, more + 1, 2 * more + 2
    counted = torch.empty(rows + 1, dtype=torch.int64, device=offsets.device)
    _count[(triton.cdiv(rows + 1, BLOCK),)](offsets, counted, rows, longest, BLOCK)
    sizes = [pieces] * 4 + [longs] * 3
    found = [torch.empty(size, dtype=torch.int32, device=offsets.device) for size in sizes]
    _cut[(triton.cdiv(pieces, BLOCK),)](
        offsets, counted.cumsum(0), *found, rows, pieces, longs, places, (rows + 1).bit_length(), longest, BLOCK
    )
    return found
