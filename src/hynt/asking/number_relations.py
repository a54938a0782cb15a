"""Which relation has this number? Each one is asked with the number on its own scale, where it is within reach."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hynt.asking.columns import AskedFacts
from hynt.asking.question import AskedFact
from hynt.asking.written_numbers import number_for
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import UsageError
from hynt.graph.arrays import Ids
from hynt.graph.components import FIRST_QUALIFIER, RELATION
from hynt.graph.fact import Number
from hynt.graph.knowledge_graph import KnowledgeGraph

REACH = 1.0
"""In widths of a relation's training range: a number further outside it is none that the model can judge."""


def within_reach(asked: AskedFact, scaling: NumberScaling) -> AskedFact:
    """The question without the relations whose training numbers are far from the one given.

    2024 as a radius in metres is twelve orders of magnitude beyond all radii seen. The model has learned nothing about
    such numbers, and what it says of them is noise, or no number at all.
    """
    if asked.tried is None:
        return asked
    table = asked.table
    if asked.position == RELATION:
        value = table.tail_number
    else:
        value = table.qualifier_number[table.offsets[:-1] + (asked.position - 3) // 2]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = scaling.scale(asked.tried, value)
    rows = np.flatnonzero((scaled >= -REACH) & (scaled <= 1 + REACH)).astype(np.int64)
    if not len(rows):
        raise UsageError(
            "the number is far outside the training range of every relation.",
            where=asked.place,
            advice="Check its unit; a number without one is read in the unit of each relation.",
        )
    return replace(asked, table=table.take(rows), tried=asked.tried[rows])


# Relations hidden beside numbers, for many questions at once: a row for each relation that a number can belong to.


class RelationsOfUnits:
    """Which relations a number in some unit can belong to, where it need not be converted for any of them."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._known: dict[str, Ids | None] = {}

    def of(self, unit: str) -> Ids | None:
        """The relations, ascending; None where one of them has another unit, so that each needs a look of its own."""
        if unit not in self._known:
            self._known[unit] = self._found(unit)
        return self._known[unit]

    def _found(self, unit: str) -> Ids | None:
        found = []
        for number, relation in enumerate(self._graph.relations):
            if relation.kind != "number":
                continue
            try:
                number_for(relation, Number(1.0, "1", unit), "")
            except UsageError:
                continue
            if unit not in ("", "1", relation.unit):
                return None
            found.append(number)
        return np.array(found, dtype=np.int64) if found else None


@dataclass(frozen=True, eq=False)
class Tried:
    """Questions with a row for each relation, and which of the given ones they are."""

    asked: AskedFacts
    chosen: Ids  # (n,) the given questions that some relation is left for


def tried(base: AskedFacts, relations: list[Ids], scaling: NumberScaling | None) -> Tried:
    """From one row a question, with any number relation in the blank, and the relations to try for each.

    With a scaling, relations that the number is far out of reach of are left out, as `within_reach` does.
    """
    count = np.array([len(one) for one in relations], dtype=np.int64)
    owner = np.repeat(np.arange(len(base), dtype=np.int64), count)
    relation = np.concatenate([np.zeros(0, dtype=np.int64), *relations])
    if scaling is not None:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scaled = scaling.scale(relation, _number_beside(base)[owner])
        near = (scaled >= -REACH) & (scaled <= 1 + REACH)
        owner, relation = owner[near], relation[near]
    chosen, size = np.unique(owner, return_counts=True)
    table = base.table.take(owner)
    position = base.position[owner]
    own = position == RELATION
    main, pairs = table.relation.copy(), table.qualifier_relation.copy()
    main[own] = relation[own]
    pairs[table.offsets[:-1][~own] + (position[~own] - FIRST_QUALIFIER) // 2] = relation[~own]
    rows = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    few = chosen.astype(np.int64)
    asked = AskedFacts(
        replace(table, relation=main, qualifier_relation=pairs),
        rows,
        base.position[few],
        base.kind[few],
        base.relation[few],
        np.ones(len(few), dtype=np.bool_),
    )
    return Tried(asked, few)


def _number_beside(base: AskedFacts) -> NDArray[np.float64]:
    """(n,) the number beside each hidden relation."""
    slot = base.table.offsets[:-1] + np.maximum(0, base.position - FIRST_QUALIFIER) // 2
    values = np.append(base.table.qualifier_number, 0.0)[np.minimum(slot, base.table.qualifier_total)]
    found: NDArray[np.float64] = np.where(base.position == RELATION, base.table.tail_number, values)
    return found
