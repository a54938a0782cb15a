"""Scores in the evaluator's own tiles: the same question gets the same bits here, there and in the service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch
from hynt.evaluation.evaluation_pass import SCORES_AT_ONCE
from hynt.evaluation.evaluator import Evaluator, scoring_conditions
from hynt.evaluation.tiles import Tile, Tiling, in_one_shape, read_each_tile, tile_rows
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Flags, Floats, Ids, begins
from hynt.models.contract import (
    AnswersDistributions,
    EncodedQuestion,
    EntityRange,
    Model,
    Relations,
    give_observed,
    median_number,
)
from hynt.runs.observing import by_fold
from hynt.runs.opening import LoadedRun


def evaluator_of_run(loaded: LoadedRun, split: str, device: torch.device, **how: Any) -> Evaluator:
    """The questions of a split for this run, by the one protocol; `how` may say more, such as `tasks` or `ties`."""
    given = {"literals": loaded.literals, "described": loaded.described(), "observed": loaded.known_splits}
    return Evaluator(loaded.graph, loaded.scaling, split, device=device, **given | how)


@dataclass(frozen=True, eq=False)
class ReadTile:
    """A tile of questions that the model has read. Scores are made for the whole tile; repeats are cut off."""

    model: Model
    question: EncodedQuestion
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
        ((_, scores),) = self.relation_chunks()
        return scores[: len(self.which)]

    def numbers(self) -> Tensor:
        """(real,) float32 numbers on the model's scale."""
        return median_number(self.model, self.question)[: len(self.which)]

    def number_reach(self) -> Tensor | None:
        """(real, 2) float32 how far below and above these the middle nine tenths of what the model believes go, on its
        scale; None for a model that says one number.
        """
        if not isinstance(self.model, AnswersDistributions):
            return None
        believed = self.model.distribution(self.question)
        low, middle, high = (believed.quantile(share)[: len(self.which)] for share in (0.05, 0.5, 0.95))
        return torch.stack([middle - low, high - middle], dim=1)

    def answered_by_all(self) -> Tensor | None:
        """(real,) bool: whether all that answer together had an answer; None where they always have."""
        found = self.question.answered_by_all()
        return None if found is None else found[: len(self.which)]


@dataclass(eq=False)
class SaidNumbers:
    """What a model says to `n` questions for numbers, tile by tile, on its own scale."""

    scaled: Floats  # (n,)
    reach: Floats | None = None  # (n, 2) as `ReadTile.number_reach` has it
    by_all: Flags | None = None  # (n,) as `ReadTile.answered_by_all` has it

    def add(self, tile: ReadTile) -> None:
        """What is done with each tile."""
        self.scaled[tile.which] = tile.numbers().cpu().numpy()
        reach = tile.number_reach()
        if reach is not None:
            self.reach = np.zeros((len(self.scaled), 2)) if self.reach is None else self.reach
            self.reach[tile.which] = reach.cpu().numpy()
        by_all = tile.answered_by_all()
        if by_all is not None:
            self.by_all = np.ones(len(self.scaled), dtype=np.bool_) if self.by_all is None else self.by_all
            self.by_all[tile.which] = by_all.cpu().numpy()


def nobody(done: int, total: int) -> None:
    """For a job whose progress is not shown."""


