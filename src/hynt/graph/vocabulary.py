"""Names and ids: the only place that knows id spaces.

Entities and relations have dense ids of their own, 0 … count − 1, in the order they were first met. Numbers have no
ids: they are values. Which relations carry numbers is known here, so a value's kind is never guessed. Here too are the
three kinds of arrays that columns are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hynt.errors import DataError
from hynt.graph.fact import DATE_UNIT

if TYPE_CHECKING:
    from hynt.graph.content_hash import Fingerprints

Ids: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound="np.generic[Any]")


def spaced(values: NDArray[Scalar], most: int) -> NDArray[Scalar]:
    """At most so many of the values (n,), evenly spaced, the first and the last among them."""
    return values[np.linspace(0, len(values) - 1, min(len(values), most)).astype(np.int64)]


def begins(*columns: NDArray[Any]) -> Flags:
    """(n,) whether a row of these columns (n,), sorted together, differs from the row before; the first one does."""
    found = np.zeros(len(columns[0]), dtype=np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def offsets_of(sizes: NDArray[np.integer[Any]]) -> Ids:
    """(n + 1,) where parts of these sizes (n,) begin when they are laid end to end, and where the last one ends."""
    found = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


def spread(start: Ids, size: Ids) -> tuple[Ids, Ids]:
    """For spans that start at `start` (n,) and are `size` (n,) long, end to end: which span, and which place in all."""
    owner = np.repeat(np.arange(len(size), dtype=np.int64), size)
    shift = np.repeat(start - (np.cumsum(size) - size), size)
    return owner, shift + np.arange(len(owner), dtype=np.int64)


RelationKind: TypeAlias = Literal["entity", "number"]
Scale: TypeAlias = Literal["linear", "log"]


class Relation(NamedTuple):
    """A relation: its id as written, what its values are, for numbers the unit and the scale that suits them, a name
    for people, and in their words what its facts say.
    """

    name: str
    kind: RelationKind
    unit: str = ""
    scale: Scale = "linear"
    label: str = ""
    description: str = ""


class Entity(NamedTuple):
    """An entity: its id as written, a name for people (several entities may share one), and its type, "" where
    unknown.
    """

    name: str
    label: str = ""
    type: str = ""


@dataclass(frozen=True)
class Vocabulary:
    """Entities and relations with their ids."""

    entities: tuple[str, ...]
    relations: tuple[Relation, ...]

    @cached_property
    def entity_ids(self) -> Mapping[str, int]:
        """From an entity's name to its id."""
        return _index(self.entities, "entity")

    @cached_property
    def relation_ids(self) -> Mapping[str, int]:
        """From a relation's name to its id."""
        return _index([relation.name for relation in self.relations], "relation")

    @cached_property
    def relation_is_number(self) -> NDArray[np.bool_]:
        """(relations,) true where a relation's values are numbers."""
        return np.array([relation.kind == "number" for relation in self.relations], dtype=np.bool_)

    @cached_property
    def relation_is_date(self) -> NDArray[np.bool_]:
        """(relations,) true where they are dates."""
        return np.array([relation.unit == DATE_UNIT for relation in self.relations], dtype=np.bool_)

    @cached_property
    def fingerprints(self) -> Fingerprints:
        """Of facts in these ids: the names are hashed once for all questions about content."""
        from hynt.graph.content_hash import Fingerprints

        return Fingerprints(self.entities, [relation.name for relation in self.relations], self.relation_is_number)

    @property
    def entity_count(self) -> int:
        return len(self.entities)

    @property
    def relation_count(self) -> int:
        return len(self.relations)


def _index(names: Iterable[str], what: str) -> dict[str, int]:
    ids: dict[str, int] = {}
    for name in names:
        if name in ids:
            raise DataError(f"the {what} {name!r} is listed twice in the vocabulary.", advice="Import the graph again.")
        ids[name] = len(ids)
    return ids
