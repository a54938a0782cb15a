"""Facts and graphs by their content. A fact's fingerprint is 128 bits, the same whatever the order of its qualifiers
and whatever ids it got.

Names are hashed once each (BLAKE2b); the rest is integer mixing over whole columns. Two uses: duplicates are found by
fingerprint, and splits are drawn by it, so a fact keeps its split when other facts come or go. The mixing is part of
that promise: never change it without a new schema version.

Two graphs are the same by content as well: not by their files, whose bytes depend on who wrote them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import (
    HEAD,
    NUMERIC_COLUMNS,
    RELATION,
    TAIL,
    FactTable,
    component_starts,
    qualifier_components,
)
from hynt.graph.vocabulary import Ids, begins

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

Hashes = NDArray[np.uint64]
"""(n, 2): two independent 64-bit lanes per row."""

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
        return _summed(pairs, table.offsets)


def _summed(pairs: Hashes, offsets: NDArray[np.int64]) -> Hashes:
    """(n, 2) the sum of each fact's qualifiers (m, 2)."""
    running = np.zeros((len(pairs) + 1, 2), dtype=np.uint64)
    np.cumsum(pairs, axis=0, out=running[1:])  # wraps around, and so does the difference
    return running[offsets[1:]] - running[offsets[:-1]]


def repeats(hashes: Hashes, group: NDArray[np.int8] | None = None) -> NDArray[np.bool_]:
    """(n,) true where an earlier row has the same hash, and is of the same group, where there are any."""
    group = np.zeros(len(hashes), dtype=np.int8) if group is None else group
    order = np.lexsort((hashes[:, 1], hashes[:, 0], group))  # stable: the first of equals stays first
    found = np.empty(len(order), dtype=np.bool_)
    found[order] = ~begins(group[order], *hashes[order].T)
    return found


def distinct(hashes: Hashes) -> tuple[Ids, Ids]:
    """(c,) the first row of each content, in ascending order of their hashes; (n,) which of them each row is."""
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))  # stable: the first of equals stays first
    new = begins(*hashes[order].T)
    content = np.empty(len(order), dtype=np.int64)
    content[order] = np.cumsum(new) - 1
    return order[new], content


# Keys of questions: two questions get the same key exactly when they ask the same.
#
# A question is a fact with one component replaced by a blank. Its qualifiers are a multiset: their hashes are added up,
# so their order does not matter and repeated ones count. Numbers compare by exact value. Keys have 128 bits and are
# made from ids, so they belong to one vocabulary and are never stored.

_ENTITY, _RELATION, _BLANK = (np.uint64(number << 56) for number in (1, 2, 3))


def question_keys(table: FactTable, relation_is_number: NDArray[np.bool_]) -> Hashes:
    """(c, 2) the key of the question that hides each component of the table, in the order of `components`.

    A component's own key never depends on that component. So to key a question whose answer is unknown, any filler
    can stand in the blank; where the blank is a relation, the filler must only be one that carries the same kind of
    value.
    """
    blank = mixed(np.full((1, 2), _BLANK, dtype=np.uint64))
    head = _hashed_ids(table.head, _ENTITY)
    relation = _hashed_ids(table.relation, _RELATION)
    tail = _values(table.relation, table.tail_entity, table.tail_number, relation_is_number)
    qualifier = _hashed_ids(table.qualifier_relation, _RELATION)
    value = _values(table.qualifier_relation, table.qualifier_entity, table.qualifier_number, relation_is_number)

    pair = _pair(qualifier, value)
    pairs = _summed(pair, table.offsets)

    starts = component_starts(table)
    keys = np.empty((int(starts[-1]), 2), dtype=np.uint64)
    keys[starts[:-1] + HEAD] = _triplet(blank, relation, tail) + pairs
    keys[starts[:-1] + RELATION] = _triplet(head, blank, tail) + pairs
    keys[starts[:-1] + TAIL] = _triplet(head, relation, blank) + pairs
    rest = (_triplet(head, relation, tail) + pairs)[table.qualifier_owner()] - pair
    places = qualifier_components(table)
    keys[places] = rest + _pair(blank, value)
    keys[places + 1] = rest + _pair(qualifier, blank)
    return mixed(keys)


def _hashed_ids(ids: NDArray[np.int32], tag: np.uint64) -> Hashes:
    lane = ids.astype(np.uint64) | tag
    return mixed(np.stack([lane, lane], axis=1))


def _values(
    relation: NDArray[np.int32],
    entity: NDArray[np.int32],
    number: NDArray[np.float64],
    relation_is_number: NDArray[np.bool_],
) -> Hashes:
    is_number = relation_is_number[relation]
    lanes = _hashed_ids(entity, _ENTITY)
    lanes[is_number] = number_hashes(number[is_number])
    return lanes


def _triplet(head: Hashes, relation: Hashes, tail: Hashes) -> Hashes:
    return mixed(mixed(mixed(head) ^ relation) ^ tail)


def _pair(relation: Hashes, value: Hashes) -> Hashes:
    return mixed(mixed(~relation) ^ value)  # ~: a pair is never mistaken for the start of a triplet


def graph_fingerprints(graph: KnowledgeGraph) -> dict[str, str]:
    """A hash for each part of a graph: its entities, its relations, and the facts of each split."""
    vocabulary = graph.vocabulary
    parts = {
        "entities": _texts(vocabulary.entities),
        "relations": _texts(text for r in vocabulary.relations for text in (r.name, r.kind, r.unit)),
    }
    return parts | {split: _facts(table) for split, table in graph.splits.items()}


def graph_differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """One line per part that differs; empty when the graphs are the same."""
    lines = []
    for part in [*old, *(name for name in new if name not in old)]:
        if part not in new:
            lines.append(f"{part}: no longer there")
        elif part not in old:
            lines.append(f"{part}: was not there")
        elif old[part] != new[part]:
            lines.append(f"{part}: changed")
    return lines


def _texts(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def _facts(table: FactTable) -> str:
    digest = hashlib.sha256()
    for name in NUMERIC_COLUMNS:
        column = np.ascontiguousarray(getattr(table, name))
        digest.update(f"{name} {column.dtype} {len(column)} ".encode())
        digest.update(column.data)
    for literals in (table.tail_literal, table.qualifier_literal):
        digest.update(_texts(text or "" for text in literals.to_pylist()).encode())
    return digest.hexdigest()
