"""Where a model is good and where not: metrics by relation, position, qualifier count and entity frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.evaluation.metrics import Ties
from hynt.evaluation.questions import POSITION_GROUPS, position_group
from hynt.evaluation.results import RankedQuestions, TaskQuestions, task_metrics
from hynt.graph.components import ENTITY_KIND, components
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Vocabulary

Ids = NDArray[np.int64]

QUALIFIER_STEPS = (0, 1, 2, 3, 4, 8)
FREQUENCY_STEPS = (0, 1, 3, 10, 30, 100, 300, 1000)


def by_relation(questions: TaskQuestions, ties: Ties, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """One row a relation: that of the hidden component, or the hidden relation itself."""
    names = [relation.name for relation in vocabulary.relations]
    return _grouped(questions, ties, questions.relation, names)


def by_position(questions: TaskQuestions, ties: Ties) -> list[dict[str, Any]]:
    """One row a position; all qualifiers together."""
    return _grouped(questions, ties, position_group(questions.position), POSITION_GROUPS)


def by_qualifier_count(questions: TaskQuestions, ties: Ties) -> list[dict[str, Any]]:
    """One row a range of qualifier counts."""
    return _by_steps(questions, ties, questions.qualifiers, QUALIFIER_STEPS)


def by_entity_frequency(questions: TaskQuestions, ties: Ties, frequency: Ids) -> list[dict[str, Any]]:
    """One row a range of how often train holds the entity: the answer, or for numbers the head.

    `frequency` (entities,) is what `entity_frequency` of the training split gives. For relation questions it means
    nothing.
    """
    entity = questions.answer if isinstance(questions, RankedQuestions) else questions.head
    return _by_steps(questions, ties, frequency[entity], FREQUENCY_STEPS)


def entity_frequency(table: FactTable, vocabulary: Vocabulary) -> Ids:
    """(entities,) how often each entity stands in a table, at any position."""
    parts = components(table, vocabulary.relation_is_number)
    used = parts.entity[parts.kind == ENTITY_KIND]
    return np.bincount(used, minlength=vocabulary.entity_count).astype(np.int64)


def _by_steps(questions: TaskQuestions, ties: Ties, value: Ids, steps: Sequence[int]) -> list[dict[str, Any]]:
    group = np.searchsorted(np.array(steps), value, side="right").astype(np.int64) - 1
    names = [_range_name(low, high) for low, high in zip(steps, [*steps[1:], None], strict=True)]
    return _grouped(questions, ties, group, names)


def _range_name(low: int, high: int | None) -> str:
    if high is None:
        return f"{low}+"
    return str(low) if high == low + 1 else f"{low}–{high - 1}"


def _grouped(questions: TaskQuestions, ties: Ties, group: Ids, names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows {"group", metrics…, "count"} for the groups that have questions, in the order of `names`."""
    return [
        {"group": names[index], **task_metrics(questions, ties, group == index)} for index in np.unique(group).tolist()
    ]
