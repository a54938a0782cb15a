"""What a source says: a statement with the passage it was read from, or a passage that was not taken and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias


@dataclass(frozen=True)
class Entity:
    """A thing with a readable name; `place` tells apart things that share one (Valencia in Spain, in Venezuela)."""

    type: str
    label: str
    place: str = ""

    @property
    def id(self) -> str:
        name = f"{self.label} {self.place}" if self.place else self.label
        return f"{self.type}/{name.replace('/', '_').replace(' ', '_')}"


@dataclass(frozen=True)
class Quantity:
    """A number in the unit that `relations.py` gives its relation."""

    value: Decimal


@dataclass(frozen=True)
class Date:
    """A day, month or year as ISO 8601 text: 1922-01-28, 1922-01 or 1922."""

    text: str


Value: TypeAlias = Entity | Quantity | Date
Qualifiers: TypeAlias = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Statement:
    """A fact and where it comes from. The origin and the passage are for auditors; they are no part of the fact."""

    head: Entity
    relation: str
    tail: Value
    qualifiers: Qualifiers = ()
    source: str = field(default="", compare=False)
    origin: str = field(default="", compare=False)
    passage: str = field(default="", compare=False)


@dataclass(frozen=True)
class Rejected:
    """A passage, or a statement read from it, that does not enter the graph."""

    reason: str
    origin: str
    passage: str


Reading: TypeAlias = Iterator[Statement | Rejected]


def quantity(value: str | int | float | Decimal) -> Quantity:
    """A quantity without the dust of binary fractions: 286.34999999999997 becomes 286.35."""
    if isinstance(value, float):
        return Quantity(Decimal(format(value, ".12g")))
    return Quantity(Decimal(value))


def value_key(value: Value) -> str:
    """A value as text that is equal exactly when the values say the same."""
    if isinstance(value, Entity):
        return value.id
    if isinstance(value, Quantity):
        return f"number {value.value.normalize()}"
    return f"date {value.text}"


def subject_key(statement: Statement) -> tuple[str, ...]:
    """What the statement is about, without its tail: two numbers for one subject contradict each other."""
    pairs = sorted(f"{relation}\t{value_key(value)}" for relation, value in statement.qualifiers)
    return (statement.head.id, statement.relation, *pairs)
