"""Which facts hold an entity, found without looking through all of them: sorted once, read by page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import POSITIONS, Position


class EntityIndex:
    """The facts of each entity of a graph, by position and relation, as everybody pages through them."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        self.table = concatenate(list(graph.splits.values()))
        self._split_end = np.cumsum([len(table) for table in graph.splits.values()])
        self._split_names = list(graph.splits)
        table, is_number = self.table, graph.vocabulary.relation_is_number
        rows = np.arange(len(table), dtype=np.int64)
        tails, values = ~is_number[table.relation], ~is_number[table.qualifier_relation]
        owner = table.qualifier_owner()
        entity = np.concatenate([table.head, table.tail_entity[tails], table.qualifier_entity[values]])
        row = np.concatenate([rows, rows[tails], owner[values]])
        relation = np.concatenate([table.relation, table.relation[tails], table.qualifier_relation[values]])
        place = np.repeat(np.arange(3, dtype=np.int8), [len(rows), int(tails.sum()), int(values.sum())])
        # A fact that holds an entity twice is listed at the first of head, tail, value.
        order = np.lexsort((place, row, entity))
        entity, row, relation, place = entity[order], row[order], relation[order], place[order]
        first = np.ones(len(entity), dtype=np.bool_)
        first[1:] = (entity[1:] != entity[:-1]) | (row[1:] != row[:-1])
        entity, row, relation, place = entity[first], row[first], relation[first], place[first]
        order = np.lexsort((row, relation, place, entity))
        self._row, self._place = row[order], place[order]
        self.degree = np.bincount(entity, minlength=graph.vocabulary.entity_count).astype(np.int64)
        self._start = np.append(0, np.cumsum(self.degree))

    def counts(self, entity: int) -> dict[Position, int]:
        """How many facts it has at each position."""
        found = np.bincount(self._place[self._start[entity] : self._start[entity + 1]], minlength=len(POSITIONS))
        return dict(zip(POSITIONS, found.tolist(), strict=True))

    def page(
        self, entity: int, offset: int, limit: int, position: Position | None = None
    ) -> tuple[NDArray[np.int64], list[Position]]:
        """(facts,) rows of `table`, and where the entity stands in each."""
        begin, end = int(self._start[entity]), int(self._start[entity + 1])
        if position is not None:  # within an entity, positions ascend
            wanted = POSITIONS.index(position)
            low, high = np.searchsorted(self._place[begin:end], [wanted, wanted + 1])
            begin, end = begin + int(low), begin + int(high)
        chosen = slice(min(begin + offset, end), min(begin + offset + limit, end))
        return self._row[chosen], [POSITIONS[place] for place in self._place[chosen].tolist()]

    def splits(self, rows: NDArray[np.int64]) -> Sequence[str]:
        """The split that each row is of."""
        return [self._split_names[place] for place in np.searchsorted(self._split_end, rows, side="right").tolist()]
