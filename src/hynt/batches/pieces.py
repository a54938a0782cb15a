"""A sorted list cut for many processors: each row's items in pieces of bounded length, in a fixed order.

A row with few items is one piece and finished at once. The pieces of a long row leave partial results in numbered
places, which are then added in their order: no atomics, and the same sums every time. Shapes follow from the number of
rows and items alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LONGEST = 64
"""Items of a piece."""


class Pieces(NamedTuple):
    """Pieces of `rows` rows and, behind them, of the items that belong to no row."""

    row: Tensor  # (pieces,) int32 the row; `rows` for items of no row, `rows + 1` for pieces that are not needed
    first: Tensor  # (pieces,) int32 the first of its items in the sorted list
    last: Tensor  # (pieces,) int32 one behind the last
    place: Tensor  # (pieces,) int32 where a piece of a long row leaves its part; `places` for a row that is one piece
    long_row: Tensor  # (longs,) int32 rows of several pieces; `rows + 1` where there are fewer of them
    long_first: Tensor  # (longs,) int32 the first of its places
    long_last: Tensor  # (longs,) int32 one behind the last
    places: int


def pieces_of(offsets: Tensor, rows: int, items: int) -> Pieces:
    """From the offsets of `Links`, (rows + 2,) int32."""
    device = offsets.device
    longs, places = items // LONGEST + 1, 2 * (items // LONGEST) + 2
    count = torch.diff(offsets)  # (rows + 1,)
    parts = ((count + LONGEST - 1) // LONGEST).clamp(min=1)
    ends = torch.cumsum(parts, 0, dtype=torch.int32)
    number = torch.arange(rows + 1 + items // LONGEST, dtype=torch.int32, device=device)
    row = torch.searchsorted(ends, number, right=True, out_int32=True)
    real = row.clamp(max=rows)
    within = number - (ends - parts).index_select(0, real)
    first = offsets.index_select(0, real) + within * LONGEST
    last = torch.minimum(first + LONGEST, offsets.index_select(0, real + 1))
    is_long = parts > 1
    of_long = torch.where(is_long, parts, 0)
    place_ends = torch.cumsum(of_long, 0, dtype=torch.int32)
    place_first = place_ends - of_long
    place = torch.where(is_long.index_select(0, real), place_first.index_select(0, real) + within, places)
    nth = torch.where(is_long, torch.cumsum(is_long, 0) - 1, longs)
    long_row = torch.full((longs + 1,), rows + 1, dtype=torch.int32, device=device)
    long_row.index_copy_(0, nth, torch.arange(rows + 1, dtype=torch.int32, device=device))
    long_row = long_row[:longs]
    of_row = long_row.clamp(max=rows)
    return Pieces(
        row,
        torch.where(row > rows, 0, first),
        torch.where(row > rows, 0, last),
        place,
        long_row,
        place_first.index_select(0, of_row),
        place_ends.index_select(0, of_row),
        places,
    )
