"""Which relation has this number? Each one is asked with the number on its own scale, where it is within reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hynt.asking.question import AskedFact
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import UsageError
from hynt.graph.components import RELATION

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
