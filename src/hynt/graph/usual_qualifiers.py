"""Which qualifiers the facts of a relation nearly always carry, and which of them a question leaves out.

Every life expectancy has a date. Asked without one, a question is like none that was held out, and what was measured
there promises nothing about it. No torch here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hynt.graph.arrays import Flags, Floats, Ids
from hynt.graph.components import RELATION
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.vocabulary import Vocabulary

NEARLY_ALWAYS = 0.95
"""The share of a relation's facts from which on a qualifier belongs to them."""
FEWEST = 20
"""Facts from which on a relation has a habit."""


@dataclass(frozen=True, eq=False)
class UsualQualifiers:
    """`p` pairs of a relation and the relation of a qualifier that its facts nearly always carry."""

    relations: int  # of the vocabulary
    key: Ids  # (p,) relation × relations + qualifier, ascending
    share: Floats  # (p,) of the relation's facts
    facts: Ids  # (p,) how many facts the relation has
    common: tuple[float, ...]  # (p,) the commonest value, an entity's id or a number; of equally common ones the last

    @classmethod
    def of(cls, tables: Sequence[FactTable], vocabulary: Vocabulary) -> UsualQualifiers:
        """As these facts have it."""
        table, width = concatenate(list(tables)), vocabulary.relation_count
        owner = table.qualifier_owner()
        pair = table.relation[owner].astype(np.int64) * width + table.qualifier_relation
        once = np.unique(np.stack([owner, pair]), axis=1)[1] if len(owner) else pair
        key, count = np.unique(once, return_counts=True)
        facts = np.bincount(table.relation, minlength=width)[key // width]
        usual = (facts >= FEWEST) & (count >= NEARLY_ALWAYS * facts)
        key, count, facts = key[usual], count[usual], facts[usual]
        is_number = vocabulary.relation_is_number[table.qualifier_relation]
        value = np.where(is_number, table.qualifier_number, table.qualifier_entity)
        order = np.argsort(pair, kind="stable")
        starts, ends = (np.searchsorted(pair[order], key, side=side) for side in ("left", "right"))
        common = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            values, times = np.unique(value[order[start:end]], return_counts=True)
            common.append(float(values[len(times) - 1 - np.argmax(times[::-1])]))
        return cls(width, key, count / np.maximum(facts, 1), facts.astype(np.int64), tuple(common))

    def lacking(self, table: FactTable, row: int, position: int) -> Ids:
        """The pairs, by number, that the question in a row lacks which hides this position."""
        if position == RELATION:
            return np.zeros(0, dtype=np.int64)
        own = np.flatnonzero(self.key // self.relations == int(table.relation[row])).astype(np.int64)
        given = table.qualifier_relation[int(table.offsets[row]) : int(table.offsets[row + 1])]
        return own[~np.isin(self.key[own] % self.relations, given)]

    def is_unusual(self, table: FactTable, rows: Ids, position: Ids) -> Flags:
        """(n,) whether the questions in these rows lack any, which hide these positions (n,)."""
        if not len(self.key):
            return np.zeros(len(rows), dtype=np.bool_)
        wanted = np.bincount(self.key // self.relations, minlength=self.relations)[table.relation[rows]]
        taken = table.take(rows)
        owner = taken.qualifier_owner()
        pair = taken.relation[owner].astype(np.int64) * self.relations + taken.qualifier_relation
        usual = np.isin(pair, self.key)
        met = np.unique(owner[usual] * np.int64(self.relations) + taken.qualifier_relation[usual])
        count = np.bincount(met // self.relations, minlength=len(rows))
        return np.asarray((position != RELATION) & (count < wanted))
