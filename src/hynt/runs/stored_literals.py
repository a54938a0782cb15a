"""Numbers as the graph spells them, for models that take each literal for a token of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable, concatenate
from hynt.runs.opening import LoadedRun
from hynt.runs.training_data import training_splits


def with_stored_literals(asked: FactTable, loaded: LoadedRun) -> FactTable:
    """The same facts; a number that training holds under the same relation gets the spelling it has there.

    A person writes 80 where the file has "+80.0": the same number, but another token.
    """
    if loaded.literals is None:
        return asked
    if loaded not in _KNOWN:
        trained_on = concatenate([loaded.graph.split(name) for name in training_splits(loaded.settings)])
        _KNOWN[loaded] = _Spellings.of(trained_on)
    known = _KNOWN[loaded]
    return replace(
        asked,
        tail_literal=known.spelt(asked.relation, asked.tail_number, asked.tail_literal),
        qualifier_literal=known.spelt(asked.qualifier_relation, asked.qualifier_number, asked.qualifier_literal),
    )


@dataclass(frozen=True, eq=False)
class _Spellings:
    """The numbers of some facts, each with the first of its spellings."""

    relation: NDArray[np.int32]  # (n,) ascending
    value: NDArray[np.float64]  # (n,) ascending within a relation
    literal: pa.StringArray  # (n,)

    @classmethod
    def of(cls, facts: FactTable) -> _Spellings:
        literal = pa.concat_arrays([facts.tail_literal, facts.qualifier_literal])
        numbers = np.flatnonzero(literal.is_valid().to_numpy(zero_copy_only=False))
        relation = np.concatenate([facts.relation, facts.qualifier_relation])[numbers]
        value = np.concatenate([facts.tail_number, facts.qualifier_number])[numbers] + 0.0  # -0.0 is 0.0
        order = np.lexsort((value, relation))  # stable: the first of equal ones stays the first
        relation, value = relation[order], value[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (relation[1:] != relation[:-1]) | (value[1:] != value[:-1])
        return cls(relation[first], value[first], literal.take(pa.array(numbers[order][first])))

    def spelt(self, of: NDArray[np.int32], numbers: NDArray[np.float64], written: pa.StringArray) -> pa.StringArray:
        """The spellings of numbers (m,) under relations (m,); as they are `written` where training has none."""
        if not len(self.value) or not len(of):
            return written
        wanted = np.rec.fromarrays([of, numbers + 0.0])
        at = np.minimum(np.searchsorted(np.rec.fromarrays([self.relation, self.value]), wanted), len(self.value) - 1)
        found = (self.relation[at] == of) & (self.value[at] == numbers)
        found &= written.is_valid().to_numpy(zero_copy_only=False)
        return pc.if_else(pa.array(found), self.literal.take(pa.array(at)), written)


_KNOWN: WeakKeyDictionary[LoadedRun, _Spellings] = WeakKeyDictionary()
"""Made once for a run."""
