"""A fact's fingerprint: 128 bits of its content, the same whatever the order of its qualifiers and whatever ids it got.

Names are hashed once each (BLAKE2b); the rest is integer mixing over whole columns. Two uses: duplicates are found by
fingerprint, and splits are drawn by it, so a fact keeps its split when other facts come or go. The mixing is part of
that promise: never change it without a new schema version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable

Hashes = NDArray[np.uint64]
"""(n, 2): two independent 64-bit lanes a row."""

_GOLDEN = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], dtype=np.uint64)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mixed(lanes: Hashes) -> Hashes:
    """Scramble each 64-bit value (the finishing step of SplitMix64): every input bit reaches every output bit."""
    lanes = lanes + _GOLDEN
    lanes = (lanes ^ (lanes >> np.uint64(30))) * _FIRST
    lanes = (lanes ^ (lanes >> np.uint64(27))) * _SECOND
    return np.asarray(lanes ^ (lanes >> np.uint64(31)))


def name_hashes(names: Iterable[str]) -> Hashes:
    """(n, 2) from names; the only step that looks at text."""
    digests = b"".join(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest() for name in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2)


def number_hashes(values: NDArray[np.float64]) -> Hashes:
    """(n, 2) from numbers, by exact value; −0.0 and 0.0 are one number."""
    bits = (values + 0.0).astype("<f8").view("<u8").astype(np.uint64)
    return mixed(np.stack([bits, ~bits], axis=1))


class Fingerprints:
    """Fingerprints of facts, for one vocabulary."""

    def __init__(
        self, entities: Iterable[str], relations: Sequence[str], relation_is_number: NDArray[np.bool_]
    ) -> None:
        self._entities = name_hashes(entities)  # (entities, 2)
        self._relations = name_hashes(relations)  # (relations, 2)
        self._relation_is_number = relation_is_number

    def facts(self, table: FactTable) -> Hashes:
        """(n, 2) of whole facts."""
        return mixed(self.parts(table, ("head", "relation", "tail")) + self._qualifiers(table))

    def parts(self, table: FactTable, names: Sequence[str]) -> Hashes:
        """(n, 2) of some of head, relation and tail, in this order: facts that agree in them get the same hash."""
        columns = {
            "head": lambda: self._entities[table.head],
            "relation": lambda: self._relations[table.relation],
            "tail": lambda: self._values(table.relation, table.tail_entity, table.tail_number),
        }
        lanes = np.zeros((len(table), 2), dtype=np.uint64)
        for name in names:
            lanes = mixed(lanes ^ columns[name]())
        return lanes

    def _values(self, relation: NDArray[np.int32], entity: NDArray[np.int32], number: NDArray[np.float64]) -> Hashes:
        is_number = self._relation_is_number[relation]
        lanes = number_hashes(number)
        lanes[~is_number] = self._entities[entity[~is_number]]
        return lanes

    def _qualifiers(self, table: FactTable) -> Hashes:
        """(n, 2) sum over each fact's qualifiers: a sum has no order, and counts repeated ones."""
        values = self._values(table.qualifier_relation, table.qualifier_entity, table.qualifier_number)
        pairs = mixed(mixed(self._relations[table.qualifier_relation]) ^ values)
        running = np.zeros((len(pairs) + 1, 2), dtype=np.uint64)
        np.cumsum(pairs, axis=0, out=running[1:])  # wraps around, and so does the difference
        return running[table.offsets[1:]] - running[table.offsets[:-1]]


def repeats(group: NDArray[np.int8], hashes: Hashes) -> NDArray[np.bool_]:
    """(n,) true where an earlier row has the same group and hash."""
    order = np.lexsort((hashes[:, 1], hashes[:, 0], group))  # stable: the first of equals stays first
    same = (
        (group[order][1:] == group[order][:-1])
        & (hashes[order[1:], 0] == hashes[order[:-1], 0])
        & (hashes[order[1:], 1] == hashes[order[:-1], 1])
    )
    found = np.zeros(len(order), dtype=np.bool_)
    found[order[1:]] = same
    return found
