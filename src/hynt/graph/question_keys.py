"""Keys of questions: two questions get the same key exactly when they ask the same.

A question is a fact with one component replaced by a hole. Its qualifiers are a multiset: their hashes are added up,
so their order does not matter and repeated ones count. Numbers compare by exact value. Keys have 128 bits and are
made from ids, so they belong to one vocabulary and are never stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hynt.graph.components import HEAD, RELATION, TAIL, component_starts, qualifier_components
from hynt.graph.content_hash import Hashes, mixed, number_hashes
from hynt.graph.fact_table import FactTable

_ENTITY, _RELATION, _HOLE = (np.uint64(number << 56) for number in (1, 2, 3))


def question_keys(table: FactTable, relation_is_number: NDArray[np.bool_]) -> Hashes:
    """(c, 2) the key of the question that hides each component of the table, in the order of `components`.

    A component's own key never depends on that component. So to key a question whose answer is unknown, any filler
    can stand in the hole; where the hole is a relation, the filler must only be one that carries the same kind of
    value.
    """
    hole = mixed(np.full((1, 2), _HOLE, dtype=np.uint64))
    head = _hashed_ids(table.head, _ENTITY)
    relation = _hashed_ids(table.relation, _RELATION)
    tail = _values(table.relation, table.tail_entity, table.tail_number, relation_is_number)
    qualifier = _hashed_ids(table.qualifier_relation, _RELATION)
    value = _values(table.qualifier_relation, table.qualifier_entity, table.qualifier_number, relation_is_number)

    pair = _pair(qualifier, value)
    running = np.zeros((len(pair) + 1, 2), dtype=np.uint64)
    np.cumsum(pair, axis=0, out=running[1:])  # wraps around, and so does the difference
    pairs = running[table.offsets[1:]] - running[table.offsets[:-1]]

    starts = component_starts(table)
    keys = np.empty((int(starts[-1]), 2), dtype=np.uint64)
    keys[starts[:-1] + HEAD] = _triplet(hole, relation, tail) + pairs
    keys[starts[:-1] + RELATION] = _triplet(head, hole, tail) + pairs
    keys[starts[:-1] + TAIL] = _triplet(head, relation, hole) + pairs
    rest = (_triplet(head, relation, tail) + pairs)[table.qualifier_owner()] - pair
    places = qualifier_components(table)
    keys[places] = rest + _pair(hole, value)
    keys[places + 1] = rest + _pair(qualifier, hole)
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
