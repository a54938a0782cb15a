"""What a model that reads observed facts is given: all of them for an open question, and for a stored fact all but
those of its own fold, so that nothing is judged with itself in view.

Facts are dealt into folds by their content: a fact that is stored twice is left out twice, and facts that come or go
move no other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.graph.changes import fact_hashes
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Flags, Ids, Vocabulary
from hynt.models.combination import Combination
from hynt.models.contract import Model
from hynt.models.trivial import statistic

if TYPE_CHECKING:
    from hynt.runs.opening import LoadedRun

FOLDS = 10

NODES_KEPT = 250_000
"""Entities and relations whose states are kept for several folds at a time; a larger graph keeps those of one."""


@dataclass(frozen=True, eq=False)
class ObservedFacts:
    """Facts that questions are asked of. A model keeps what it makes of them for as long as this is kept."""

    table: FactTable
    facts: FactTensors
    vocabulary: Vocabulary
    scaling: NumberScaling
    _left: OrderedDict[frozenset[int], ObservedFacts] = field(default_factory=OrderedDict)

    @classmethod
    def of(
        cls, table: FactTable, vocabulary: Vocabulary, scaling: NumberScaling, device: torch.device
    ) -> ObservedFacts:
        return cls(table, FactTensors.from_table(table, vocabulary, scaling, device), vocabulary, scaling)

    @cached_property
    def fold(self) -> Ids:
        """(n,) the fold of each fact."""
        return folds_of(self.table, self.vocabulary)

    def where(self, keep: Flags) -> ObservedFacts:
        """Those where `keep` (n,) is true."""
        return ObservedFacts.of(self.table.where(keep), self.vocabulary, self.scaling, self.facts.device)

    def without(self, folds: Collection[int]) -> ObservedFacts:
        """All but these folds. The last few are kept with their states, as many as memory may be spent on."""
        chosen = frozenset(folds)
        if not chosen:
            return self
        if chosen not in self._left:
            nodes = self.vocabulary.entity_count + self.vocabulary.relation_count
            while len(self._left) >= max(1, min(FOLDS, NODES_KEPT // nodes)):
                self._left.popitem(last=False)
            self._left[chosen] = self.where(~np.isin(self.fold, list(chosen)))
        self._left.move_to_end(chosen)
        return self._left[chosen]


def folds_of(table: FactTable, vocabulary: Vocabulary) -> Ids:
    """(n,) the fold of each fact."""
    return (fact_hashes(table, vocabulary)[:, 1] % np.uint64(FOLDS)).astype(np.int64)


def by_fold(loaded: LoadedRun, folds: Ids | None) -> Iterator[tuple[Ids | None, LoadedRun]]:
    """(which, run) for each fold that is named in `folds` (n,): the places where it is named, and the run that observes
    all other folds. Once with all places, and the run as it is, where its model reads no observed facts or `folds` is
    None.
    """
    if folds is None or loaded.observed is None:
        yield None, loaded
        return
    for fold in np.unique(folds).tolist():
        yield np.flatnonzero(folds == fold).astype(np.int64), without_folds(loaded, [fold])


def without_folds(loaded: LoadedRun, folds: Collection[int]) -> LoadedRun:
    """The run, which observes nothing of these folds, where its model reads observed facts, and whose statistics,
    where it answers with some, know none of their training facts.
    """
    if not folds:
        return loaded
    found = _without_counting(loaded, folds)
    return found if loaded.observed is None else replace(found, observed=loaded.observed.without(folds))


def without_facts(loaded: LoadedRun, folds: Collection[int], gone: Callable[[FactTable], Flags]) -> LoadedRun:
    """As `without_folds`, and without the facts that are `gone`."""
    known, vocabulary = loaded.known_facts(), loaded.graph.vocabulary
    found = counting(loaded, known.where(~gone(known) & ~np.isin(folds_of(known, vocabulary), list(folds))))
    if loaded.observed is None:
        return found
    rest = loaded.observed.without(folds)
    return replace(found, observed=rest.where(~gone(rest.table)))


_COUNTED: WeakKeyDictionary[Combination, OrderedDict[frozenset[int], Combination]] = WeakKeyDictionary()
"""Of a run's model, the same with the statistics of all but some folds: the last few that were asked for."""


def _without_counting(loaded: LoadedRun, folds: Collection[int]) -> LoadedRun:
    """The run, whose statistics, where it answers with some, know nothing of the training facts of these folds."""
    model, chosen = loaded.model, frozenset(folds)
    if not isinstance(model, Combination) or len(model.members) == model.trained:
        return loaded
    kept = _COUNTED.setdefault(model, OrderedDict())
    if chosen not in kept:
        learned = loaded.known_facts()
        rest = learned.where(~np.isin(folds_of(learned, loaded.graph.vocabulary), list(chosen)))
        while len(kept) >= FOLDS:
            kept.popitem(last=False)
        kept[chosen] = cast(Combination, counting(loaded, rest).model)
    return replace(loaded, model=kept[chosen])


def counting(loaded: LoadedRun, table: FactTable) -> LoadedRun:
    """The run, whose statistics, where it answers with some, are of these facts."""
    model = loaded.model
    if not isinstance(model, Combination) or len(model.members) == model.trained:
        return loaded
    facts = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, model.table.device)
    named = zip(model.weights.members, cast(list[Model], list(model.members)), strict=True)
    members = [
        member if place < model.trained else cast(Model, statistic(name, facts))
        for place, (name, member) in enumerate(named)
    ]
    made = Combination(model.sizes, members, model.weights, model.answers, model.trained, model.ranges)
    return replace(loaded, model=made.to(model.table.device).eval())


def observing(loaded: LoadedRun, table: FactTable) -> LoadedRun:
    """The run, which observes these facts; as it is where its model reads no observed facts."""
    if loaded.observed is None:
        return loaded
    device = loaded.observed.facts.device
    return replace(loaded, observed=ObservedFacts.of(table, loaded.graph.vocabulary, loaded.scaling, device))


def stored_folds(loaded: LoadedRun, table: FactTable) -> Ids | None:
    """(n,) the fold of each of these stored facts; None where the run's model reads no observed facts."""
    return None if loaded.observed is None else folds_of(table, loaded.graph.vocabulary)
