"""Many facts as columns: what a graph holds in memory, and what becomes tensors.

Qualifiers are stored end to end; `offsets` says which belong to which fact. Whether a value is an entity or a number
is said by its relation (`Vocabulary.relation_is_number`); the slot of the other kind holds a filler that nobody
reads.

Components are counted one way everywhere. A fact with k qualifiers has 3 + 2k of them: position 0 is the head, 1 the
relation, 2 the tail, 3 + 2i the relation of qualifier i and 4 + 2i its value. Components of a table are numbered fact
by fact, position by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.graph.fact import Fact, Number, Qualifier, Value
from hynt.graph.vocabulary import Vocabulary, offsets_of, spread

NUMERIC_COLUMNS = (
    "head",
    "relation",
    "tail_entity",
    "tail_number",
    "offsets",
    "qualifier_relation",
    "qualifier_entity",
    "qualifier_number",
)
"""The columns that are arrays. Fingerprints of graphs are made in this order."""


@dataclass(frozen=True, eq=False)
class FactTable:
    """`n` facts with `m` qualifiers in all."""

    head: NDArray[np.int32]  # (n,) entity id
    relation: NDArray[np.int32]  # (n,) relation id
    tail_entity: NDArray[np.int32]  # (n,) entity id where the relation carries entities, else filler 0
    tail_number: NDArray[np.float64]  # (n,) value where the relation carries numbers, else filler 0
    tail_literal: pa.StringArray  # (n,) the number as written, null where the tail is an entity
    offsets: NDArray[np.int64]  # (n + 1,) qualifiers of fact i are offsets[i] … offsets[i + 1]
    qualifier_relation: NDArray[np.int32]  # (m,) relation id
    qualifier_entity: NDArray[np.int32]  # (m,) as tail_entity
    qualifier_number: NDArray[np.float64]  # (m,) as tail_number
    qualifier_literal: pa.StringArray  # (m,) as tail_literal

    def __len__(self) -> int:
        return len(self.head)

    @property
    def qualifier_total(self) -> int:
        """How many qualifiers all facts have together."""
        return len(self.qualifier_relation)

    def qualifier_counts(self) -> NDArray[np.int64]:
        """(n,) how many qualifiers each fact has."""
        return np.diff(self.offsets)

    def qualifier_owner(self) -> NDArray[np.int64]:
        """(m,) the row of the fact that each qualifier belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.qualifier_counts())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FactTable):
            return NotImplemented
        arrays = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in NUMERIC_COLUMNS)
        return bool(
            arrays
            and self.tail_literal.equals(other.tail_literal)
            and self.qualifier_literal.equals(other.qualifier_literal)
        )

    __hash__ = None  # type: ignore[assignment]

    def take(self, rows: NDArray[np.int64]) -> FactTable:
        """The facts at these rows, in this order."""
        counts = self.qualifier_counts()[rows]
        slots = spread(self.offsets[:-1][rows], counts)[1]
        found: dict[str, Any] = {}
        for name, column in self._columns():
            chosen = slots if name.startswith("qualifier") else rows
            found[name] = column.take(pa.array(chosen)) if isinstance(column, pa.Array) else column[chosen]
        return FactTable(**found, offsets=offsets_of(counts))

    def _columns(self) -> list[tuple[str, Any]]:
        """All but the offsets, by name."""
        return [(one.name, getattr(self, one.name)) for one in fields(self) if one.name != "offsets"]

    def where(self, keep: NDArray[np.bool_]) -> FactTable:
        """The facts where `keep`, (n,), is true."""
        return self if bool(keep.all()) else self.take(np.flatnonzero(keep).astype(np.int64))

    def renumbered(
        self, entity: NDArray[np.int32], relation: NDArray[np.int32], relation_is_number: NDArray[np.bool_]
    ) -> FactTable:
        """The same facts in other ids: `entity` and `relation` have the new id of each old one, and
        `relation_is_number` goes by the new ones.
        """
        primary, inner = relation[self.relation], relation[self.qualifier_relation]
        return replace(
            self,
            head=entity[self.head],
            relation=primary,
            tail_entity=np.where(relation_is_number[primary], 0, entity[self.tail_entity]).astype(np.int32),
            qualifier_relation=inner,
            qualifier_entity=np.where(relation_is_number[inner], 0, entity[self.qualifier_entity]).astype(np.int32),
        )

    def with_qualifiers(self, keep: NDArray[np.bool_]) -> FactTable:
        """The same facts with only the qualifiers where `keep`, (m,), is true."""
        slots = np.flatnonzero(keep)
        counts = np.bincount(self.qualifier_owner()[slots], minlength=len(self))
        return replace(
            self,
            offsets=offsets_of(counts),
            qualifier_relation=self.qualifier_relation[slots],
            qualifier_entity=self.qualifier_entity[slots],
            qualifier_number=self.qualifier_number[slots],
            qualifier_literal=self.qualifier_literal.take(pa.array(slots)),
        )

    def fact(self, row: int, vocabulary: Vocabulary) -> Fact:
        """The fact at a row, with names and units."""
        return next(self.take(np.array([row], dtype=np.int64)).facts(vocabulary))

    def facts(self, vocabulary: Vocabulary) -> Iterator[Fact]:
        """The facts one by one, with names and units: for people and files, not for hot loops."""
        entities, relations = vocabulary.entities, vocabulary.relations

        def value(relation: int, entity: int, number: float, literal: str | None) -> Value:
            if relations[relation].kind == "entity":
                return entities[entity]
            return Number(number, literal or repr(number), relations[relation].unit)

        owners = self.offsets.tolist()
        pairs = [
            Qualifier(relations[relation].name, value(relation, entity, number, literal))
            for relation, entity, number, literal in zip(
                self.qualifier_relation.tolist(),
                self.qualifier_entity.tolist(),
                self.qualifier_number.tolist(),
                self.qualifier_literal.to_pylist(),
                strict=True,
            )
        ]
        columns = zip(
            self.head.tolist(),
            self.relation.tolist(),
            self.tail_entity.tolist(),
            self.tail_number.tolist(),
            self.tail_literal.to_pylist(),
            strict=True,
        )
        for row, (head, relation, entity, number, literal) in enumerate(columns):
            tail = value(relation, entity, number, literal)
            yield Fact(entities[head], relations[relation].name, tail, tuple(pairs[owners[row] : owners[row + 1]]))


def concatenate(tables: Sequence[FactTable]) -> FactTable:
    """One table of all the facts, in order."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return empty_table()
    shifts = np.cumsum([0] + [table.qualifier_total for table in tables[:-1]])
    offsets = [table.offsets[:-1] + shift for table, shift in zip(tables, shifts, strict=True)]
    end = np.array([sum(table.qualifier_total for table in tables)], dtype=np.int64)

    found: dict[str, Any] = {}
    for name, column in tables[0]._columns():
        parts = [getattr(table, name) for table in tables]
        found[name] = pa.concat_arrays(parts) if isinstance(column, pa.Array) else np.concatenate(parts)
    return FactTable(**found, offsets=np.concatenate([*offsets, end]))


def empty_table() -> FactTable:
    ids, numbers = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float64)
    literals = pa.array([], type=pa.string())
    return FactTable(ids, ids, ids, numbers, literals, np.zeros(1, dtype=np.int64), ids, ids, numbers, literals)


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
        return Components(*(column[chosen] for column in vars(self).values()))


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
