"""Names of whole columns to ids at once: each distinct name of a column is looked up in dictionaries, and once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.question import BLANK
from hynt.graph.knowledge_graph import KnowledgeGraph

MISSING, IS_BLANK, FOUND, FOUND_IN_ANOTHER_CASE, SHARED, UNKNOWN = range(6)
"""What became of a name: nothing is written; it is the blank; an id is known, by the name as it stands or in another
case; several carry it, and its place in the question has to decide; nobody does."""


@dataclass(frozen=True, eq=False)
class FoundNames:
    """The names of a column."""

    id: NDArray[np.int64]  # (n,) read only where the state says that it was found
    state: NDArray[np.int8]  # (n,)


class BulkNames:
    """All entities, or all relations, of a graph by id and by label; the rules are those of `NameLookup`."""

    def __init__(self, ids: Mapping[str, int], labels: Sequence[str]) -> None:
        self._ids, self._labels = ids, labels

    @classmethod
    def entities(cls, graph: KnowledgeGraph) -> BulkNames:
        return cls(graph.vocabulary.entity_ids, graph.entity_labels)

    @classmethod
    def relations(cls, graph: KnowledgeGraph) -> BulkNames:
        return cls(graph.vocabulary.relation_ids, graph.relation_labels)

    def find(self, column: pa.Array) -> FoundNames:
        """The ids of a column of names."""
        encoded = column.dictionary_encode()
        found = [self._one(name) for name in encoded.dictionary.to_pylist()]
        found.append((0, MISSING))
        place = encoded.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
        ids, states = zip(*found, strict=True)
        return FoundNames(np.array(ids, dtype=np.int64)[place], np.array(states, dtype=np.int8)[place])

    def _one(self, name: str) -> tuple[int, int]:
        if name == BLANK:
            return 0, IS_BLANK
        if not name.strip():
            return 0, MISSING
        known = self._ids.get(name)
        if known is not None:
            return known, FOUND
        own, shared = self._by_label
        if name in own:
            return own[name], FOUND
        if name in shared:
            return 0, SHARED
        lower, shared = self._by_lower_label
        name = name.lower()
        if name in lower:
            return lower[name], FOUND_IN_ANOTHER_CASE
        return 0, SHARED if name in shared else UNKNOWN

    @cached_property
    def _by_label(self) -> tuple[dict[str, int], set[str]]:
        return _unique(self._labels)

    @cached_property
    def _by_lower_label(self) -> tuple[dict[str, int], set[str]]:
        return _unique([label.lower() for label in self._labels])


def _unique(labels: Sequence[str]) -> tuple[dict[str, int], set[str]]:
    """The labels that one alone carries, and those that several do."""
    own: dict[str, int] = {}
    shared: set[str] = set()
    for identity, label in enumerate(labels):
        if label in own:
            shared.add(label)
        own[label] = identity
    for label in shared:
        del own[label]
    return own, shared
