"""Scores of relations that could stand in a place: seen in that position with values of the same kind and unit.

A model sees a number on the scale of its relation, from its least to its greatest, and without a unit. Asked for the
relation it may say that a longitude is a population, which no graph could hold. So beside a number each relation of the
unit is tried in a row of its own that has the number on its own scale: 100 is in the middle of longitudes and beyond
all latitudes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.asking.number_relations import in_reach
from hynt.graph.fact_table import RELATION, Components, FactTable, filled, qualifier_of
from hynt.graph.seen_values import SeenValues
from hynt.graph.vocabulary import Flags, Ids, Vocabulary
from hynt.runs.opening import LoadedRun
from hynt.runs.scoring import ReadTile, read_tiles


def relation_sorts(vocabulary: Vocabulary) -> Ids:
    """(relations,) equal where relations can stand beside the same values: those that carry entities, and those that
    carry numbers of one unit. A number in degrees is never a population, whatever a model makes of it.
    """
    sorts: dict[tuple[str, str], int] = {}
    return np.array(
        [sorts.setdefault((one.kind, one.unit), len(sorts)) for one in vocabulary.relations], dtype=np.int64
    )


MOST_TRIED = 64
"""Relations of one unit that are tried each on its own scale; where there are more, one row with the stored relation's
scale speaks for all of them, lest the work grow with the number of relations.
"""

_AT_ONCE = 512

Work = Callable[[Ids, Tensor], None]


@dataclass(frozen=True, eq=False)
class RelationScores:
    """The model's scores of relations in hidden places of a table."""

    loaded: LoadedRun
    places: SeenValues
    table: FactTable
    device: torch.device

    def each(self, asked: Components, work: Work) -> None:
        """Calls `work` with some of the questions (k,), by their numbers in `asked`, and their (k, relations) scores,
        −∞ for what is no candidate, until all questions have had their turn.
        """
        keys = self.places.keys(asked.position, asked.relation)
        size, is_number = self.places.sizes(keys), self.loaded.graph.vocabulary.relation_is_number[asked.relation]
        alike = is_number & (size > 1) & (size <= MOST_TRIED)
        others, tried = (np.flatnonzero(rows).astype(np.int64) for rows in (~alike, alike))

        def on_tile(tile: ReadTile) -> None:
            scores, which = tile.relations().clone(), others[tile.which]
            scores.masked_fill_(~torch.from_numpy(self._seen(keys[which])).to(scores.device), -torch.inf)
            work(which, scores)

        if len(others):
            read_tiles(self.loaded, self.table, asked.row[others], asked.position[others], self.device, on_tile)
        for first in range(0, len(tried), _AT_ONCE):
            which = tried[first : first + _AT_ONCE]
            work(which, self._on_own_scales(asked.take(which), self._seen(keys[which])))

    def _seen(self, keys: Ids) -> Flags:
        different, which = np.unique(keys, return_inverse=True)
        return self.places.mask(different, self.loaded.graph.vocabulary.relation_count)[which.reshape(-1)]

    def _on_own_scales(self, asked: Components, seen: Flags) -> Tensor:
        """(k, relations) scores, each from a row with the number on that relation's scale. Far outside of it the model
        has learned nothing, and a relation is no candidate there unless it is the stored one.
        """
        question, relation = (index.astype(np.int64) for index in np.nonzero(seen))
        value = _numbers(self.table, asked)[question]
        within = in_reach(self.loaded.scaling, relation, value) | (relation == asked.relation[question])
        question, relation = question[within], relation[within]
        found = torch.full(seen.shape, -torch.inf, device=self.device)
        rows = filled(self.table, asked.row[question], asked.position[question], relation)
        owner, own = (torch.from_numpy(index).to(self.device) for index in (question, relation))

        def on_tile(tile: ReadTile) -> None:
            which = torch.from_numpy(tile.which).to(self.device)
            found[owner[which], own[which]] = tile.relations().gather(1, own[which][:, None])[:, 0]

        numbers = np.arange(len(rows), dtype=np.int64)
        read_tiles(self.loaded, rows, numbers, asked.position[question], self.device, on_tile)
        return found


def _numbers(table: FactTable, asked: Components) -> NDArray[np.float64]:
    """(n,) the numbers beside the relations that are asked for."""
    found = table.tail_number[asked.row].astype(np.float64)
    inner = np.flatnonzero(asked.position != RELATION)
    found[inner] = table.qualifier_number[table.offsets[asked.row[inner]] + qualifier_of(asked.position[inner])]
    return found
