"""Going on with smaller pieces when memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable

import torch

from hynt.errors import UsageError
from hynt.evaluation.tiles import Tile


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the device, or the host, has no memory left."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def for_each_tile(tiles: Iterable[Tile], work: Callable[[Tile], None], note: Callable[[int, int], None]) -> None:
    """Calls `work` on every tile; one that does not fit into memory is halved, and so are those of its layout after it.

    `note(rows, capacity)` hears of each new, smaller size.
    """
    fits: dict[int, int] = {}  # capacity → rows that are known to fit, where that is less than a whole tile
    waiting = list(tiles)[::-1]
    while waiting:
        tile = waiting.pop()
        ((rows, capacity),) = tile.layout.segments
        if tile.real == 0:
            continue
        if rows > fits.get(capacity, rows) or not _done(work, tile):
            if rows == 1:
                raise UsageError(
                    "memory ran out with a single question.",
                    advice="Use a device with more memory, or leave out the type-constrained ranking.",
                )
            if rows <= fits.get(capacity, rows):
                fits[capacity] = rows // 2
                note(rows // 2, capacity)
            first, second = tile.halves()
            waiting += [second, first]


def _done(work: Callable[[Tile], None], tile: Tile) -> bool:
    """Whether the work fitted into memory. Its tensors are let go only with its error: hence a function of its own."""
    try:
        work(tile)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    else:
        return True
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return False
