"""Candidates that fit a place: the entities that train holds at the same position of the same relation.

Ranking among them is a milder question, "which of the plausible ones?", and is shown beside the plain ranking, never
instead of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.evaluation.questions import position_group
from hynt.graph.components import ENTITY_KIND, Components

_PLACES = 5  # head, relation, tail, qualifier relation, qualifier value


@dataclass(frozen=True, eq=False)
class TypeConstraints:
    """For each place (relation and position) the entities seen there, end to end."""

    entity_count: int
    place: NDArray[np.int64]  # (p,) places that train holds, ascending
    offsets: NDArray[np.int64]  # (p + 1,) entities of place i are offsets[i] … offsets[i + 1]
    entities: NDArray[np.int64]  # (e,) ascending within a place

    @classmethod
    def build(cls, train: Components, entity_count: int) -> TypeConstraints:
        """From the components of the training split."""
        chosen = train.kind == ENTITY_KIND
        keys = place_numbers(train.relation[chosen], train.position[chosen]) * entity_count + train.entity[chosen]
        place, entities = np.divmod(np.unique(keys), entity_count)
        distinct, first = np.unique(place, return_index=True)
        return cls(entity_count, distinct, np.append(first, len(entities)).astype(np.int64), entities)

    def allowed(self, place: NDArray[np.int64], device: torch.device | str) -> Tensor:
        """(rows, entities) bool: the entities that each question's place (rows,) allows; none where train lacks it."""
        asked, row = np.unique(place, return_inverse=True)
        at = np.searchsorted(self.place, asked)
        met = np.zeros(len(asked), dtype=np.bool_)
        met[at < len(self.place)] = self.place[at[at < len(self.place)]] == asked[at < len(self.place)]
        spans = [self.entities[self.offsets[i] : self.offsets[i + 1]] for i in at[met].tolist()]
        owner = np.repeat(np.flatnonzero(met), [len(span) for span in spans])
        mask = torch.zeros(len(asked), self.entity_count, dtype=torch.bool, device=device)
        if len(owner):
            mask[torch.from_numpy(owner).to(device), torch.from_numpy(np.concatenate(spans)).to(device)] = True
        return mask[torch.from_numpy(row.astype(np.int64)).to(device)]


def place_numbers(relation: NDArray[np.integer], position: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) one number for each relation and position; all qualifiers of a relation share a place."""
    return relation.astype(np.int64) * _PLACES + position_group(position)
