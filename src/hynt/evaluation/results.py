"""What an evaluation found, question by question and in sum."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from hynt.evaluation.metrics import Metrics, Ties, number_metrics, ranking_metrics, ranks
from hynt.evaluation.questions import SCOPES, TaskName, in_scope
from hynt.files import whole_file
from hynt.graph.arrays import Floats, Ids
from hynt.graph.components import (
    ENTITY_KIND,
    NUMBER_KIND,
    POSITION_GROUPS,
    component_starts,
    components,
    position_group,
)
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class RankedQuestions:
    """`n` link or relation questions with the place their answers got, in the order of the split's components."""

    row: Ids  # (n,) the fact
    position: Ids  # (n,) the masked component
    relation: Ids  # (n,) the relation beside the masked component, or the masked relation itself
    answer: Ids  # (n,) the masked entity or relation
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
    position: Ids  # (n,) the masked component
    relation: Ids  # (n,) the relation beside the masked number
    head: Ids  # (n,) the fact's head entity
    qualifiers: Ids  # (n,) how many qualifiers the fact has
    truth: Floats  # (n,) the masked number, in the graph's unit
    predicted: Floats  # (n,) the model's answer, in the graph's unit
    expected: Floats  # (n,) the mean beside it, in the graph's unit: the same but on log scales and of distributions
    truth_scaled: Floats  # (n,) on the linear min–max scale
    predicted_scaled: Floats  # (n,) on the linear min–max scale
    expected_scaled: Floats  # (n,) on the linear min–max scale
    crps: Floats | None = None  # (n,) the score of the model's distribution there; None for a model that gives none

    def __len__(self) -> int:
        return len(self.row)

    @property
    def error(self) -> Floats:
        """(n,) predicted minus true, on the linear min–max scale."""
        return self.predicted_scaled - self.truth_scaled

    @property
    def mean_error(self) -> Floats:
        """(n,) expected minus true, on the linear min–max scale: what is squared."""
        return self.expected_scaled - self.truth_scaled

    def metrics(self, chosen: NDArray[np.bool_] | None = None) -> Metrics:
        """The metrics on the linear min–max scale of all questions, or of those where `chosen` (n,) is true."""
        keep = slice(None) if chosen is None else chosen
        found = number_metrics(self.mean_error[keep], self.error[keep])
        if self.crps is None:
            return found
        scores = self.crps[keep]
        return found | {"crps": float(scores.mean()) if len(scores) else None}

    def per_relation(self, vocabulary: Vocabulary) -> list[dict[str, Any]]:
        """Errors in original units, relation by relation, with the unit; scaled ones beside them."""
        found = []
        for relation in np.unique(self.relation).tolist():
            chosen = self.relation == relation
            named = vocabulary.relations[relation]
            scaled = self.metrics(chosen)
            errors = (self.expected - self.truth)[chosen], (self.predicted - self.truth)[chosen]
            size = max(float(np.abs(one).max()) for one in errors) or 1.0  # squares of errors near 1e200 overflow
            plain = number_metrics(*(one / size for one in errors))
            found.append(
                {"relation": named.name, "unit": named.unit}
                | {name: value if name == "count" else size * (value or 0.0) for name, value in plain.items()}
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
    """The fields of the questions as arrays, by their names."""
    found = {field.name: getattr(questions, field.name) for field in fields(questions)}
    return {name: column for name, column in found.items() if column is not None}


# The per-question results of an evaluation as one Parquet file, for comparing runs later.

SCHEMA_VERSION = 1
_META = b"hynt-evaluation"


def write_questions(evaluation: Evaluation, path: Path) -> None:
    """One row per question; columns that a task has not are null. The protocol travels in the file's metadata."""
    tables = []
    parts: list[tuple[str, TaskQuestions]] = list(evaluation.per_question.items())
    if evaluation.type_constrained is not None:
        parts.append(("link_type_constrained", evaluation.type_constrained))
    for name, questions in parts:
        found: dict[str, Any] = {"task": pa.array([name]).take(pa.array(np.zeros(len(questions), dtype=np.int64)))}
        tables.append(pa.table(found | columns(questions)))
    meta = {"schema": SCHEMA_VERSION, "ties": evaluation.ties, "tasks": [name for name, _ in parts]}
    joined = pa.concat_tables(tables, promote_options="default")
    text = json.dumps(meta | {"protocol": dict(evaluation.protocol)})
    with whole_file(path) as file:
        parquet.write_table(joined.replace_schema_metadata({_META: text.encode()}), file)


# Where a model is good and where not: metrics by relation, position, qualifier count and entity frequency.

QUALIFIER_STEPS = (0, 1, 2, 3, 4, 8)
FREQUENCY_STEPS = (0, 1, 3, 10, 30, 100, 300, 1000)


def by_relation(questions: TaskQuestions, ties: Ties, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """One row per relation: that of the masked component, or the masked relation itself."""
    names = [relation.name for relation in vocabulary.relations]
    return _grouped(questions, ties, questions.relation, names)


def by_position(questions: TaskQuestions, ties: Ties) -> list[dict[str, Any]]:
    """One row per position; all qualifiers together."""
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


SEEN_GROUPS = (
    "answer and context seen",
    "answer seen, context not",
    "answer not seen, context seen",
    "neither answer nor context seen",
)


def by_seen(
    questions: TaskQuestions, ties: Ties, table: FactTable, met: NameCounts, vocabulary: Vocabulary
) -> list[dict[str, Any]]:
    """One row for each of `SEEN_GROUPS`: whether training has `met` the answer and all other names of the question. A
    number is seen: its relation is part of the context.
    """
    parts = components(table, vocabulary.relation_is_number)
    unseen = np.where(parts.kind == ENTITY_KIND, met.entity[parts.entity] == 0, met.relation[parts.relation] == 0)
    unseen &= parts.kind != NUMBER_KIND
    answer = unseen[component_starts(table)[questions.row] + questions.position]
    context = np.bincount(parts.row[unseen], minlength=len(table))[questions.row] > answer
    return _grouped(questions, ties, (2 * answer + context).astype(np.int64), SEEN_GROUPS)


class NameCounts(NamedTuple):
    """How often some facts name each entity and relation of a vocabulary."""

    entity: Ids  # (entities,)
    relation: Ids  # (relations,)

    @classmethod
    def of(cls, table: FactTable, own: Vocabulary, vocabulary: Vocabulary) -> NameCounts:
        """The facts have their ids from `own`; what the other vocabulary lacks is not counted."""
        used = np.concatenate([table.relation, table.qualifier_relation])
        entity, relation = entity_frequency(table, own), np.bincount(used, minlength=own.relation_count)
        if vocabulary is own:
            return cls(entity, relation.astype(np.int64))
        counts = dict(zip(own.entities, entity.tolist(), strict=True))
        of_relation = dict(zip((one.name for one in own.relations), relation.tolist(), strict=True))
        return cls(
            np.array([counts.get(name, 0) for name in vocabulary.entities], dtype=np.int64),
            np.array([of_relation.get(one.name, 0) for one in vocabulary.relations], dtype=np.int64),
        )


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
