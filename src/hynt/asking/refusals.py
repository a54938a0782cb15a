"""Questions that a run cannot answer, found in columns and told in words: what its model does not answer, and numbers
that are off the scale or far outside the training range of a relation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hynt.asking.columns import AskedFact
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError, UsageError
from hynt.graph.fact_table import (
    ENTITY_KIND,
    KIND_NAMES,
    POSITION_GROUPS,
    RELATION,
    FactTable,
    position_group,
    position_name,
    qualifier_of,
)
from hynt.graph.vocabulary import Flags, Floats, Ids

if TYPE_CHECKING:
    from hynt.runs.opening import LoadedRun

NO_CANDIDATE = "no candidate is left."


def unanswerable(loaded: LoadedRun, position: int, kind: int) -> UsageError:
    """What the model cannot answer, and what it can."""
    group = POSITION_GROUPS[int(position_group(np.array([position]))[0])]
    offers = sorted({f"{KIND_NAMES[int(task)]} at {place}" for task, place in loaded.model.answers})
    article = "an" if kind == ENTITY_KIND else "a"
    return UsageError(
        f"the model {loaded.settings.model_name!r} cannot answer {article} {KIND_NAMES[kind]} as {group}.",
        where=position_name(position),
        advice=f"It answers: {', '.join(offers)}.",
    )


def too_few_numbers(loaded: LoadedRun, relation: int) -> UsageError:
    """The refusal of a number that a run which reads observed facts has no scale for."""
    from hynt.runs.elsewhere import FEWEST

    name = loaded.graph.relation_labels[relation]
    return UsageError(
        f"the run has learned no numbers of {name!r}, and its graph has fewer than {FEWEST} different ones.",
        where="relation",
        advice="Add more facts of it: the numbers there are read, but none can be predicted from so few.",
    )


def non_finite(loaded: LoadedRun, question: str) -> DataError:
    """The refusal of an answer that is infinite or not a number, which is the model's fault."""
    return DataError(
        f"the model's answer to {question} is not a finite number.",
        where=str(loaded.run.path),
        advice="Take an earlier checkpoint, or train again with a lower learning rate.",
    )


def off_scale(loaded: LoadedRun, table: FactTable) -> list[tuple[int, UsageError]]:
    """The rows that hold a number which the scale of its relation cannot take, such as −1 on a log scale."""
    is_number = loaded.graph.vocabulary.relation_is_number
    relation = np.concatenate([table.relation, table.qualifier_relation])
    value = np.concatenate([table.tail_number, table.qualifier_number])
    row = np.concatenate([np.arange(len(table), dtype=np.int64), table.qualifier_owner()])
    numeric = np.flatnonzero(is_number[relation])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = loaded.scaling.scale(relation[numeric], value[numeric]).astype(np.float32)
    found: dict[int, UsageError] = {}
    for at in numeric[~np.isfinite(scaled)].tolist():
        name = loaded.graph.relations[relation[at]].name
        found[int(row[at])] = UsageError(
            f"the relation {name!r} has the value {float(value[at])!r}, which its scale cannot take.",
            advice="Correct the value.",
        )
    return list(found.items())


REACH = 1.0
"""How far outside a relation's training range, in its widths, the model can still judge a number."""


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
