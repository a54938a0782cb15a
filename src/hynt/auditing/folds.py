"""Dealing facts into folds, so that each is judged by a model that did not see it. No torch here.

A fold's model learns from all facts but the fold's own. It can judge a fact only if it has met the fact's entities and
relations elsewhere, so facts are dealt such that every name stays in the training part of every fold. What stands
in a single place cannot be held out at all: it stays in training and is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hynt.errors import UsageError
from hynt.graph.content_hash import Hashes, distinct, mixed
from hynt.graph.fact_table import FactTable
from hynt.graph.splitting import names_used
from hynt.graph.vocabulary import Flags, Ids, Vocabulary

FACT = "fact"
_PARTS = ("head", "relation", "tail")
_ROUNDS = 64
"""Tries to deal again; what is left after them, hardly ever anything, stays in training."""


@dataclass(frozen=True, eq=False)
class Folds:
    """Where each of `n` facts went."""

    count: int
    fold: Ids  # (n,) its fold; read only where is_judged or is_held
    is_judged: Flags  # (n,) whether it can be judged, and was to be
    is_held: Flags  # (n,) whether it is kept from the model of its fold
    needs_fold: Flags  # (n,) a model of all training facts has seen it: only that of its fold can judge it
    missing: Ids  # (n,) the name that would be missing, read only where a fact was to be judged and is not

    def training(self, in_training: Flags, fold: int) -> Flags:
        """(n,) what the model of a fold learns from."""
        return np.asarray(in_training & ~(self.is_held & (self.fold == fold)))


def fold_parts(text: str) -> tuple[str, ...]:
    """What keeps facts together, from `fact`, or some of head, relation and tail with commas between."""
    names = tuple(part.strip() for part in text.split(","))
    if names == (FACT,):
        return ()
    if not set(names) <= set(_PARTS) or len(set(names)) < len(names):
        raise UsageError(
            f"folds cannot be made by {text!r}.",
            where="--fold-by",
            advice="Say fact, or some of head, relation and tail: head,relation keeps a time series together.",
        )
    return tuple(part for part in _PARTS if part in names)


def name_label(name: int, entities: Sequence[str], relations: Sequence[str]) -> str:
    """The name that `Folds.missing` means: relations are counted after the entities."""
    return entities[name] if name < len(entities) else relations[name - len(entities)]


def deal(
    table: FactTable,
    vocabulary: Vocabulary,
    in_training: Flags,
    is_judged: Flags,
    count: int,
    together: Sequence[str] = (),
    seed: int = 0,
) -> Folds:
    """Deals the facts where `is_judged`, (n,), into `count` folds; `in_training`, (n,), are those that models learn
    from. Facts that agree in the parts `together` stay together; without any, only a repeated fact does.

    Which fold depends on the fact and the seed alone, but for what is moved to keep every name in training.
    """
    if count < 2:
        raise UsageError(f"{count} is not a number of folds.", where="--folds", advice="Make at least 2.")
    prints = vocabulary.fingerprints
    hashes = prints.parts(table, together) if together else prints.facts(table)
    first, group = distinct(hashes)
    drawn = _drawn(hashes[first], seed)
    wanted = np.zeros(len(first), dtype=np.bool_)
    wanted[group[is_judged]] = True
    held = in_training & wanted[group]  # a fact that stands in another split as well is no secret there

    uses = _Uses.of(table, vocabulary)
    of_group, stays, reason = _FactGroups(uses.within(in_training), group, held, drawn, count).dealt()
    fold, is_held = of_group[group], held & ~stays[group]
    learned = np.zeros(len(first), dtype=np.bool_)
    learned[group[in_training]] = True
    found = Folds(count, fold, is_judged & ~(stays & learned)[group], is_held, learned[group], reason[group])
    return _without_unmet(found, uses, in_training)


def _without_unmet(folds: Folds, uses: _Uses, in_training: Flags) -> Folds:
    """Takes off facts of other splits whose names the judging model has never met."""
    judged, missing = folds.is_judged.copy(), folds.missing.copy()
    asked = folds.is_judged & ~in_training
    whole = asked & ~folds.needs_fold
    by_fold = [asked & folds.needs_fold & (folds.fold == fold) for fold in range(folds.count)]
    parts = [(rows, folds.training(in_training, fold)) for fold, rows in enumerate(by_fold) if rows.any()]
    for rows, learned in [*parts, (whole, in_training)]:
        met = np.zeros(uses.names, dtype=np.bool_)
        met[uses.name[learned[uses.row]]] = True
        unmet = rows[uses.row] & ~met[uses.name]
        judged[uses.row[unmet]], missing[uses.row[unmet]] = False, uses.name[unmet]
    return replace(folds, is_judged=judged, missing=missing)


def _drawn(hashes: Hashes, seed: int) -> NDArray[np.uint64]:
    """(n,) a number for each hash that another seed makes another."""
    lanes = np.array([[seed, seed ^ 0x2545F491]], dtype=np.int64).astype(np.uint64)
    return np.asarray(mixed(hashes ^ mixed(lanes))[:, 1])


@dataclass(frozen=True, eq=False)
class _Uses:
    """Every use of an entity or a relation by a fact."""

    row: Ids
    name: Ids  # relations are counted after the entities
    names: int

    @classmethod
    def of(cls, table: FactTable, vocabulary: Vocabulary) -> _Uses:
        return cls(*names_used(table, vocabulary), vocabulary.entity_count + vocabulary.relation_count)

    def within(self, rows: Flags) -> _Uses:
        chosen = rows[self.row]
        return _Uses(self.row[chosen], self.name[chosen], self.names)


class _FactGroups:
    """Facts that stay together, dealt as one."""

    def __init__(self, uses: _Uses, group: Ids, held: Flags, drawn: NDArray[np.uint64], count: int) -> None:
        self.count, self.drawn = count, drawn
        movable = held[uses.row]
        self.always = np.zeros(uses.names, dtype=np.bool_)  # (names,) met by every fold's model
        self.always[uses.name[~movable]] = True
        pairs = np.unique(np.stack([group[uses.row[movable]], uses.name[movable]], axis=1), axis=0)
        self.group, self.name = pairs[:, 0], pairs[:, 1]
        self.names = uses.names

    def dealt(self) -> tuple[Ids, Flags, Ids]:
        """(groups,) the fold, whether the group stays in training instead, and the name that it stays for."""
        fold = (self.drawn % np.uint64(self.count)).astype(np.int64)
        stays, reason = np.zeros(len(fold), np.bool_), np.zeros(len(fold), np.int64)
        alone = (np.bincount(self.name, minlength=self.names) == 1) & ~self.always
        self._keep(alone[self.name], stays, reason)
        for turn in range(_ROUNDS):
            crowded = self._crowded(fold)
            if not crowded.any():
                return fold, stays, reason
            moving = self._one_of_each(np.flatnonzero(crowded[self.name]), turn)
            step = 1 + (mixed(_lanes(self.drawn[moving], turn))[:, 0] % np.uint64(self.count - 1)).astype(np.int64)
            fold[moving] = (fold[moving] + step) % self.count
        self._keep(self._crowded(fold)[self.name], stays, reason)
        return fold, stays, reason

    def _keep(self, chosen: Flags, stays: Flags, reason: Ids) -> None:
        """Leaves the groups of these pairs in training, and their names are met by all from now on."""
        stays[self.group[chosen]] = True
        reason[self.group[chosen]] = self.name[chosen]
        self.always[self.name[stays[self.group]]] = True
        left = ~stays[self.group]
        self.group, self.name = self.group[left], self.name[left]

    def _crowded(self, fold: Ids) -> Flags:
        """(names,) those whose groups are all in one fold: its model would not meet them."""
        least, most = np.full(self.names, self.count), np.full(self.names, -1)
        np.minimum.at(least, self.name, fold[self.group])
        np.maximum.at(most, self.name, fold[self.group])
        return np.asarray((least == most) & ~self.always)

    def _one_of_each(self, pairs: Ids, turn: int) -> Ids:
        """One group of each name, another one at each turn."""
        order = mixed(_lanes(self.drawn[self.group[pairs]], turn))[:, 1]
        by_name = pairs[np.lexsort((order, self.name[pairs]))]
        _, first = np.unique(self.name[by_name], return_index=True)
        return np.unique(self.group[by_name[first]])


def _lanes(drawn: NDArray[np.uint64], turn: int) -> Hashes:
    return np.stack([drawn, drawn ^ np.uint64(turn + 1)], axis=1)
