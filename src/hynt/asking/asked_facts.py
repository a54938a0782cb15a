"""Many questions about one graph, in columns: what is scored together. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hynt.asking.question import AskedFact
from hynt.graph.components import FIRST_QUALIFIER, RELATION, TAIL
from hynt.graph.fact_table import FactTable, concatenate

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AskedFacts:
    """`n` questions. Each is one row of the table, or, where a relation is hidden beside a number, one for each
    relation that the number can belong to: see `AskedFact`.
    """

    table: FactTable  # (rows,) with fillers in the holes
    rows: Ids  # (n + 1,) the rows of question i are rows[i] … rows[i + 1]
    position: Ids  # (n,) of the hole
    kind: Ids  # (n,) of the answer: ENTITY_KIND, RELATION_KIND or NUMBER_KIND
    relation: Ids  # (n,) the relation beside the hole; filler 0 where the hole is a relation
    is_tried: NDArray[np.bool_]  # (n,) whether a relation is hidden beside a number

    def __len__(self) -> int:
        return len(self.position)

    @classmethod
    def joined(cls, asked: Sequence[AskedFact]) -> AskedFacts:
        """These questions, in this order."""
        rows = np.zeros(len(asked) + 1, dtype=np.int64)
        np.cumsum([len(one.table) for one in asked], out=rows[1:])
        return cls(
            concatenate([one.table for one in asked]),
            rows,
            np.array([one.position for one in asked], dtype=np.int64),
            np.array([one.kind for one in asked], dtype=np.int64),
            np.array([one.relation or 0 for one in asked], dtype=np.int64),
            np.array([one.tried is not None for one in asked], dtype=np.bool_),
        )

    @classmethod
    def concatenated(cls, parts: Sequence[AskedFacts]) -> AskedFacts:
        """All of these, in order."""
        shifts = np.cumsum([0] + [len(part.table) for part in parts])
        starts = [part.rows[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
        return cls(
            concatenate([part.table for part in parts]),
            np.concatenate([*starts, shifts[-1:]]),
            np.concatenate([part.position for part in parts]),
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.relation for part in parts]),
            np.concatenate([part.is_tried for part in parts]),
        )

    def take(self, chosen: Ids) -> AskedFacts:
        """These questions, in this order."""
        rows = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(np.diff(self.rows)[chosen], out=rows[1:])
        return AskedFacts(
            self.table.take(self.rows_of(chosen)),
            rows,
            self.position[chosen],
            self.kind[chosen],
            self.relation[chosen],
            self.is_tried[chosen],
        )

    def rows_of(self, chosen: Ids) -> Ids:
        """The rows of these questions, question by question."""
        first, count = self.rows[:-1][chosen], np.diff(self.rows)[chosen]
        shift = np.repeat(first - (np.cumsum(count) - count), count)
        return shift + np.arange(int(count.sum()), dtype=np.int64)

    def owners(self) -> Ids:
        """(rows,) the question that each row belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.rows))

    def relation_in_hole(self, rows: Ids, position: Ids) -> Ids:
        """(k,) the relation that stands in the hole at `position` (k,) of each of these rows (k,): the one tried."""
        own, of_qualifier = position == RELATION, position > TAIL
        found = np.zeros(len(rows), dtype=np.int64)
        found[own] = self.table.relation[rows[own]]
        slot = self.table.offsets[rows[of_qualifier]] + (position[of_qualifier] - FIRST_QUALIFIER) // 2
        found[of_qualifier] = self.table.qualifier_relation[slot]
        return found
