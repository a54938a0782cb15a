"""The questions of a split: every component of every fact, hidden in turn, in tiles of one fixed shape each.

Floating point rounds a matrix product differently for different shapes, so every tile of a bucket has the same number
of rows; the last one is filled up with repeats whose results are dropped. Long facts get fewer rows a tile, because
attention grows with their square.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from hynt.batches.buckets import BatchLayout, bucket_capacity, layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch, mask
from hynt.errors import UsageError
from hynt.graph.fact_table import (
    ENTITY_KIND,
    FIRST_QUALIFIER,
    KIND_NAMES,
    NUMBER_KIND,
    POSITION_GROUPS,
    RELATION_KIND,
    Components,
    position_group,
)
from hynt.models.contract import EncodedQuestion, Model, Part
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.models.contract import Model

TaskName: TypeAlias = Literal["link", "relation", "number"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
KIND_OF_TASK: dict[TaskName, int] = {"link": ENTITY_KIND, "relation": RELATION_KIND, "number": NUMBER_KIND}

AccountScope: TypeAlias = Literal["triplet", "all"]
SCOPES: tuple[AccountScope, ...] = get_args(AccountScope)


def checked_tasks(names: Iterable[str]) -> tuple[TaskName, ...]:
    """These tasks in their usual order, each once; an unknown name is a `UsageError`."""
    given = list(names)
    for name in given:
        if name not in TASKS:
            raise UsageError(f"unknown task {name!r}.", where="task", advice=advice_on(name, list(TASKS)))
    if not given:
        raise UsageError("no task was given.", where="task", advice=f"Choose from {', '.join(TASKS)}.")
    return tuple(task for task in TASKS if task in given)


def of_task(components: Components, task: TaskName) -> NDArray[np.int64]:
    """(n,) the numbers of the components that a task asks for."""
    return np.flatnonzero(components.kind == KIND_OF_TASK[task]).astype(np.int64)


def in_scope(position: NDArray[np.int64], scope: AccountScope) -> NDArray[np.bool_]:
    """(n,) whether questions at these positions count: all of them, or those of the primary triplet."""
    return position < FIRST_QUALIFIER if scope == "triplet" else np.ones(len(position), dtype=np.bool_)


def answerable(model: Model, position: NDArray[np.int64], kind: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(n,) whether a model answers these kinds at these positions."""
    table = np.zeros((len(KIND_NAMES), len(POSITION_GROUPS)), dtype=np.bool_)
    for task, place in model.answers:
        table[int(task), POSITION_GROUPS.index(place)] = True
    found: NDArray[np.bool_] = table[kind, position_group(position)]
    return found


def answerable_components(model: Model, components: Components, task: TaskName) -> NDArray[np.int64]:
    """(n,) the numbers of the components of a task that a model answers."""
    from hynt.models.contract import unpredictable

    chosen = of_task(components, task)
    chosen = chosen[answerable(model, components.position[chosen], components.kind[chosen])]
    return chosen[~unpredictable(model, components.relation[chosen])] if task == "number" else chosen


ROWS_ON_CUDA = 1024
ROWS_ON_CPU = 64
TILES_AHEAD = 64
"""How many tiles a model that reads the graph reads at once on a GPU; they are scored one by one."""

_LONG = 8
"""From this many qualifiers on, tiles get fewer rows."""


