"""Numbers to the unit range and back, one min–max scale per relation.

A graph keeps numbers as they are; the scaling belongs to a run, because it depends on the splits it was fitted on.
Values outside the fitted range are legal and are not clamped: they land outside [0, 1].

A relation whose values in the fitted splits are all the same gets that value as offset and, as its unit may be
anything, as width, if it is above 1; one that has no value there gets offset 0 and width 1, so its numbers pass
unchanged. A relation may have a log scale besides: `scale` then works on logarithms, while `linear` always gives the
plain min–max scale, on which errors are reported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hynt.errors import DataError, UsageError
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Floats, Ids, Vocabulary
from hynt.names import advice_on

AnyIds = NDArray[np.integer[Any]]

FURTHEST = 1e18
"""In widths of a relation's range: models work in single precision, which cannot square what lies further out."""
_FURTHEST_MEASURED = 1e37
"""The same of numbers on a log scale, whose errors are measured without it: single precision ends there."""


class Expectation(NamedTuple):
    """From the answers of a log scale, which are medians, to means: offset + factor · answer, in the graph's unit."""

    offset: Floats  # (relations,)
    factor: Floats  # (relations,)

    @classmethod
    def unchanged(cls, relations: int) -> Expectation:
        """Means that are the answers themselves."""
        return cls(np.zeros(relations), np.ones(relations))

    def __call__(self, relation: AnyIds, value: Floats) -> Floats:
        """(n,) means, from answers (n,)."""
        result: Floats = self.offset[relation] + self.factor[relation] * value
        return result

    def to_mapping(self, vocabulary: Vocabulary) -> dict[str, dict[str, float]]:
        """By relation name, for JSON; only what changes something."""
        changed = np.flatnonzero((self.factor != 1) | (self.offset != 0)).tolist()
        return {
            vocabulary.relations[index].name: {"offset": float(self.offset[index]), "factor": float(self.factor[index])}
            for index in changed
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], vocabulary: Vocabulary, where: str) -> Expectation:
        """What `to_mapping` wrote."""
        found = cls.unchanged(vocabulary.relation_count)
        for name, entry in mapping.items():
            known = name in vocabulary.relation_ids and isinstance(entry, dict) and set(entry) == {"offset", "factor"}
            if not known or not all(_is_fine(key, value) for key, value in entry.items()):
                raise DataError(f"the mean of {name!r} cannot be read.", where=where, advice="Take the file again.")
            index = vocabulary.relation_ids[name]
            found.offset[index], found.factor[index] = float(entry["offset"]), float(entry["factor"])
        return found


