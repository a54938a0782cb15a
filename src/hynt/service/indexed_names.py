"""Names to ids as everywhere else, with the nearest names to an unknown one taken from the index.

Comparing an unknown name with all others takes longer than answering a question. A person who mistypes does not mind;
a service that gets hundreds of them at once would keep everybody waiting.
"""

from __future__ import annotations

import numpy as np

from hynt.errors import UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import NameLookup, Position
from hynt.service.name_search import NameSearch

_SHOWN = 5
_LONGEST = 80


class IndexedNames(NameLookup):
    """The same entities for the same names, and quicker refusals."""

    def __init__(self, graph: KnowledgeGraph, search: NameSearch | None = None) -> None:
        super().__init__(graph)
        self._labels = graph.entity_labels
        self._search = search or NameSearch(self._labels, np.zeros(len(self._labels), dtype=np.int64))

    def entity(self, name: str, position: Position | None = None, relation: int | None = None) -> int:
        """As `NameLookup` finds it."""
        if name in self._graph.vocabulary.entity_ids or self._entities.carrying(name):
            return super().entity(name, position, relation)
        found, _ = self._search.find(name, 2 * _SHOWN)
        near = list(dict.fromkeys(self._labels[one.identity] for one in found))[:_SHOWN]
        shown = name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "…"
        nearest = f" The nearest are {', '.join(map(repr, near))}." if near else ""
        raise UsageError(f"the graph has no entity called {shown!r}.", advice=f"Give an entity's id or name.{nearest}")
