"""What the numbers of a relation can be, as far as training says: never below zero, always whole.

A population of −23 million or 2.4 airports is no answer. What a model says is brought back to what can be where it is
shown; metrics are read before that, so that a protocol's errors stay the model's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hynt.graph.arrays import Floats, Ids
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Vocabulary

FEWEST = 10
"""Training numbers from which on what all of them are is taken for what they must be."""
_WHOLE = 2.0**53
"""Doubles from here on are all whole, and say nothing by it."""


@dataclass(frozen=True, eq=False)
class PossibleNumbers:
    """By relation, what training has never met otherwise. Dates have no such rule: there are years before the first."""

    never_negative: NDArray[np.bool_]  # (relations,)
    whole: NDArray[np.bool_]  # (relations,)

    @classmethod
    def of(cls, vocabulary: Vocabulary, tables: Sequence[FactTable]) -> PossibleNumbers:
        """From the facts that a run learned from."""
        found = cls(*(np.zeros(vocabulary.relation_count, dtype=np.bool_) for _ in range(2)))
        numbers = sorted_numbers(concatenate(list(tables)), vocabulary.relation_is_number)
        if len(numbers.value):
            is_date = np.array([vocabulary.relations[one].unit == DATE_UNIT for one in numbers.present.tolist()])
            enough = (numbers.size >= FEWEST) & ~is_date
            is_whole = (numbers.value == np.rint(numbers.value)) & (np.abs(numbers.value) < _WHOLE)
            found.never_negative[numbers.present] = enough & (numbers.value[numbers.start] >= 0)
            found.whole[numbers.present] = enough & np.logical_and.reduceat(is_whole, numbers.start)
        return found

    def nearest(self, relation: Ids, value: Floats) -> Floats:
        """(n,) the possible numbers nearest to these (n,)."""
        value = np.where(self.never_negative[relation], np.maximum(value, 0.0), value)
        return np.where(self.whole[relation], np.rint(value), value)

    def interval(self, relation: Ids, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(n,) the ends of intervals without what cannot be; whole ones lie further out, so that nothing is lost."""
        whole, above = self.whole[relation], self.never_negative[relation]
        low, high = np.where(whole, np.floor(low), low), np.where(whole, np.ceil(high), high)
        return np.where(above, np.maximum(low, 0.0), low), np.where(above, np.maximum(high, 0.0), high)
