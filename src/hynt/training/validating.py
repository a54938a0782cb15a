"""Trying a model on the validation split while it trains, and the metric it is judged by.

Answers become means where the two differ. Squared errors are smallest for means. On a linear scale a model that learned
from squared errors says the mean itself. On a log scale exp(answer) is near the median, and the mean lies above it by
as much as the errors spread. So a factor is fitted for each relation on the validation split (Duan's smearing, by least
squares), and the result is drawn towards the relation's training mean as far as that makes validation errors smaller.
Both begin at "no change", with the weight of `PRIOR` values, so that a handful of values cannot move them far. Models
that answer with a distribution integrate it first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hynt.batches.epoch_plan import derived_seed
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import Expectation, NumberScaling
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import UsageError
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.metrics import NUMBER_METRICS, RANKING_METRICS, SCOPES, TASKS, TaskName
from hynt.evaluation.results import Evaluation, NumberQuestions
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.log_scales import tried_on_both
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Floats, Ids, Vocabulary
from hynt.models.contract import Model
from hynt.models.registry import MODELS
from hynt.models.trivial import statistic
from hynt.names import advice_on
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import TrainingData, training_table

METRICS = tuple(
    f"{task}.{scope}.{metric}"
    for task, metrics in (("link", RANKING_METRICS), ("relation", RANKING_METRICS), ("number", NUMBER_METRICS))
    for scope in SCOPES
    for metric in metrics
)
"""Every metric that a run can be judged by: task.scope.metric."""

LINK = "link.all.mrr"


def metric_for(model_name: str, graph: KnowledgeGraph) -> str:
    """What a run is judged by where nobody says: links, unless the validation split asks for none but heads of
    numbers, or the model answers none; then numbers, then relations.
    """
    able = _tasks_of(model_name)
    is_number, table = graph.vocabulary.relation_is_number, graph.splits.get("valid")
    if table is None or not len(table):
        return LINK
    has_values = not (is_number[table.relation].all() and is_number[table.qualifier_relation].all())
    has_numbers = _has_numbers(graph, "all")
    if "link" in able and (has_values or not has_numbers or "number" not in able):
        return LINK
    if "number" in able and has_numbers:
        return "number.all.rmse"
    return "relation.all.mrr" if "relation" in able else LINK


def _tasks_of(model_name: str) -> frozenset[str]:
    return frozenset(task.name.lower() for task, _ in MODELS.get(model_name).answers)


def _has_numbers(graph: KnowledgeGraph, scope: str) -> bool:
    table, is_number = graph.split("valid"), graph.vocabulary.relation_is_number
    return bool(is_number[table.relation].any() or (scope == "all" and is_number[table.qualifier_relation].any()))


def validates(settings: RunSettings, graph: KnowledgeGraph) -> bool:
    """Whether there is a validation split that is not trained on."""
    return "valid" in graph.splits and settings.train_on != "train+valid"


def check_metric(settings: RunSettings, graph: KnowledgeGraph) -> None:
    """Refuses a metric that does not exist, or that no question of the validation split gives."""
    metric, where = settings.validation.metric, "validation.metric"
    if metric not in METRICS:
        raise UsageError(f"validation has no metric {metric!r}.", where=where, advice=advice_on(metric, METRICS))
    if not validates(settings, graph):
        if settings.validation.patience is not None:
            raise UsageError(
                "the graph has no validation split to stop early on.",
                where="validation.patience",
                advice="Import it with one, or leave early stopping off.",
            )
        return
    task, scope, _ = metric.split(".")
    able = _tasks_of(settings.model_name)
    learns = MODELS.get(settings.model_name).learns  # else it is never validated
    if learns and task not in able:
        raise UsageError(
            f"{settings.model_name} answers no {task} questions, so there is no {metric}.",
            where=where,
            advice=f"Choose a metric of {' or '.join(name for name in TASKS if name in able)}.",
        )
    if task == "number" and not _has_numbers(graph, scope):
        place = "as a tail" if _has_numbers(graph, "all") else "at all"
        raise UsageError(
            f"the validation split holds no number {place}, so there is no {metric}.",
            where=where,
            advice="Choose number.all.rmse." if place == "as a tail" else "Choose a metric of link or relation.",
        )


@dataclass(frozen=True, eq=False)
class SampledEvaluator(Evaluator):
    """Asks only about some facts of the split, drawn once; the filter and the candidates are those of all."""

    facts_asked: int = 1
    seed: int = 0

    @classmethod
    def of(cls, evaluator: Evaluator, facts_asked: int) -> SampledEvaluator:
        """The same evaluator, asking about so many facts."""
        return cls(**{one.name: getattr(evaluator, one.name) for one in fields(evaluator)}, facts_asked=facts_asked)

    @cached_property
    def _is_asked(self) -> NDArray[np.bool_]:
        """(facts,) whether a fact was drawn."""
        count = len(self.graph.split(self.split))
        drawn = np.random.default_rng(derived_seed(self.seed, "validation facts")).permutation(count)
        asked = np.zeros(count, dtype=np.bool_)
        asked[drawn[: self.facts_asked]] = True
        return asked

    def _answerable(self, model: Model, task: TaskName) -> NDArray[np.int64]:
        chosen = super()._answerable(model, task)
        return chosen[self._is_asked[self.questions.row[chosen]]]


MOST_NUMBERS = 10_000
"""Numbers that scales and means are chosen by: a few hundred of a relation say as much as thousands."""


@dataclass(frozen=True, eq=False)
class NumbersOf(Evaluator):
    """Asks for numbers of some relations; where there are more than `MOST_NUMBERS`, for about as many of each, the same
    whatever the seed of the run.
    """

    relations: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, evaluator: Evaluator, relations: Ids) -> NumbersOf:
        """The same evaluator, asking for no more than these."""
        same = {one.name: getattr(evaluator, one.name) for one in fields(Evaluator)}
        return cls(**{**same, "tasks": ("number",)}, relations=relations)

    def _answerable(self, model: Model, task: TaskName) -> Ids:
        chosen = super()._answerable(model, task)
        chosen = chosen[np.isin(self.questions.relation[chosen], self.relations)]
        chosen = np.random.default_rng(0).permutation(chosen) if len(chosen) > MOST_NUMBERS else chosen
        relation = self.questions.relation[chosen]
        order = np.argsort(relation, kind="stable")
        _, start, count = np.unique(relation[order], return_index=True, return_counts=True)
        turn = np.arange(len(chosen)) - np.repeat(start, count)  # of each relation the first, then the second of each
        return np.sort(chosen[order[np.argsort(turn, kind="stable")[:MOST_NUMBERS]]])


def evaluator_of(
    settings: RunSettings,
    graph: KnowledgeGraph,
    scaling: NumberScaling,
    literals: Any,
    device: torch.device,
    workers: SingleProcess | None = None,
) -> Evaluator:
    """The validation questions of a run: all, or as many as its settings ask."""
    found = Evaluator(graph, scaling, "valid", device=device, literals=literals, workers=workers or SingleProcess())
    asked = settings.validation.facts
    return found if asked is None else replace(SampledEvaluator.of(found, asked), seed=settings.seed)


def fitted_means(settings: RunSettings, evaluator: Evaluator, model: Model) -> Expectation:
    """The means of numbers on log scales, as the validation split has them beside the model's answers."""
    graph, logs = evaluator.graph, np.flatnonzero(evaluator.scaling.is_log)
    numbers = NumbersOf.of(evaluator, logs).evaluate(model).per_question.get("number")
    if not isinstance(numbers, NumberQuestions):
        return Expectation.unchanged(graph.vocabulary.relation_count)
    return fit_expectation(numbers, evaluator.scaling, training_table(graph, settings), graph.vocabulary)


