"""What an evaluation found, question by question and in sum."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from hynt.evaluation.metrics import (
    SCOPES,
    Metrics,
    TaskName,
    Ties,
    against_medians,
    in_scope,
    number_metrics,
    ranking_metrics,
    ranks,
)
from hynt.files import whole_file
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import (
    ENTITY_KIND,
    NUMBER_KIND,
    POSITION_GROUPS,
    FactTable,
    component_starts,
    components,
    position_group,
)
from hynt.graph.units.conversion import display_of
from hynt.graph.vocabulary import Floats, Ids, Vocabulary


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
    of_number: NDArray[np.bool_] | None = None  # (n,) whether the head of a number is asked; None: not looked at

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
    median: Floats | None = None  # (n,) of the relation's training numbers, in the graph's unit; None: not looked up

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

    @cached_property
    def against(self) -> Floats | None:
        """(n,) how the answers do against the training medians, as `against_medians` has it."""
        return None if self.median is None else against_medians(self.predicted, self.truth, self.median, self.error)

    def metrics(self, chosen: NDArray[np.bool_] | None = None) -> Metrics:
        """The metrics on the linear min–max scale of all questions, or of those where `chosen` (n,) is true."""
        keep = slice(None) if chosen is None else chosen
        against = None if self.against is None else self.against[keep]
        found = number_metrics(self.mean_error[keep], self.error[keep], against)
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
                {"relation": named.name, "label": named.label or named.name}
                | {"unit": named.unit, "display_unit": display_of(named.unit)}
                | {name: value if name == "count" else size * (value or 0.0) for name, value in plain.items()}
                | {"vs_median": scaled["vs_median"]}
                | self._typical(chosen, named.unit)
                | {"scaled_rmse": scaled["rmse"], "scaled_mae": scaled["mae"]}
            )
        return found

    def _typical(self, chosen: NDArray[np.bool_], unit: str) -> dict[str, float | None]:
        """What half of the answers of a relation are at most off, without a unit: as a factor where all true numbers
        are above zero, else as a share of the true number; neither for dates. And the share of answers that are
        further off than the training median would be; ties count half.
        """
        said, true = self.predicted[chosen], self.truth[chosen]
        factor = relative = worse = None
        if unit != DATE_UNIT:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                if (true > 0).all():
                    off = np.where(said > 0, np.abs(np.log(np.where(said > 0, said, 1.0)) - np.log(true)), np.inf)
                    factor = _finite(np.exp(np.median(off)))
                relative = _finite(np.median(np.abs(said - true) / np.abs(true))) if (true != 0).all() else None
        if self.against is not None:
            share = self.against[chosen]
            worse = float(np.mean(share > 0.5) + np.mean(share == 0.5) / 2)
        return {
            "median_error": float(np.median(np.abs(said - true))),
            "factor_off": factor,
            "median_relative_error": relative,
            "worse_than_median": worse,
        }


def _finite(value: np.floating[Any]) -> float | None:
    return float(value) if np.isfinite(value) else None


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
    if isinstance(questions, RankedQuestions):
        return questions.metrics(ties, chosen)
    return questions.metrics(chosen)


WITHOUT_NUMBERS = {"triplet": "triplet_without_numbers", "all": "all_without_numbers"}
"""Scopes of link questions without heads of numbers: "whose population is 5,800,000?" is hardly a question of links."""


def by_scope(questions: TaskQuestions, ties: Ties) -> dict[str, Any]:
    """Metrics of the primary triplets' questions, and of all; of links also without heads of numbers."""
    found: dict[str, Any] = {
        scope: task_metrics(questions, ties, in_scope(questions.position, scope)) for scope in SCOPES
    }
    if isinstance(questions, RankedQuestions) and questions.of_number is not None and questions.of_number.any():
        for scope in SCOPES:
            kept = in_scope(questions.position, scope) & ~questions.of_number
            found[WITHOUT_NUMBERS[scope]] = task_metrics(questions, ties, kept)
    return found


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
    labels = {relation.name: relation.label or relation.name for relation in vocabulary.relations}
    rows = _grouped(questions, ties, questions.relation, names)
    return [{"group": row["group"], "label": labels[row["group"]], **row} for row in rows]


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


LEAKAGE_GROUPS = ("triplet not in training", "triplet in training")
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


def by_leakage(questions: TaskQuestions, ties: Ties, seen: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """One row for facts whose triplet training does not have, and one for the others; `seen` (facts,)."""
    return _grouped(questions, ties, seen[questions.row].astype(np.int64), LEAKAGE_GROUPS)


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