def tile_rows(capacity: int, device: torch.device, rows: int | None = None) -> int:
    """How many questions about facts of a bucket are scored together; `rows` replaces the device's usual number."""
    base = rows or (ROWS_ON_CUDA if device.type == "cuda" else ROWS_ON_CPU)
    return max(1, base // max(1, (capacity // _LONG) ** 2))


@dataclass(frozen=True, eq=False)
class Tile:
    """Some questions in one layout."""

    layout: BatchLayout
    places: slice  # its rows among the rows of all tiles
    real: int  # how many of its rows are questions; the rest are repeats

    def halves(self) -> tuple[Tile, Tile]:
        """The same rows in two tiles of half the size."""
        ((rows, capacity),) = self.layout.segments
        first, half = self.places.start, rows // 2
        layouts = (layout_of([(half, capacity)]), layout_of([(rows - half, capacity)]))
        spans = (slice(first, first + half), slice(first + half, first + rows))
        return (Tile(layouts[0], spans[0], min(self.real, half)), Tile(layouts[1], spans[1], max(0, self.real - half)))


@dataclass(frozen=True, eq=False)
class Tiling:
    """All questions of a task in tiles, end to end."""

    tiles: tuple[Tile, ...]
    question: NDArray[np.int64]  # (places,) which question stands at each row of each tile
    is_real: NDArray[np.bool_]  # (places,) false for repeats

    @classmethod
    def of(cls, qualifiers: NDArray[np.int64], device: torch.device, rows: int | None = None) -> Tiling:
        """From the qualifier count of each question's fact, (n,)."""
        counts, inverse = np.unique(qualifiers, return_inverse=True)
        capacity = np.array([bucket_capacity(count) for count in counts.tolist()], dtype=np.int64)[inverse]
        tiles, question, is_real, start = [], [], [], 0
        for each in np.unique(capacity).tolist():
            found = np.flatnonzero(capacity == each)
            size = tile_rows(each, device, rows)
            filled = -(-len(found) // size) * size
            question.append(np.concatenate([found, np.full(filled - len(found), found[0])]))
            is_real.append(np.arange(filled) < len(found))
            layout = layout_of([(size, each)])
            for first in range(0, filled, size):
                place = slice(start + first, start + first + size)
                tiles.append(Tile(layout, place, min(size, len(found) - first)))
            start += filled
        none = np.zeros(0, dtype=np.int64)
        return cls(tuple(tiles), np.concatenate([none, *question]), np.concatenate([none == 1, *is_real]))

    def unpacked(self, results: NDArray[np.generic]) -> NDArray[np.generic]:
        """Results by question, from (places,) results by row."""
        found = np.empty(int(self.is_real.sum()), dtype=results.dtype)
        found[self.question[self.is_real]] = results[self.is_real]
        return found


def read_each_tile(
    model: Model,
    facts: FactTensors,
    tiling: Tiling,
    row: NDArray[np.int64],
    position: NDArray[np.int64],
    work: Callable[[Tile, EncodedQuestion], None],
    *,
    change: Callable[[MaskedBatch, Tile], MaskedBatch] | None = None,
    note: Callable[[int, int], None] = lambda rows, capacity: None,
) -> None:
    """Lets a model read the questions that hide component `position` (n,) of the facts `row` (n,), tile by tile.

    `change` may hide more of a tile's facts. Where memory runs out, tiles get smaller; `note` hears of it.
    """
    rows, asked = (torch.from_numpy(one[tiling.question]).to(facts.head.device) for one in (row, position))

    def read(places: slice, layout: BatchLayout) -> MaskedBatch:
        return mask(facts, rows[places], asked[places], layout)[0]

    reads_graph = Part.OBSERVED_FACTS in model.reads
    ahead = _ReadAhead(model, read, tiling.tiles) if reads_graph and facts.head.is_cuda else None

    def on_tile(tile: Tile) -> None:
        if change is not None:  # a number is answered on the scale of its relation, hidden or not
            batch = read(tile.places, tile.layout)
            work(tile, replace(model.read(change(batch, tile)), relation=batch.asked_relation()))
        elif ahead is not None:
            work(tile, ahead.question(tile))
        else:
            work(tile, model.read(read(tile.places, tile.layout)))

    for_each_tile(tiling.tiles, on_tile, note)


class _ReadAhead:
    """Reads the questions of several neighbouring tiles at once: a model that reads the graph takes many small steps
    for each batch, which on a GPU take as long for few questions as for many.
    """

    def __init__(
        self, model: Model, batch_of: Callable[[slice, BatchLayout], MaskedBatch], tiles: Iterable[Tile]
    ) -> None:
        self._model, self._batch_of = model, batch_of
        self._starting = {tile.places.start: tile for tile in tiles}
        self._question: EncodedQuestion | None = None
        self._span, self._tiles = slice(0, 0), TILES_AHEAD

    def question(self, tile: Tile) -> EncodedQuestion:
        """The questions of a tile, or of a part of one."""
        start, stop = tile.places.start, tile.places.stop
        if self._question is None or not self._span.start <= start < stop <= self._span.stop:
            self._question = None  # its memory is free for the next
            self._question = self._read(tile)
        first = start - self._span.start
        return self._question.take(torch.arange(first, first + stop - start, device=self._question.encoded.device))

    def _read(self, tile: Tile) -> EncodedQuestion:
        rows: dict[int, int] = defaultdict(int)  # by capacity, which rises from tile to tile
        following: Tile | None = tile
        for _ in range(self._tiles):
            if following is None:
                break
            ((count, capacity),) = following.layout.segments
            rows[capacity] += count
            following = self._starting.get(following.places.stop)
        first = tile.places.start
        self._span = slice(first, first + sum(rows.values()))
        try:
            layout = layout_of((count, capacity) for capacity, count in rows.items())
            return self._model.read(self._batch_of(self._span, layout))
        except (MemoryError, RuntimeError):
            self._tiles = 1  # this tile is tried again, halved
            raise


# Going on with smaller pieces when memory runs out.


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