def read_tiles(
    loaded: LoadedRun,
    table: FactTable,
    row: Ids,
    position: Ids,
    device: torch.device,
    work: Callable[[ReadTile], None],
    change: Callable[[MaskedBatch, Ids], MaskedBatch] | None = None,
    fold: Ids | None = None,
    told: Callable[[int, int], None] = nobody,
) -> None:
    """Lets the model read the questions that hide component `position` (n,) of the facts `row` (n,), tile by tile.

    `work` is called within the same conditions that scores are made in by the evaluator: full float32, no gradients.
    `change` may hide more in a tile, given the numbers of its questions. `fold` (facts,) is given for stored facts: a
    model that reads observed facts then reads those of other folds. `told` hears how many are done, of how many.
    """
    done = 0

    def work_and_tell(tile: ReadTile) -> None:
        nonlocal done
        work(tile)
        done += len(tile.which)
        told(done, len(row))

    asked = _Asked(table, row, position, device, work_and_tell, change)
    for which, run in by_fold(loaded, None if fold is None else fold[row]):
        asked.read_by(run, np.arange(len(row), dtype=np.int64) if which is None else which)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Questions about some facts, and what is done with each tile of them."""

    table: FactTable
    row: Ids  # (n,) the fact of each question
    position: Ids  # (n,) the component that is hidden
    device: torch.device
    work: Callable[[ReadTile], None]
    change: Callable[[MaskedBatch, Ids], MaskedBatch] | None

    def read_by(self, loaded: LoadedRun, which: Ids) -> None:
        """Lets a run with one set of observed facts read some of the questions."""
        row, position, change = self.row[which], self.position[which], self.change
        facts = FactTensors.from_table(
            self.table, loaded.graph.vocabulary, loaded.scaling, self.device, loaded.literals
        )
        tiling = Tiling.of(self.table.qualifier_counts()[row], self.device)
        chunk = max(1, SCORES_AT_ONCE // tile_rows(0, self.device))

        def on_tile(tile: Tile, question: EncodedQuestion) -> None:
            numbers = which[tiling.question[tile.places]]
            self.work(ReadTile(loaded.model, question, numbers[: tile.real], numbers, chunk))

        def hide_more(batch: MaskedBatch, tile: Tile) -> MaskedBatch:
            return batch if change is None else change(batch, which[tiling.question[tile.places]])

        if loaded.observed is not None:
            give_observed(loaded.model, loaded.observed.facts)
        with scoring_conditions(loaded.model):
            more = None if change is None else hide_more
            read_each_tile(loaded.model, facts, tiling, row, position, on_tile, change=more)


# Numbers as the graph spells them, for models that take each literal for a token of its own.


def with_stored_literals(asked: FactTable, loaded: LoadedRun) -> FactTable:
    """The same facts; a number that training holds under the same relation gets the spelling it has there.

    A person writes 80 where the file has "+80.0": the same number, but another token.
    """
    if loaded.literals is None:
        return asked
    if loaded not in _KNOWN:
        _KNOWN[loaded] = _Spellings.of(loaded.known_facts())
    known = _KNOWN[loaded]
    return replace(
        asked,
        tail_literal=known.spelt(asked.relation, asked.tail_number, asked.tail_literal),
        qualifier_literal=known.spelt(asked.qualifier_relation, asked.qualifier_number, asked.qualifier_literal),
    )


@dataclass(frozen=True, eq=False)
class _Spellings:
    """The numbers of some facts, each with the first of its spellings."""

    relation: NDArray[np.int32]  # (n,) ascending
    value: NDArray[np.float64]  # (n,) ascending within a relation
    literal: pa.StringArray  # (n,)

    @classmethod
    def of(cls, facts: FactTable) -> _Spellings:
        literal = pa.concat_arrays([facts.tail_literal, facts.qualifier_literal])
        numbers = np.flatnonzero(literal.is_valid().to_numpy(zero_copy_only=False))
        relation = np.concatenate([facts.relation, facts.qualifier_relation])[numbers]
        value = np.concatenate([facts.tail_number, facts.qualifier_number])[numbers] + 0.0  # -0.0 is 0.0
        order = np.lexsort((value, relation))  # stable: the first of equal ones stays the first
        relation, value = relation[order], value[order]
        first = begins(relation, value)
        return cls(relation[first], value[first], literal.take(pa.array(numbers[order][first])))

    def spelt(self, of: NDArray[np.int32], numbers: NDArray[np.float64], written: pa.StringArray) -> pa.StringArray:
        """The spellings of numbers (m,) under relations (m,); as they are `written` where training has none."""
        if not len(self.value) or not len(of):
            return written
        wanted = np.rec.fromarrays([of, numbers + 0.0])
        at = np.minimum(np.searchsorted(np.rec.fromarrays([self.relation, self.value]), wanted), len(self.value) - 1)
        found = (self.relation[at] == of) & (self.value[at] == numbers)
        found &= written.is_valid().to_numpy(zero_copy_only=False)
        return pc.if_else(pa.array(found), self.literal.take(pa.array(at)), written)


_KNOWN: WeakKeyDictionary[LoadedRun, _Spellings] = WeakKeyDictionary()
"""Made once for a run."""
