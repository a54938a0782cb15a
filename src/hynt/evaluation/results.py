"""What an evaluation found, question by question and in sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hynt.evaluation.metrics import Floats, Metrics, Ties, number_metrics, ranking_metrics, ranks
from hynt.evaluation.questions import SCOPES, TaskName, in_scope
from hynt.graph.vocabulary import Vocabulary

Ids: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RankedQuestions:
    """`n` link or relation questions with the place their answers got, in the order of the split's components."""

    row: Ids  # (n,) the fact
    position: Ids  # (n,) the component hidden
    relation: Ids  # (n,) the relation beside the hidden component, or the hidden relation itself
    answer: Ids  # (n,) the hidden entity or relation
    qualifiers: Ids  # (n,) how many qualifiers the fact has
    better: Ids  # (n,) other candidates that score higher; known answers are no candidates
    ties: Ids  # (n,) other candidates that score the same
    candidates: Ids  # (n,) candidates, the answer among them

    def __len__(self) -> int:
        return len(self.row)

    def rank(self, ties: Ties = "realistic") -> Floats:
        """(n,) ranks by a tie rule."""
        return ranks(self.better, self.ties, ties)

    def metrics(self, ties: Ties = "realistic", chosen: NDArray[np.bool_] | None = None) -> Metrics:
        """The metrics of all questions, or of those where `chosen` (n,) is true."""
        keep = slice(None) if chosen is None else chosen
        return ranking_metrics(self.rank(ties)[keep], self.candidates[keep])


@dataclass(frozen=True, eq=False)
class NumberQuestions:
    """`n` number questions with what was predicted, in the order of the split's components."""

    row: Ids  # (n,) the fact
    position: Ids  # (n,) the component hidden
    relation: Ids  # (n,) the relation beside the hidden number
    head: Ids  # (n,) the fact's head entity
    qualifiers: Ids  # (n,) how many qualifiers the fact has
    truth: Floats  # (n,) the hidden number, in the graph's unit
    predicted: Floats  # (n,) the model's number, in the graph's unit
    truth_scaled: Floats  # (n,) on the linear min–max scale
    predicted_scaled: Floats  # (n,) on the linear min–max scale

    def __len__(self) -> int:
        return len(self.row)

    @property
    def error(self) -> Floats:
        """(n,) predicted minus true, on the linear min–max scale."""
        return self.predicted_scaled - self.truth_scaled

    def metrics(self, chosen: NDArray[np.bool_] | None = None) -> Metrics:
        """The metrics on the linear min–max scale of all questions, or of those where `chosen` (n,) is true."""
        return number_metrics(self.error if chosen is None else self.error[chosen])

    def per_relation(self, vocabulary: Vocabulary) -> list[dict[str, Any]]:
        """Errors in original units, relation by relation, with the unit; scaled ones beside them."""
        found = []
        for relation in np.unique(self.relation).tolist():
            chosen = self.relation == relation
            named = vocabulary.relations[relation]
            scaled = self.metrics(chosen)
            found.append(
                {"relation": named.name, "unit": named.unit}
                | number_metrics(self.predicted[chosen] - self.truth[chosen])
                | {"scaled_rmse": scaled["rmse"], "scaled_mae": scaled["mae"]}
            )
        return found


TaskQuestions: TypeAlias = RankedQuestions | NumberQuestions


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of one model on one split."""

    vocabulary: Vocabulary
    per_question: Mapping[TaskName, TaskQuestions]  # the tasks that were asked
    type_constrained: RankedQuestions | None  # link questions among candidates seen in that place in train
    ties: Ties
    protocol: Mapping[str, Any]  # all that a number needs beside it to be compared

    def to_mapping(self) -> dict[str, Any]:
        """The JSON form: metrics by task and scope, numbers also by relation, and the protocol."""
        found: dict[str, Any] = {}
        for task, questions in self.per_question.items():
            found[task] = by_scope(questions, self.ties)
            if isinstance(questions, NumberQuestions):
                found[task]["per_relation"] = questions.per_relation(self.vocabulary)
        if self.type_constrained is not None:
            found["link_type_constrained"] = by_scope(self.type_constrained, self.ties)
        return {**found, "protocol": dict(self.protocol)}

    def metric(self, path: str) -> float:
        """One number by its path, such as "link.all.mrr"; NaN where no question gives it, KeyError for no path."""
        found: Any = self.to_mapping()
        for part in path.split("."):
            found = found[part]
        return float("nan") if found is None else float(found)


def task_metrics(questions: TaskQuestions, ties: Ties, chosen: NDArray[np.bool_] | None = None) -> Metrics:
    """Metrics of some questions of a task."""
    if isinstance(questions, RankedQuestions):
        return questions.metrics(ties, chosen)
    return questions.metrics(chosen)


def by_scope(questions: TaskQuestions, ties: Ties) -> dict[str, Any]:
    """Metrics of the primary triplets' questions, and of all."""
    return {scope: task_metrics(questions, ties, in_scope(questions.position, scope)) for scope in SCOPES}


def columns(questions: TaskQuestions) -> dict[str, NDArray[Any]]:
    """The arrays by name."""
    return {field.name: getattr(questions, field.name) for field in fields(questions)}
