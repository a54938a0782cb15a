"""Relations that give others away: inverses and near-duplicates, found by how many pairs of entities they share.

The rule of FB15K-237: two relations whose sets of (head, tail) pairs overlap almost wholly say the same thing; if one
pair is in test and its twin in train, the answer leaks. For each such couple the rarer relation is the one to remove.
A symmetric relation is no leak of another and is only reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable

MINIMUM_PAIRS = 10
"""Relations with fewer pairs overlap by chance and are left alone."""


class Leak(NamedTuple):
    """Two relations that share pairs: `removed` is the rarer, `shared` of its `pairs` stand under `kept` too."""

    removed: int
    kept: int
    kind: Literal["inverse", "duplicate"]
    shared: int
    pairs: int
    kept_pairs: int

    @property
    def overlap(self) -> float:
        """The smaller of the two shares of pairs that the relations have in common."""
        return self.shared / max(self.pairs, self.kept_pairs)

    def to_mapping(self, names: Sequence[str]) -> dict[str, Any]:
        return {
            "removed": names[self.removed],
            "kept": names[self.kept],
            "kind": self.kind,
            "shared": self.shared,
            "pairs": self.pairs,
            "kept_pairs": self.kept_pairs,
            "overlap": round(self.overlap, 4),
        }


def find_leakage(
    chunks: Iterable[FactTable], relation_is_number: NDArray[np.bool_], entity_count: int, *, threshold: float = 0.97
) -> list[Leak]:
    """Couples of relations whose pairs overlap by at least `threshold` on both sides; no relation is removed twice."""
    keys, relations = [], []
    for chunk in chunks:
        rows = ~relation_is_number[chunk.relation]
        keys.append(chunk.head[rows].astype(np.int64) * entity_count + chunk.tail_entity[rows])
        relations.append(chunk.relation[rows].astype(np.int64))
    if not keys:
        return []
    pair, relation = np.concatenate(keys), np.concatenate(relations)
    unique = np.unique(np.stack([pair, relation], axis=1), axis=0)
    pair, relation = unique[:, 0], unique[:, 1]
    count = len(relation_is_number)
    totals = np.bincount(relation, minlength=count)
    backward = (pair % entity_count) * entity_count + pair // entity_count
    couples = {
        "duplicate": _shared(pair, relation, pair, relation, count),
        "inverse": _shared(pair, relation, backward, relation, count),
    }
    leaks = []
    for kind, shared in couples.items():
        for (first, second), number in shared.items():
            if first >= second or min(totals[first], totals[second]) < MINIMUM_PAIRS:
                continue
            rare, frequent = sorted((first, second), key=lambda name: (totals[name], -name))
            leak = Leak(rare, frequent, kind, number, int(totals[rare]), int(totals[frequent]))  # type: ignore[arg-type]
            if leak.overlap >= threshold:
                leaks.append(leak)
    leaks.sort(key=lambda leak: (-leak.overlap, leak.removed, leak.kept))
    gone: set[int] = set()
    chosen = []
    for leak in leaks:
        if leak.removed not in gone and leak.kept not in gone:
            gone.add(leak.removed)
            chosen.append(leak)
    return chosen


def _shared(
    pair: NDArray[np.int64],
    relation: NDArray[np.int64],
    other_pair: NDArray[np.int64],
    other_relation: NDArray[np.int64],
    count: int,
) -> dict[tuple[int, int], int]:
    """How many pairs each couple of relations shares, by joining the two sorted lists of pairs."""
    order = np.argsort(other_pair, kind="stable")
    other_pair, other_relation = other_pair[order], other_relation[order]
    start = np.searchsorted(other_pair, pair, side="left")
    size = np.searchsorted(other_pair, pair, side="right") - start
    within = np.arange(size.sum(), dtype=np.int64) - np.repeat(np.cumsum(size) - size, size)
    partner = other_relation[np.repeat(start, size) + within]
    code, number = np.unique(np.repeat(relation, size) * count + partner, return_counts=True)
    return {(int(key // count), int(key % count)): int(value) for key, value in zip(code, number, strict=True)}
