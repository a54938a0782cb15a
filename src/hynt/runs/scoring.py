"""Scores in the evaluator's own tiles: the same question gets the same bits here, there and in the service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masking import hide
from hynt.evaluation.back_off import for_each_tile
from hynt.evaluation.evaluation_pass import SCORES_AT_ONCE
from hynt.evaluation.evaluator import scoring_conditions
from hynt.evaluation.ranks import in_one_shape
from hynt.evaluation.tiles import Tile, Tiling, tile_rows
from hynt.graph.fact_table import FactTable
from hynt.models.contract import EntityRange, Model, Number, Question, Relations
from hynt.runs.opening import LoadedRun

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReadTile:
    """A tile of questions that the model has read. Scores are made for the whole tile; repeats are cut off."""

    model: Model
    question: Question
    which: Ids  # (real,) the numbers of the questions
    repeated: Ids  # (rows,) the same with the repeats that fill the tile
    chunk: int  # candidates scored at once

    def entity_chunks(self) -> Iterator[tuple[int, Tensor]]:
        """(first, scores): (rows, width) float32 scores of the entities first … first + width − 1, repeats included."""
        count = self.model.sizes.entities
        width = min(self.chunk, count)
        score = in_one_shape(lambda first, end: self.model.score(self.question, EntityRange(first, end)), width)
        for first in range(0, count, max(1, width)):
            yield first, score(first, min(first + width, count))

    def relation_chunks(self) -> Iterator[tuple[int, Tensor]]:
        """The same for relations, which are never so many that they need more than one chunk."""
        yield 0, self.model.score(self.question, Relations()).float()

    def entities(self) -> Tensor:
        """(real, entities) float32 scores."""
        parts = [scores[: len(self.which)] for _, scores in self.entity_chunks()]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def relations(self) -> Tensor:
        """(real, relations) float32 scores."""
        return self.model.score(self.question, Relations())[: len(self.which)].float()

    def numbers(self) -> Tensor:
        """(real,) float32 numbers on the model's scale."""
        return self.model.score(self.question, Number())[: len(self.which)].float()


def read_tiles(
    loaded: LoadedRun, table: FactTable, row: Ids, position: Ids, device: torch.device, work: Callable[[ReadTile], None]
) -> None:
    """Lets the model read the questions that hide component `position` (n,) of the facts `row` (n,), tile by tile.

    `work` is called within the same conditions that scores are made in by the evaluator: full float32, no gradients.
    """
    facts = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, device, loaded.literals)
    tiling = Tiling.of(table.qualifier_counts()[row], device)
    rows = torch.from_numpy(row[tiling.question]).to(device)
    asked = torch.from_numpy(position[tiling.question]).to(device)
    chunk = max(1, SCORES_AT_ONCE // tile_rows(0, device))

    def on_tile(tile: Tile) -> None:
        batch, _ = hide(facts, rows[tile.places], asked[tile.places], tile.layout)
        numbers = tiling.question[tile.places]
        work(ReadTile(loaded.model, loaded.model.read(batch), numbers[: tile.real], numbers, chunk))

    with scoring_conditions(loaded.model):
        for_each_tile(tiling.tiles, on_tile, lambda rows, capacity: None)
