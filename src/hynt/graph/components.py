"""The components of facts, counted one way everywhere.

A fact with k qualifiers has 3 + 2k components: position 0 is the head, 1 the relation, 2 the tail, 3 + 2i the
relation of qualifier i and 4 + 2i its value. Components of a table are numbered fact by fact, position by position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable

HEAD, RELATION, TAIL = 0, 1, 2
FIRST_QUALIFIER = 3


class _Whole(Protocol):
    """A whole number, an array of them or a tensor."""

    def __sub__(self, other: int, /) -> Any: ...
    def __mul__(self, other: int, /) -> Any: ...


W = TypeVar("W", bound=_Whole)


def qualifier_of(position: W) -> W:
    """The number, from 0, of the qualifier that a position past the tail belongs to."""
    found: W = (position - FIRST_QUALIFIER) // 2
    return found


def relation_position(qualifier: W) -> W:
    """Where the relation of a qualifier stands; its value comes right after it."""
    found: W = qualifier * 2 + FIRST_QUALIFIER
    return found


def component_count(qualifiers: W) -> W:
    """How many components a fact with so many qualifiers has."""
    return relation_position(qualifiers)  # where the next qualifier would begin


ENTITY_KIND, RELATION_KIND, NUMBER_KIND = 0, 1, 2
KIND_NAMES = ("entity", "relation", "number")
POSITION_GROUPS = ("head", "relation", "tail", "qualifier relation", "qualifier value")


@dataclass(frozen=True, eq=False)
class Components:
    """Every component of every fact of a table; `c` in all."""

    row: NDArray[np.int64]  # (c,) the fact it belongs to
    position: NDArray[np.int64]  # (c,) its place in the fact
    kind: NDArray[np.int8]  # (c,) ENTITY_KIND, RELATION_KIND or NUMBER_KIND
    relation: NDArray[np.int32]  # (c,) the relation of its triplet or qualifier; its own id where it is a relation
    entity: NDArray[np.int32]  # (c,) its entity id where it is an entity, else filler 0
    number: NDArray[np.float64]  # (c,) its value where it is a number, else filler 0

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: NDArray[np.int64]) -> Components:
        """These components, in this order."""
        return Components(
            self.row[chosen],
            self.position[chosen],
            self.kind[chosen],
            self.relation[chosen],
            self.entity[chosen],
            self.number[chosen],
        )


def component_starts(table: FactTable) -> NDArray[np.int64]:
    """(n + 1,) the first component of each fact: component (row, position) has the number starts[row] + position."""
    return FIRST_QUALIFIER * np.arange(len(table) + 1, dtype=np.int64) + 2 * table.offsets


def components(table: FactTable, relation_is_number: NDArray[np.bool_]) -> Components:
    """All components of a table; `relation_is_number`, (relations,), says which relations carry numbers."""
    starts = component_starts(table)
    total = int(starts[-1])
    row = np.repeat(np.arange(len(table), dtype=np.int64), np.diff(starts))
    position = np.arange(total, dtype=np.int64) - starts[row]
    triplets = starts[:-1]
    pairs = qualifier_components(table)

    kind = np.full(total, ENTITY_KIND, dtype=np.int8)
    kind[position % 2 == 1] = RELATION_KIND
    kind[triplets + TAIL] = np.where(relation_is_number[table.relation], NUMBER_KIND, ENTITY_KIND)
    kind[pairs + 1] = np.where(relation_is_number[table.qualifier_relation], NUMBER_KIND, ENTITY_KIND)

    relation = np.zeros(total, dtype=np.int32)
    for place in (HEAD, RELATION, TAIL):
        relation[triplets + place] = table.relation
    relation[pairs] = relation[pairs + 1] = table.qualifier_relation

    entity = np.zeros(total, dtype=np.int32)
    entity[triplets + HEAD] = table.head
    entity[triplets + TAIL] = table.tail_entity
    entity[pairs + 1] = table.qualifier_entity
    entity[kind != ENTITY_KIND] = 0

    number = np.zeros(total, dtype=np.float64)
    number[triplets + TAIL] = table.tail_number
    number[pairs + 1] = table.qualifier_number
    number[kind != NUMBER_KIND] = 0.0
    return Components(row, position, kind, relation, entity, number)


def qualifier_components(table: FactTable) -> NDArray[np.int64]:
    """(m,) the number of the component that is each qualifier's relation; its value comes right after it."""
    return FIRST_QUALIFIER * (table.qualifier_owner() + 1) + 2 * np.arange(table.qualifier_total, dtype=np.int64)


def filled(table: FactTable, row: NDArray[np.int64], position: NDArray[np.int64], answer: NDArray[Any]) -> FactTable:
    """(n,) the facts at `row`, each with another component at `position`: ids, or numbers where `answer` has floats."""
    taken, kind = table.take(row), "number" if answer.dtype.kind == "f" else "entity"
    slots = taken.offsets[:-1] + np.where(position > TAIL, qualifier_of(position), 0)
    columns = {
        "head": position == HEAD,
        "relation": position == RELATION,
        f"tail_{kind}": position == TAIL,
        "qualifier_relation": (position > TAIL) & (position % 2 == 1),
        f"qualifier_{kind}": (position > TAIL) & (position % 2 == 0),
    }
    changed = {}
    for name, chosen in columns.items():
        if chosen.any():
            changed[name] = getattr(taken, name).copy()
            changed[name][(slots if name.startswith("qualifier") else np.arange(len(row)))[chosen]] = answer[chosen]
    return replace(taken, **changed)


def position_group(position: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the place of a component whatever the qualifier's number: an index into POSITION_GROUPS."""
    return np.where(position < FIRST_QUALIFIER, position, FIRST_QUALIFIER + (position - FIRST_QUALIFIER) % 2)


def position_name(position: int) -> str:
    """A position in words: head, relation, tail, relation of qualifier 1, value of qualifier 1, …"""
    if position < FIRST_QUALIFIER:
        return ("head", "relation", "tail")[position]
    return f"{'relation' if position % 2 else 'value'} of qualifier {qualifier_of(position) + 1}"
