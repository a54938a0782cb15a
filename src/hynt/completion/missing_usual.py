"""The qualifiers that a relation's facts usually carry: a question without them would ask for another kind of fact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hynt.graph.components import component_starts
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.question_keys import question_keys

OF_DATES, OF_OTHERS = 1 / 3, 3 / 4
"""The share of a relation's heads that must carry the very same qualifiers for a question to be asked with them.

When a fact holds is what a question has to say, so a list of dates need not be very common. Any other qualifier may
be part of the answer (the length of a border, the height of the lowest point), unless nearly all share it.
"""

Ids = NDArray[np.int64]


def usual_qualifiers(facts: FactTable, relation: int, graph: KnowledgeGraph) -> FactTable:
    """One fact of the relation with its usual qualifiers, or with none where no list of them is usual.

    The list, order aside, that the most heads carry; of equally common ones the shorter, then the one met first. Head
    and tail of the fact mean nothing.
    """
    own = facts.take(np.flatnonzero(facts.relation == relation).astype(np.int64))
    key = _qualifier_keys(own, graph.vocabulary.relation_is_number)
    _, first, back = np.unique(key, axis=0, return_index=True, return_inverse=True)
    heads = int(own.head.max()) + 1
    pairs = np.unique(back.reshape(-1).astype(np.int64) * heads + own.head)
    carried = np.bincount(pairs // heads, minlength=len(first)) / len(np.unique(own.head))
    lists = own.take(first.astype(np.int64))
    is_date = np.array([one.unit == DATE_UNIT for one in graph.relations], dtype=np.bool_)
    others = np.bincount(lists.qualifier_owner()[~is_date[lists.qualifier_relation]], minlength=len(lists))
    usual = np.flatnonzero(carried >= np.where(others > 0, OF_OTHERS, OF_DATES))
    if not len(usual):
        return _bare(own)
    best = np.lexsort((first[usual], lists.qualifier_counts()[usual], -carried[usual]))[0]
    return lists.take(usual[best : best + 1].astype(np.int64))


def _qualifier_keys(own: FactTable, relation_is_number: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(n, 2) equal where the qualifiers are, whatever head and tail are."""
    same = FactTable(
        np.zeros_like(own.head),
        own.relation,
        np.zeros_like(own.tail_entity),
        np.zeros_like(own.tail_number),
        own.tail_literal,
        own.offsets,
        own.qualifier_relation,
        own.qualifier_entity,
        own.qualifier_number,
        own.qualifier_literal,
    )
    keys: NDArray[np.uint64] = question_keys(same, relation_is_number)[component_starts(same)[:-1]]
    return keys


def _bare(own: FactTable) -> FactTable:
    first = own.take(np.zeros(1, dtype=np.int64))
    none = slice(0, 0)
    return FactTable(
        first.head,
        first.relation,
        first.tail_entity,
        first.tail_number,
        first.tail_literal,
        np.zeros(2, dtype=np.int64),
        first.qualifier_relation[none],
        first.qualifier_entity[none],
        first.qualifier_number[none],
        first.qualifier_literal[none],
    )
