"""Facts to leave out of a graph, said in a file: limits for a relation's numbers, and single facts that are wrong.

    [limits."number of seasons"]        # a relation by its id or its name; in the graph's unit, dates as decimal years
    minimum = 1
    maximum = 60

    [[remove]]                          # one fact: give `number`, `literal` (as written) or `entity`
    head = "Glee"
    relation = "number of seasons"
    number = 91

A fact whose tail, or any of whose qualifiers, breaks a limit is left out whole. Each fact is counted under the first
rule that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hynt.config import load_toml
from hynt.config.declarations import UnfitSettings
from hynt.errors import DataError, UsageError
from hynt.graph.fact_table import FactTable
from hynt.graph.lookup import LabelIndex
from hynt.graph.vocabulary import Relation
from hynt.names import nearest

_CLOSE = 1e-9  # relative: a number written in a rule file is the same as one that was converted on the way in


@dataclass(frozen=True)
class NumberLimits:
    """What the numbers of a relation may be, both ends included."""

    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        if self.minimum is None and self.maximum is None:
            raise UnfitSettings("a limit needs a minimum or a maximum", "Give one of them, or both.")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            what = f"the minimum {self.minimum:g} is above the maximum {self.maximum:g}"
            raise UnfitSettings(what, "Swap them, or correct one.")

    def words(self) -> str:
        parts = [f"at least {self.minimum:g}"] if self.minimum is not None else []
        return " and ".join(parts + ([f"at most {self.maximum:g}"] if self.maximum is not None else []))


@dataclass(frozen=True)
class Removal:
    """One triplet to leave out, whatever its qualifiers."""

    head: str
    relation: str
    number: float | None = None
    literal: str | None = None
    entity: str | None = None

    def __post_init__(self) -> None:
        if sum(value is not None for value in (self.number, self.literal, self.entity)) != 1:
            what = "a fact to remove needs exactly one of number, literal and entity"
            raise UnfitSettings(what, "Say what its value is by one of these keys.")

    def words(self) -> str:
        value = f"{self.number:g}" if self.number is not None else self.literal or self.entity
        return f"({self.head}, {self.relation}, {value})"


@dataclass(frozen=True)
class OutlierRules:
    """What a rule file says: limits of relations, and facts to remove."""

    limits: dict[str, NumberLimits] = field(default_factory=dict)
    remove: tuple[Removal, ...] = ()


Breaks: TypeAlias = Callable[[FactTable], NDArray[np.bool_]]


def read_outlier_rules(path: Path) -> OutlierRules:
    """A rule file, with every mistake in it named by its place."""
    rules = load_toml(path, OutlierRules)
    if not rules.limits and not rules.remove:
        raise UsageError("the file has no rules.", where=str(path), advice="Give [limits.…] or [[remove]] tables.")
    return rules


class OutlierFilter:
    """The rules, understood for one vocabulary; says which facts of each chunk break one, and counts them."""

    def __init__(
        self,
        rules: OutlierRules,
        relations: Sequence[Relation],
        entity_ids: Mapping[str, int],
        entity_labels: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._relations = relations
        self._relation_ids = {relation.name: index for index, relation in enumerate(relations)}
        self._relation_labels = LabelIndex([relation.label or relation.name for relation in relations])
        labels = dict(entity_labels)
        self._entity_ids = entity_ids
        self._entity_labels = LabelIndex([labels.get(name) or name for name in entity_ids])
        limits = [(f"{name}: {limit.words()}", self._limit(name, limit)) for name, limit in rules.limits.items()]
        removals = [(removal.words(), self._removal(removal)) for removal in rules.remove]
        self._rules: list[tuple[str, Breaks]] = limits + removals
        self.counts = [0] * len(self._rules)

    def breaking(self, table: FactTable) -> NDArray[np.bool_]:
        """(n,) true for the facts that break a rule."""
        broken = np.zeros(len(table), dtype=np.bool_)
        for index, (_, breaks) in enumerate(self._rules):
            found = breaks(table) & ~broken
            self.counts[index] += int(found.sum())
            broken |= found
        return broken

    def to_mapping(self) -> dict[str, Any]:
        """What was removed, by rule; a rule that removed nothing is listed with 0."""
        rules = [
            {"rule": words, "removed_facts": count} for (words, _), count in zip(self._rules, self.counts, strict=True)
        ]
        return {"removed_facts": sum(self.counts), "rules": rules}

    def _limit(self, name: str, limit: NumberLimits) -> Breaks:
        relation = self._relation(name, "limits")
        if self._relations[relation].kind != "number":
            what = f"the relation {name!r} carries entities, so its numbers have no limits."
            raise DataError(what, where="limits", advice="Name a relation of numbers, or take the rule out.")
        low = -np.inf if limit.minimum is None else limit.minimum
        high = np.inf if limit.maximum is None else limit.maximum

        def breaks(table: FactTable) -> NDArray[np.bool_]:
            tail = table.tail_number
            found = (table.relation == relation) & ((tail < low) | (tail > high))
            value = table.qualifier_number
            outside = (table.qualifier_relation == relation) & ((value < low) | (value > high))
            found[table.qualifier_owner()[outside]] = True
            return np.asarray(found)

        return breaks

    def _removal(self, removal: Removal) -> Breaks:
        relation, head = self._relation(removal.relation, "remove"), self._entity(removal.head)
        is_number = self._relations[relation].kind == "number"
        if is_number == (removal.entity is not None):
            kind, wanted = ("numbers", "number or literal") if is_number else ("entities", "entity")
            raise DataError(
                f"the relation {removal.relation!r} carries {kind}.",
                where=f"remove {removal.words()}",
                advice=f"Give {wanted}.",
            )
        entity = None if removal.entity is None else self._entity(removal.entity)

        def breaks(table: FactTable) -> NDArray[np.bool_]:
            found = (table.head == head) & (table.relation == relation)
            if entity is not None:
                return np.asarray(found & (table.tail_entity == entity))
            if removal.number is not None:
                return np.asarray(found & np.isclose(table.tail_number, removal.number, rtol=_CLOSE, atol=0.0))
            same = pc.fill_null(pc.equal(table.tail_literal, removal.literal), False)
            return np.asarray(found & same.to_numpy(zero_copy_only=False))

        return breaks

    def _relation(self, name: str, where: str) -> int:
        return _found(name, self._relation_ids, self._relation_labels, "relation", where)

    def _entity(self, name: str) -> int:
        return _found(name, self._entity_ids, self._entity_labels, "entity", "remove")


def _found(name: str, ids: Mapping[str, int], labels: LabelIndex, what: str, where: str) -> int:
    """What a rule file means by a name: an id as written, or a label that one alone carries."""
    carriers = [ids[name]] if name in ids else labels.carrying(name)
    if len(carriers) == 1:
        return carriers[0]
    if carriers:
        listed = ", ".join([known for known, one in ids.items() if one in carriers][:10])
        raise DataError(
            f"{len(carriers)} {what} ids carry the name {name!r}.", where=where, advice=f"Use one of {listed}."
        )
    near = nearest(name, [*ids, *labels.names])
    raise DataError(
        f"the outlier rules speak of the {what} {name!r}, which the source does not have.",
        where=where,
        advice=f"Did you mean {near!r}?" if near else "Check the name, or take the rule out.",
    )
