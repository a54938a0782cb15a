"""From facts with names to columns with ids: the one place where names become numbers.

Decides a relation's kind by its first value and its unit by its first number, converts units, and refuses (or splits)
a relation that mixes entities and numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.errors import RecordProblem
from hynt.graph.columns import ChunkStore
from hynt.graph.fact import DATE_UNIT, Fact, Number
from hynt.graph.fact_table import FactTable
from hynt.graph.units.conversion import Conversion, UnknownUnit, display_of, require, with_display
from hynt.graph.vocabulary import Relation, RelationKind, Scale

CHUNK_FACTS = 65_536
MixedRelations = Literal["error", "split"]
NUMBER_SUFFIX = " (number)"
"""What a relation's numbers are filed under when a relation that mixes both kinds is split."""


class RelationDeclaration(NamedTuple):
    """What is known of a relation beforehand; a kind of None leaves it to the facts."""

    name: str
    kind: RelationKind | None = None
    unit: str = ""  # of its bare numbers
    scale: Scale = "linear"
    label: str = ""
    display: str = ""  # the unit that people read
    description: str = ""  # what its facts say


class _Ids(dict[str, int]):
    """Ids in the order names are first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = identity = len(self)
        return identity


class FactEncoder:
    """Takes facts one by one, puts them into a store as columns of ids, and holds the vocabulary they build up."""

    def __init__(
        self,
        store: ChunkStore,
        *,
        convert_units: bool = True,
        mixed: MixedRelations = "error",
        strict: bool = False,
        place: Callable[[], str] = lambda: "",
        note: Callable[[str, str, str], None] = lambda reason, what, advice: None,
    ) -> None:
        self._store = store
        self._convert_units = convert_units
        self._mixed = mixed
        self._strict = strict
        self._place = place
        self._note = note
        self.entity_ids = _Ids()
        self.split_of: list[NDArray[np.int8]] = []  # by chunk, an index into SPLITS; filler 0 where none was given
        self.facts_with_split = 0
        self._relations: list[Relation] = []
        self._by_kind: dict[bool, dict[str, int]] = {False: {}, True: {}}  # kind (is number) → name → id
        self._declared: dict[str, RelationDeclaration] = {}
        self._examples: dict[str, str] = {}  # the first use of each relation, for the error about mixed ones
        self._units: list[set[str]] = []  # by relation id, units met
        self._displays: list[str] = []  # by relation id, the unit that people read: declared, or the first one met
        self._conversions: dict[str, tuple[Conversion, str]] = {}  # unit → to its SI unit, and that unit
        self._begin_chunk()

    def declare_entities(self, names: Iterable[str]) -> None:
        """Fix the ids of these entities, in this order, before any fact is met."""
        for name in names:
            self.entity_ids[name]

    def declare_relation(self, declared: RelationDeclaration) -> None:
        """Take over what is known of a relation beforehand. With a kind, its id is fixed too."""
        name, kind, unit, *_ = declared
        self._declared[name] = declared._replace(display=declared.display or display_of(unit))
        if kind is not None and name not in self._by_kind[kind == "number"]:
            self._examples[name] = f"declared to carry {'numbers' if kind == 'number' else 'entities'}"
            self._new_relation(name, name, kind == "number")

    def name_relation(self, name: str, label: str = "", description: str = "") -> None:
        """Give a relation that was met a name for people and a meaning in words, where it has none yet."""
        for ids in self._by_kind.values():
            if name in ids:
                known = self._relations[ids[name]]
                self._relations[ids[name]] = known._replace(
                    label=known.label or label, description=known.description or description
                )

    def relation_labels(self) -> list[tuple[str, str]]:
        """The relations that were met, with their names for people."""
        return [(relation.name, relation.label) for relation in self._relations]

    def add(self, fact: Fact, split: int | None = None) -> None:
        """Encode one fact; raises RecordProblem, and adds nothing, when it does not fit.

        `split` is an index into SPLITS, None where the source gives none.
        """
        known = len(self._relations)
        try:
            relation_id, settled, pairs = self._resolved(fact)
        except RecordProblem:
            self._forget_relations(known)
            raise
        # Nothing below can fail, so a refused fact leaves nothing behind.
        ids = self.entity_ids
        self._head.append(ids[fact.head])
        self._relation.append(relation_id)
        self._append(settled, self._tail)
        for qualifier_id, pair_value in pairs:
            self._qualifier_relation.append(qualifier_id)
            self._append(pair_value, self._values)
        self._ends.append(len(self._qualifier_relation))
        self._splits.append(split or 0)
        self.facts_with_split += split is not None
        if len(self._head) == CHUNK_FACTS:
            self._flush()

    def _resolved(self, fact: Fact) -> tuple[int, str | tuple[float, str], list[tuple[int, str | tuple[float, str]]]]:
        """The relation's id, the tail and the qualifiers of a fact, with numbers in the units of their relations."""
        _, relation, tail, qualifiers = fact
        is_number = tail.__class__ is Number
        relation_id = self._by_kind[is_number].get(relation)
        if relation_id is None:
            relation_id = self._settle(relation, is_number, fact)
        pairs: list[tuple[int, str | tuple[float, str]]] = []
        for qualifier_relation, value in qualifiers:
            value_is_number = value.__class__ is Number
            qualifier_id = self._by_kind[value_is_number].get(qualifier_relation)
            if qualifier_id is None:
                qualifier_id = self._settle(qualifier_relation, value_is_number, fact)
            pairs.append((qualifier_id, self._number(qualifier_id, value) if isinstance(value, Number) else value))
        settled = self._number(relation_id, tail) if isinstance(tail, Number) else tail
        return relation_id, settled, pairs

    def _forget_relations(self, known: int) -> None:
        """Drop what a refused fact would have been the first to use: the first fact that is kept decides a kind."""
        if len(self._relations) == known:
            return
        for ids in self._by_kind.values():
            for name in [name for name, identity in ids.items() if identity >= known]:
                del ids[name]
                self._examples.pop(name, None)
        del self._relations[known:]
        del self._units[known:], self._displays[known:]

    def finish(self) -> tuple[Relation, ...]:
        """Write what is left; the relations, by id."""
        self._flush()
        found = []
        for relation, units, display in zip(self._relations, self._units, self._displays, strict=True):
            unit = min(units) if len(units) == 1 and not relation.unit else relation.unit
            found.append(relation._replace(unit=with_display(unit, display) if len(units) < 2 else unit))
        return tuple(found)

    def _append(self, value: str | tuple[float, str], to: tuple[list[int], list[float], list[str | None]]) -> None:
        entities, numbers, literals = to
        if isinstance(value, str):
            entities.append(self.entity_ids[value])
            numbers.append(0.0)
            literals.append(None)
        else:
            entities.append(0)
            numbers.append(value[0])
            literals.append(value[1])

    def _settle(self, relation: str, is_number: bool, fact: Fact) -> int:
        """The id of a relation met for the first time with this kind of value."""
        if relation in self._by_kind[not is_number]:
            if self._mixed == "error":
                one, other = ("a number", "an entity") if is_number else ("an entity", "a number")
                raise RecordProblem(
                    "mixed-relation",
                    f"the relation {relation!r} has {one} here: {describe(fact)}; but {other} before: "
                    f"{self._examples[relation]}.",
                    "Rename one of them, or split the relation with --mixed-relations split.",
                )
            name = relation + NUMBER_SUFFIX
            # The kind met second gets a name of its own only if it is the numbers; else the numbers move there.
            if not is_number:
                numbers = self._by_kind[True].pop(relation)
                self._relations[numbers] = self._relations[numbers]._replace(name=name)
                self._by_kind[True][relation] = numbers
                return self._new_relation(relation, relation, False)
            return self._new_relation(relation, name, True)
        self._examples[relation] = f"{describe(fact)} ({self._place()})" if self._place() else describe(fact)
        return self._new_relation(relation, relation, is_number)

    def _new_relation(self, met_as: str, name: str, is_number: bool) -> int:
        _, _, unit, scale, label, display, description = self._declared.get(met_as, RelationDeclaration(met_as))
        identity = len(self._relations)
        if is_number:
            if unit and self._convert_units and unit != DATE_UNIT:
                written, unit = unit, self._si(unit, met_as)[1]
                display = display or require(written).symbol
            self._relations.append(Relation(name, "number", unit, scale, label, description))
        else:
            self._relations.append(Relation(name, "entity", "", "linear", label, description))
        self._units.append({unit} if unit else set())
        self._displays.append(display if is_number else "")
        self._by_kind[is_number][met_as] = identity
        return identity

    def _number(self, relation: int, number: Number) -> tuple[float, str]:
        """A number in the unit of its relation, beside its literal."""
        value, literal, unit = number
        if not math.isfinite(value):
            raise RecordProblem("bad-number", f"{literal!r} is not a finite number.", "Remove it or correct it.")
        if not unit:
            declared = self._declared.get(self._relations[relation].name)
            unit = declared.unit if declared else ""
        if unit and unit != DATE_UNIT and self._convert_units:
            written, (convert, unit) = unit, self._si(unit, self._relations[relation].name)
            self._displays[relation] = self._displays[relation] or require(written).symbol
            before, value = value, convert(value)
            if not math.isfinite(value):
                raise RecordProblem("bad-number", f"{literal!r} is too large in {unit}.", "Correct it.")
            if value == 0 and before and not convert.shift:
                raise RecordProblem("bad-number", f"{literal!r} is too close to zero in {unit}.", "Correct it.")
        if unit not in self._units[relation]:
            self._meet_unit(relation, unit, literal)
        return value, literal

    def _si(self, unit: str, relation: str) -> tuple[Conversion, str]:
        known = self._conversions.get(unit)
        if known is None:
            try:
                found = require(unit)
            except UnknownUnit as problem:
                raise RecordProblem(
                    "unknown-unit",
                    f"the relation {relation!r} has a number in {unit!r}: {problem}",
                    "Correct the unit, or keep units as they are with --units keep.",
                ) from None
            known = self._conversions[unit] = (found.conversion, found.si_unit)
        return known

    def _meet_unit(self, relation: int, unit: str, literal: str) -> None:
        units = self._units[relation]
        if units:
            name = self._relations[relation].name
            what = (
                f"the relation {name!r} mixes units: {literal} has {unit or 'none'}, others {', '.join(sorted(units))}."
            )
            if self._strict:
                raise RecordProblem("mixed-units", what, "Use one unit for a relation.")
            advice = "Its numbers are kept without a unit. Write all in one, or give each unit a relation of its own."
            self._note("mixed-units", what, advice)
        units.add(unit)

    def _begin_chunk(self) -> None:
        self._head: list[int] = []
        self._relation: list[int] = []
        self._tail: tuple[list[int], list[float], list[str | None]] = ([], [], [])
        self._ends: list[int] = [0]
        self._qualifier_relation: list[int] = []
        self._values: tuple[list[int], list[float], list[str | None]] = ([], [], [])
        self._splits: list[int] = []

    def _flush(self) -> None:
        if not self._head:
            return
        self._store.append(
            FactTable(
                np.array(self._head, dtype=np.int32),
                np.array(self._relation, dtype=np.int32),
                np.array(self._tail[0], dtype=np.int32),
                np.array(self._tail[1], dtype=np.float64),
                pa.array(self._tail[2], type=pa.string()),
                np.array(self._ends, dtype=np.int64),
                np.array(self._qualifier_relation, dtype=np.int32),
                np.array(self._values[0], dtype=np.int32),
                np.array(self._values[1], dtype=np.float64),
                pa.array(self._values[2], type=pa.string()),
            )
        )
        self.split_of.append(np.array(self._splits, dtype=np.int8))
        self._begin_chunk()


def describe(fact: Fact) -> str:
    """A fact on one line, for messages."""

    def text(value: str | Number) -> str:
        if not isinstance(value, Number) or value.unit == DATE_UNIT:
            return value if isinstance(value, str) else value.literal
        return f"{float(value.value):.15g} {value.unit}".removesuffix(" 1").rstrip()

    qualifiers = ", ".join(f"{relation}: {text(value)}" for relation, value in fact.qualifiers[:3])
    more = ", …" if len(fact.qualifiers) > 3 else ""
    return f"({fact.head}, {fact.relation}, {text(fact.tail)})" + (f" {{{qualifiers}{more}}}" if qualifiers else "")
