"""A score that is no finite number stops an evaluation: ranks made of it would mean nothing, and might look perfect."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hynt.errors import DataError
from hynt.graph.components import HEAD, RELATION, TAIL, Components, position_name
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.knowledge_graph import KnowledgeGraph


def refuse_non_finite(finite: NDArray[np.generic], questions: Components, graph: KnowledgeGraph, split: str) -> None:
    """Raises a `DataError` that names the first question where `finite` (n,) is false."""
    wrong = np.flatnonzero(~finite.astype(np.bool_))
    if not len(wrong):
        return
    row, position = int(questions.row[wrong[0]]), int(questions.position[wrong[0]])
    raise DataError(
        f"the model's answer to {masked_question_text(graph, split, row, position)} is not a finite number "
        f"({len(wrong)} of {len(finite)} questions).",
        where=f"{split} fact {row + 1}, {position_name(position)}",
        advice="Take an earlier checkpoint, or train again with a lower learning rate.",
    )


def masked_question_text(graph: KnowledgeGraph, split: str, row: int, position: int) -> str:
    """A question on one line, with a question mark for what is hidden."""
    (fact,) = graph.split(split).take(np.array([row])).facts(graph.vocabulary)
    head, relation, tail, qualifiers = _with_blank(fact, position)
    pairs = ", ".join(f"{name}: {_text(value)}" for name, value in qualifiers)
    return f"({head}, {relation}, {_text(tail)})" + (f" {{{pairs}}}" if pairs else "")


def _with_blank(fact: Fact, position: int) -> Fact:
    if position == HEAD:
        return fact._replace(head="?")
    if position == RELATION:
        return fact._replace(relation="?")
    if position == TAIL:
        return fact._replace(tail="?")
    index, is_value = divmod(position - 3, 2)
    pairs = list(fact.qualifiers)
    pairs[index] = Qualifier(pairs[index].relation, "?") if is_value else Qualifier("?", pairs[index].value)
    return fact._replace(qualifiers=tuple(pairs))


def _text(value: str | Number) -> str:
    return f"{value.literal} {value.unit}".rstrip() if isinstance(value, Number) else value