@dataclass(frozen=True, eq=False)
class NumberScaling:
    """The scales of all relations, by relation id; those that carry entities have offset 0 and width 1 and are never
    asked.
    """

    offset: Floats  # (relations,) the least value met
    width: Floats  # (relations,) greatest minus least value met; above 0
    is_log: NDArray[np.bool_]  # (relations,) true where `scale` works on logarithms
    log_offset: Floats  # (relations,) as offset, of the logarithms; 0 where is_log is false
    log_width: Floats  # (relations,) as width, of the logarithms; 1 where is_log is false
    expectation: Expectation | None = None  # of log scales, fitted once training is over; None: means are answers

    @classmethod
    def fit(
        cls,
        tables: Sequence[FactTable],
        vocabulary: Vocabulary,
        log_relations: Iterable[str] = (),
        checked: Sequence[FactTable] = (),
    ) -> NumberScaling:
        """Fitted on `tables`. `checked` are further splits: a value no log scale can take is refused there too, not at
        test time.
        """
        is_log = _log_flags(vocabulary, log_relations)
        _refuse_non_positive([*tables, *checked], vocabulary, is_log)
        offset, width = _range(tables, vocabulary)
        log_offset, log_width = _range(tables, vocabulary, is_log)
        found = cls(offset, width, is_log, log_offset, log_width)
        for table in checked:
            found._refuse_far(*_numbers(table, vocabulary), vocabulary)
        return found

    def _refuse_far(self, relation: AnyIds, value: Floats, vocabulary: Vocabulary) -> None:
        """One wrong digit group in a test fact must not end an evaluation hours later."""
        with np.errstate(over="ignore", invalid="ignore"):
            unmeasured = np.flatnonzero(~(np.abs(self.linear(relation, value)) <= _FURTHEST_MEASURED))
        far = np.union1d(self.unreadable(relation, value), unmeasured)
        if len(far):
            index = int(relation[far[0]])
            low, high = float(self.offset[index]), float(self.offset[index] + self.width[index])
            raise DataError(
                f"the relation {vocabulary.relations[index].name!r} has the value {float(value[far[0]])!r}, too far "
                f"from those that are learned from, {low:g} to {high:g}, to be told from infinity.",
                advice="Correct or remove it; hynt data stats GRAPH --outliers lists such numbers.",
            )

    def unreadable(self, relation: AnyIds, value: Floats) -> Ids:
        """Which of (n,) numbers no model can read: those too far out, and on a log scale those not above 0."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.flatnonzero(~(np.abs(self.scale(relation, value)) <= FURTHEST))

    def scale(self, relation: AnyIds, value: Floats) -> Floats:
        """(n,) values as a model sees them; `relation` (n,) holds their relation ids."""
        logs = np.log(np.where(self.is_log[relation], value, 1.0))
        scaled = (logs - self.log_offset[relation]) / self.log_width[relation]
        return np.where(self.is_log[relation], scaled, self.linear(relation, value))

    def unscale(self, relation: AnyIds, scaled: Floats) -> Floats:
        """(n,) scaled values back in the units of the graph."""
        logs = np.where(self.is_log[relation], scaled, 0.0) * self.log_width[relation] + self.log_offset[relation]
        plain = scaled * self.width[relation] + self.offset[relation]
        return np.where(self.is_log[relation], np.exp(logs), plain)

    def expected(self, relation: AnyIds, value: Floats) -> Floats:
        """(n,) the means beside answers (n,), in the units of the graph: what squared errors are measured from."""
        if self.expectation is None:
            return value
        return np.where(self.is_log[relation], self.expectation(relation, value), value)

    def plain(self) -> NumberScaling:
        """The same ranges without any log scale."""
        nothing = np.zeros(len(self.offset))
        return NumberScaling(self.offset, self.width, nothing.astype(np.bool_), nothing, nothing + 1.0)

    def linear(self, relation: AnyIds, value: Floats) -> Floats:
        """(n,) values on the plain min–max scale, whatever scale the model sees."""
        result: Floats = (value - self.offset[relation]) / self.width[relation]
        return result

    def to_mapping(self, vocabulary: Vocabulary) -> dict[str, dict[str, float]]:
        """By relation name, for JSON. Python writes floats in JSON so that they read back bit for bit."""
        found: dict[str, dict[str, float]] = {}
        for index in np.flatnonzero(vocabulary.relation_is_number).tolist():
            entry = {"offset": float(self.offset[index]), "width": float(self.width[index])}
            if self.is_log[index]:
                entry |= {"log_offset": float(self.log_offset[index]), "log_width": float(self.log_width[index])}
            found[vocabulary.relations[index].name] = entry
        return found

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], vocabulary: Vocabulary, where: str = "scaling") -> NumberScaling:
        """What `to_mapping` wrote. A relation that is missing or unknown, or a number that cannot be one, is a
        `DataError`.
        """
        names = [relation.name for relation in vocabulary.relations if relation.kind == "number"]
        if set(names) != set(mapping):
            odd = sorted(set(names) ^ set(mapping))[0]
            raise DataError(
                f"the scaling and the vocabulary disagree about the number relation {odd!r}.",
                where=where,
                advice="They belong to different runs; take both from one run folder.",
            )
        count = vocabulary.relation_count
        scaling = cls(np.zeros(count), np.ones(count), np.zeros(count, np.bool_), np.zeros(count), np.ones(count))
        for name in names:
            index, entry = vocabulary.relation_ids[name], mapping[name]
            is_log = isinstance(entry, dict) and "log_width" in entry
            keys = {"offset", "width"} | ({"log_offset", "log_width"} if is_log else set())
            if not isinstance(entry, dict) or set(entry) != keys or not all(_is_fine(key, entry[key]) for key in keys):
                raise DataError(
                    f"expected finite numbers {', '.join(sorted(keys))} with widths above 0, found {repr(entry)[:99]}.",
                    where=f"{where}.{name}",
                    advice="Take the file from the run again.",
                )
            for key in keys:
                getattr(scaling, key)[index] = float(entry[key])
            scaling.is_log[index] = len(keys) == 4
        return scaling


def _is_fine(key: str, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max and (not key.endswith("width") or value > 0)  # type: ignore[arg-type,operator]


def _log_flags(vocabulary: Vocabulary, names: Iterable[str]) -> NDArray[np.bool_]:
    flags = np.zeros(vocabulary.relation_count, dtype=np.bool_)
    numeric = [relation.name for relation in vocabulary.relations if relation.kind == "number"]
    for name in names:
        if name not in numeric:
            what = f"{name!r} is not a relation with numbers, so it has no log scale."
            raise UsageError(what, advice=advice_on(name, numeric))
        flags[vocabulary.relation_ids[name]] = True
    return flags


def _numbers(table: FactTable, vocabulary: Vocabulary) -> tuple[AnyIds, Floats]:
    """Relation ids and values of all numbers of a table: tails, then qualifier values."""
    relation = np.concatenate([table.relation, table.qualifier_relation])
    value = np.concatenate([table.tail_number, table.qualifier_number])
    keep = vocabulary.relation_is_number[relation]
    return relation[keep], value[keep]


def _refuse_non_positive(tables: Sequence[FactTable], vocabulary: Vocabulary, is_log: NDArray[np.bool_]) -> None:
    for table in tables if is_log.any() else ():
        relation, value = _numbers(table, vocabulary)
        wrong = np.flatnonzero(is_log[relation] & (value <= 0))
        if len(wrong):
            name = vocabulary.relations[relation[wrong[0]]].name
            raise DataError(
                f"the relation {name!r} cannot have a log scale: it has the value {float(value[wrong[0]])!r}.",
                advice="Leave it on the linear scale.",
            )


def _range(
    tables: Sequence[FactTable], vocabulary: Vocabulary, is_log: NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """Offset and width by relation, (relations,) each. With `is_log`, of logarithms, and 0 and 1 where it is false."""
    low = np.full(vocabulary.relation_count, np.inf)
    high = np.full(vocabulary.relation_count, -np.inf)
    for table in tables:
        relation, value = _numbers(table, vocabulary)
        if is_log is not None:
            relation, value = relation[is_log[relation]], np.log(value[is_log[relation]])
        np.minimum.at(low, relation, value)
        np.maximum.at(high, relation, value)
    met = low <= high
    offset = np.where(met, low, 0.0)
    with np.errstate(over="ignore"):
        width = np.where(met, high, 1.0) - offset
    if not np.isfinite(width).all():
        name = vocabulary.relations[int(np.flatnonzero(~np.isfinite(width))[0])].name
        raise DataError(f"the values of {name!r} lie too far apart to scale.", advice="Correct its extreme values.")
    alone = np.maximum(np.abs(offset), 1.0) if is_log is None else 1.0
    return offset, np.where(width > 0, width, alone)
