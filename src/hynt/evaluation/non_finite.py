"""A score that is no finite number stops an evaluation: ranks made of it would mean nothing, and might look perfect."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hynt.errors import DataError
from hynt.graph.components import Components, position_name
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences


def refuse_non_finite(finite: NDArray[np.generic], questions: Components, graph: KnowledgeGraph, split: str) -> None:
    """Raises a `DataError` that names the first question where `finite` (n,) is false."""
    wrong = np.flatnonzero(~finite.astype(np.bool_))
    if not len(wrong):
        return
    row, position = int(questions.row[wrong[0]]), int(questions.position[wrong[0]])
    (fact,) = graph.split(split).take(np.array([row])).facts(graph.vocabulary)
    raise DataError(
        f"the model's answer to {Sentences(graph).question(fact, position)} is not a finite number "
        f"({len(wrong)} of {len(finite)} questions).",
        where=f"{split} fact {row + 1}, {position_name(position)}",
        advice="Take an earlier checkpoint, or train again with a lower learning rate.",
    )