def validation_for(
    settings: RunSettings,
    data: TrainingData,
    model: nn.Module,
    device: torch.device,
    workers: SingleProcess | None = None,
) -> Callable[[], Mapping[str, Any]] | None:
    """How to try the model on the validation split; None where there is none, or it is trained on."""
    if not validates(settings, data.graph):
        return None
    # Sharded tables are fetched from in step, so all processes ask the same questions at once.
    sharing = workers if workers is not None and settings.tables == "whole" else SingleProcess()
    evaluator = evaluator_of(settings, data.graph, data.scaling, data.literals, device, sharing)

    def validate() -> Mapping[str, Any]:
        asked = evaluator.evaluate(cast(Model, model))
        numbers = asked.per_question.get("number")
        if isinstance(numbers, NumberQuestions):
            learned = training_table(data.graph, settings)
            means = fit_expectation(numbers, data.scaling, learned, data.graph.vocabulary)
            asked = with_expectation(asked, data.scaling, means)
        found = asked.to_mapping()
        found.pop("protocol")
        found.get("number", {}).pop("per_relation", None)
        return found

    return validate


WORSE = 1.02
FAR_OFF = math.log(10)
"""Ten times too much, or a tenth: what is further off counts no more."""


def worth_a_log_scale(names: Sequence[str], graph: KnowledgeGraph, learned: FactTable) -> tuple[str, ...]:
    """Of these relations, which a log scale may suit, all but those that it makes worse.

    Nothing is trained: a regression that is made at once is fitted on either scale. A relation stays linear where on
    the validation split the RMSE of its log scale is worse by more than 2 %, and by more than logarithms of factors off
    are better. Declared scales are not doubted.
    """
    ids, valid = graph.vocabulary.relation_ids, graph.splits["valid"]
    doubted = np.array(tried_on_both(graph, names), dtype=np.int64)
    if not len(doubted):
        return tuple(names)
    about = replace(graph, splits={**graph.splits, "valid": valid.where(np.isin(valid.relation, doubted))})
    squared, factor = _number_marks(about, learned, doubted, names)
    linear_squared, linear_factor = _number_marks(about, learned, doubted, ())
    is_worse = squared * factor**2 > linear_squared * linear_factor**2
    stays = doubted[(squared > WORSE**2 * linear_squared) & is_worse].tolist()
    return tuple(name for name in names if ids[name] not in stays)


