"""Questions in tiles of one fixed shape each, and the place of the right answer among the candidates.

Floating point rounds a matrix product differently for different shapes, so every tile of a bucket has the same number
of rows; the last one is filled up with repeats whose results are dropped. Long facts get fewer rows a tile, because
attention grows with their square.

A rank is counted on the device: how many other candidates score higher, and how many the same. Known answers are no
candidates: they are counted with all the rest and taken off again by index, so nothing is written into the scores and
no Python looks at a question. Candidates come in chunks; every count is exact, so the chunk changes no rank.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.batches.buckets import BatchLayout, bucket_capacity, layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch, mask
from hynt.errors import UsageError
from hynt.models.contract import EncodedQuestion, Model, Part

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


ScoreChunk: TypeAlias = Callable[[int, int], Tensor]
"""(first, end) → (rows, end − first) scores of the candidates first … end − 1."""

KNOWN_AT_ONCE = 1 << 24
"""How many known answers are looked at together; it bounds memory where many questions have long lists."""


@dataclass(frozen=True, eq=False)
class KnownSlots:
    """Where the known answers of each row stand in an index's answers."""

    answers: Tensor  # (a,) int32 the answers of the whole index
    start: Tensor  # (rows,) int64 where each row's answers start in it
    ends: Tensor  # (rows,) int64 running total of the rows' counts
    total: int  # of all rows, known to the host so that the device need not be asked

    def pieces(self) -> Iterator[tuple[Tensor, Tensor]]:
        """(k,) rows and (k,) known answers, in pieces of bounded size."""
        for first in range(0, self.total, KNOWN_AT_ONCE):
            flat = torch.arange(first, min(first + KNOWN_AT_ONCE, self.total), device=self.ends.device)
            row = torch.searchsorted(self.ends, flat, right=True)
            before = torch.where(row > 0, self.ends[row - 1], 0)
            yield row, self.answers[self.start[row] + flat - before].long()


@dataclass(frozen=True, eq=False)
class Tally:
    """How the candidates of each of `rows` questions compare with its answer."""

    better: Tensor  # (rows,) int64 other candidates that score higher
    ties: Tensor  # (rows,) int64 other candidates that score the same
    candidates: Tensor  # (rows,) int64 candidates, the answer among them
    finite: Tensor  # (rows,) bool whether every score was a finite number


def tally(
    score: ScoreChunk, count: int, answer: Tensor, known: KnownSlots, chunk: int, allowed: Tensor | None = None
) -> tuple[Tally, Tally | None]:
    """Counts for `answer` (rows,) int64 among `count` candidates, scored `chunk` at a time.

    With `allowed`, (rows, count) bool, also the counts among the candidates it allows; the answer is always one of
    them.
    """
    chunks = [(first, min(first + chunk, count)) for first in range(0, count, chunk)]
    score = in_one_shape(score, min(chunk, count))
    target = _target(score, chunks, answer) if len(chunks) > 1 else None
    plain = _Counter(answer, None)
    constrained = None if allowed is None else _Counter(answer, allowed)
    finite = torch.ones_like(answer, dtype=torch.bool)
    for first, end in chunks:
        scores = score(first, end)
        if target is None:
            target = scores.gather(1, answer[:, None]).squeeze(1)
        lowest, highest = torch.aminmax(scores, dim=1)  # both are NaN where any score is
        finite &= torch.isfinite(lowest) & torch.isfinite(highest)
        for counter in (plain, constrained):
            if counter is not None:
                counter.add(scores, first, target)
        for row, candidate in known.pieces():
            inside = (candidate >= first) & (candidate < end) & (candidate != answer[row])
            value = scores[row, (candidate - first).clamp(0, end - first - 1)]
            for counter in (plain, constrained):
                if counter is not None:
                    counter.take_off(row, candidate, value, inside, target)
    return plain.tally(finite), None if constrained is None else constrained.tally(finite)


def in_one_shape(score: ScoreChunk, width: int) -> ScoreChunk:
    """Scores the last, short chunk as the end of a full one: products of one shape round alike."""

    def scored(first: int, end: int) -> Tensor:
        return score(end - width, end)[:, first - (end - width) :].float()

    return scored


def _target(score: ScoreChunk, chunks: list[tuple[int, int]], answer: Tensor) -> Tensor:
    """(rows,) the answers' scores, from the very products they are compared with: a tie is a tie to the last bit."""
    found = torch.zeros_like(answer, dtype=torch.float32)
    for first, end in chunks:
        inside = (answer >= first) & (answer < end)
        value = score(first, end).gather(1, (answer - first).clamp(0, end - first - 1)[:, None]).squeeze(1)
        found = torch.where(inside, value, found)
    return found


class _Counter:
    """Running counts over the chunks, of all candidates or of the allowed ones."""

    def __init__(self, answer: Tensor, allowed: Tensor | None) -> None:
        self.answer = answer
        self.allowed = allowed
        self.better = torch.zeros_like(answer)
        self.ties = torch.zeros_like(answer)
        self.candidates = torch.zeros_like(answer)

    def add(self, scores: Tensor, first: int, target: Tensor) -> None:
        """Count every candidate of a chunk, the answer and known ones among them."""
        better, ties = scores > target[:, None], scores == target[:, None]
        if self.allowed is None:
            self.candidates += scores.shape[1]
        else:
            allowed = self.allowed[:, first : first + scores.shape[1]]
            better, ties = better & allowed, ties & allowed
            self.candidates += torch.count_nonzero(allowed, dim=1)
        self.better += torch.count_nonzero(better, dim=1)
        self.ties += torch.count_nonzero(ties, dim=1)

    def take_off(self, row: Tensor, candidate: Tensor, value: Tensor, inside: Tensor, target: Tensor) -> None:
        """Uncount known answers; `inside` says which of them this chunk holds."""
        if self.allowed is not None:
            inside = inside & self.allowed[row, candidate]
        self.better.index_add_(0, row, (inside & (value > target[row])).long(), alpha=-1)
        self.ties.index_add_(0, row, (inside & (value == target[row])).long(), alpha=-1)
        self.candidates.index_add_(0, row, inside.long(), alpha=-1)

    def tally(self, finite: Tensor) -> Tally:
        """The counts of the other candidates: the answer ties with itself and is taken off."""
        if self.allowed is None:
            return Tally(self.better, self.ties - 1, self.candidates, finite)
        own = self.allowed.gather(1, self.answer[:, None]).squeeze(1).long()
        return Tally(self.better, self.ties - own, self.candidates + 1 - own, finite)
