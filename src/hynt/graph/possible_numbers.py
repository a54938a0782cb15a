"""What a relation's numbers can be, as training has met them: never below zero, always whole.

A population of −23 million or 2.4 airports is no answer. What a model says is brought back to what can be where it is
shown; metrics are read before that, so that a protocol's errors stay the model's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Floats, Ids, Vocabulary

FEWEST_TO_JUDGE = 10
"""The least number of training numbers whose common traits are taken for rules. Numbers without a unit are counts as
long as all are whole, however few.
"""
_WHOLE = 2.0**53
"""Doubles from here on are all whole, and say nothing by it."""


@dataclass(frozen=True, eq=False)
class PossibleNumbers:
    """By relation, what training has never met otherwise. Dates have no such rule: there are years before the first."""

    never_negative: NDArray[np.bool_]  # (relations,)
    whole: NDArray[np.bool_]  # (relations,)
    of_hundred: NDArray[np.bool_]  # (relations,) percentages of which the greatest is 100: shares of something

    @classmethod
    def of(cls, vocabulary: Vocabulary, tables: Sequence[FactTable]) -> PossibleNumbers:
        """From the facts that a run learned from."""
        found = cls(*(np.zeros(vocabulary.relation_count, dtype=np.bool_) for _ in range(3)))
        numbers = sorted_numbers(concatenate(list(tables)), vocabulary.relation_is_number)
        if len(numbers.value):
            enough = (numbers.size >= FEWEST_TO_JUDGE) & ~vocabulary.relation_is_date[numbers.present]
            units = np.array([vocabulary.relations[one].unit for one in numbers.present.tolist()], dtype=np.object_)
            in_percent, counts = units == "percent", units == ""
            greatest = numbers.value[numbers.start + numbers.size - 1]
            is_whole = (numbers.value == np.rint(numbers.value)) & (np.abs(numbers.value) < _WHOLE)
            found.never_negative[numbers.present] = enough & (numbers.value[numbers.start] >= 0)
            found.of_hundred[numbers.present] = enough & in_percent & (greatest == 100)
            found.whole[numbers.present] = (enough | counts) & np.logical_and.reduceat(is_whole, numbers.start)
        return found

    def nearest(self, relation: Ids, value: Floats) -> Floats:
        """(n,) the possible numbers nearest to these (n,)."""
        value = np.where(self.never_negative[relation], np.maximum(value, 0.0), value)
        value = np.where(self.of_hundred[relation], np.minimum(value, 100.0), value)
        return np.where(self.whole[relation], np.rint(value), value)

    def interval(self, relation: Ids, value: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(n,) the ends of intervals around possible answers (n,), without what cannot be: whole ones are the outermost
        whole numbers inside, so that nothing is lost and nothing promised that was not.
        """
        whole, above = self.whole[relation], self.never_negative[relation]
        low = np.where(whole, np.minimum(np.ceil(low), value), low)
        high = np.where(whole, np.maximum(np.floor(high), value), high)
        low, high = np.where(above, np.maximum(low, 0.0), low), np.where(above, np.maximum(high, 0.0), high)
        below = np.where(self.of_hundred[relation], 100.0, np.inf)
        return np.minimum(low, below), np.minimum(high, below)