def _number_marks(
    graph: KnowledgeGraph, learned: FactTable, relations: Ids, on_log: Sequence[str]
) -> tuple[Floats, Floats]:
    """Of these relations, on validation: (n,) the mean squared error of means, and (n,) how far off answers are in the
    mean, as the logarithm of a factor: of small values, too, which squares overlook.
    """
    device, vocabulary = torch.device("cpu"), graph.vocabulary
    scaling = NumberScaling.fit([learned], vocabulary, on_log)
    model = statistic("number-regression", FactTensors.from_table(learned, vocabulary, scaling, device))
    evaluator = NumbersOf.of(Evaluator(graph, scaling, "valid", device=device), relations)
    numbers = evaluator.evaluate(cast(Model, model)).per_question["number"]
    assert isinstance(numbers, NumberQuestions)
    # Means are fitted on either scale, or the log scale would win by that alone.
    both = replace(scaling, is_log=np.isin(np.arange(vocabulary.relation_count), relations))
    means = fit_expectation(numbers, both, learned, vocabulary)(numbers.relation, numbers.expected)
    error = (scaling.linear(numbers.relation, means) - numbers.truth_scaled) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(np.log(numbers.predicted / numbers.truth))
    off = np.where(np.isfinite(off), np.minimum(off, FAR_OFF), FAR_OFF)  # below zero, where nothing is, too
    chosen = [numbers.relation == one for one in relations.tolist()]
    return np.array([error[own].mean() for own in chosen]), np.array([off[own].mean() for own in chosen])


PRIOR = 10.0
"""How many values "no change" weighs."""
FURTHEST = 2.0
"""How far the factor may lie from 1, up or down."""


def fit_expectation(
    questions: NumberQuestions, scaling: NumberScaling, learned: FactTable, vocabulary: Vocabulary
) -> Expectation:
    """From the answers to held-out questions, made without an expectation, and the facts that the run learned from."""
    found, means = Expectation.unchanged(vocabulary.relation_count), _means(learned, vocabulary)
    for relation in np.unique(questions.relation[scaling.is_log[questions.relation]]).tolist():
        chosen, width = questions.relation == relation, float(scaling.width[relation])
        said, true, mean = questions.expected[chosen] / width, questions.truth[chosen] / width, means[relation] / width
        factor = _slope(said, true)
        factor = min(max(factor, 1 / FURTHEST), FURTHEST)
        share = min(max(_slope(factor * said - mean, true - mean), 0.0), 1.0)
        found.offset[relation], found.factor[relation] = (1 - share) * mean * width, share * factor
    return found


def with_expectation(evaluation: Evaluation, scaling: NumberScaling, expectation: Expectation) -> Evaluation:
    """The same evaluation with means by this expectation."""
    numbers = evaluation.per_question.get("number")
    if not isinstance(numbers, NumberQuestions):
        return evaluation
    means = np.where(
        scaling.is_log[numbers.relation], expectation(numbers.relation, numbers.expected), numbers.expected
    )
    moved = replace(numbers, expected=means, expected_scaled=scaling.linear(numbers.relation, means))
    return replace(evaluation, per_question={**evaluation.per_question, "number": moved})


def _slope(x: Floats, y: Floats) -> float:
    """Of the line through 0 that fits best, drawn towards 1."""
    square = float(x @ x)
    weight = PRIOR * square / len(x)
    return (float(x @ y) + weight) / (square + weight) if np.isfinite(square) and square > 0 else 1.0


def _means(table: FactTable, vocabulary: Vocabulary) -> Floats:
    """(relations,) of each relation's numbers; 0 where it has none."""
    numbers = sorted_numbers(table, vocabulary.relation_is_number)
    found = np.zeros(vocabulary.relation_count)
    if len(numbers.value):
        found[numbers.present] = np.add.reduceat(numbers.value / np.repeat(numbers.size, numbers.size), numbers.start)
    return found
