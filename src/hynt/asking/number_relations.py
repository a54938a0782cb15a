"""Which relation has this number? Each one is asked with the number on its own scale, where it is within reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hynt.asking.columns import AskedFact
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import UsageError
from hynt.graph.fact_table import RELATION, qualifier_of
from hynt.graph.vocabulary import Flags, Floats, Ids

REACH = 1.0
"""In widths of a relation's training range: a number further outside it is none that the model can judge."""


def in_reach(scaling: NumberScaling, relation: Ids, value: Floats) -> Flags:
    """(n,) whether numbers are near the training numbers of these relations.

    2024 as a radius in metres is twelve orders of magnitude beyond all radii seen. The model has learned nothing about
    such numbers, and what it says of them is noise, or no number at all.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = scaling.scale(relation, value)
    found: Flags = (scaled >= -REACH) & (scaled <= 1 + REACH)
    return found


def out_of_reach(place: str) -> UsageError:
    """The refusal of a number that no relation can have."""
    return UsageError(
        "the number is far outside the training range of every relation.",
        where=place,
        advice="Check its unit; a number without one is read in the unit of each relation.",
    )


def within_reach(asked: AskedFact, scaling: NumberScaling) -> AskedFact:
    """The question without the relations whose training numbers are far from the one given."""
    if asked.tried is None:
        return asked
    table = asked.table
    slots = table.offsets[:-1] + qualifier_of(asked.position)
    value = table.tail_number if asked.position == RELATION else table.qualifier_number[slots]
    rows = np.flatnonzero(in_reach(scaling, asked.tried, value)).astype(np.int64)
    if not len(rows):
        raise out_of_reach(asked.place)
    return replace(asked, table=table.take(rows), tried=asked.tried[rows])
