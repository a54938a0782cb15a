"""Which entities can be tails of a relation at all. No torch here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph

Ids = NDArray[np.int64]


class FittingTails:
    """By what the known facts of a relation have for tails."""

    def __init__(self, graph: KnowledgeGraph, facts: FactTable) -> None:
        _, self._type = np.unique(np.array([entity.type for entity in graph.entities], dtype=str), return_inverse=True)
        self._is_typed = np.array([bool(entity.type) for entity in graph.entities], dtype=np.bool_)
        self._facts = facts

    def fits(self, relation: Ids, head: NDArray[np.int32], tail: Ids) -> NDArray[np.bool_]:
        """(n,) whether an entity has the type of a known tail, or, where it has no type, is one; a head is its own tail
        only where that is known of the relation.
        """
        found = np.zeros(len(tail), dtype=np.bool_)
        for one in np.unique(relation).tolist():
            own = np.flatnonzero(relation == one)
            found[own] = self._fits(one, head[own], tail[own])
        return found

    def _fits(self, relation: int, head: NDArray[np.int32], tail: Ids) -> NDArray[np.bool_]:
        own = self._facts.relation == relation
        tails = self._facts.tail_entity[own]
        is_tail = np.zeros(len(self._type), dtype=np.bool_)
        is_tail[tails] = True
        met = np.zeros(int(self._type.max()) + 1, dtype=np.bool_)
        met[self._type[tails[self._is_typed[tails]]]] = True
        found: NDArray[np.bool_] = np.where(self._is_typed[tail], met[self._type[tail]], is_tail[tail])
        if not (self._facts.head[own] == tails).any():
            found &= tail != head
        return found
