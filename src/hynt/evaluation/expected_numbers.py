"""From a model's answer to the mean, where the two differ: on a log scale the answer is a median.

Squared errors are smallest for means. On a linear scale a model that learned from squared errors says the mean itself.
On a log scale exp(answer) is near the median, and the mean lies above it by as much as the errors spread. So a factor
is fitted for each relation on the validation split (Duan's smearing, by least squares), and the result is drawn towards
the relation's training mean as far as that makes validation errors smaller. Both begin at "no change", with the
weight of `PRIOR` values, so that a handful of values cannot move them far. Models that answer with a distribution
integrate it first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hynt.batches.number_scaling import Expectation, NumberScaling
from hynt.evaluation.results import Evaluation, NumberQuestions
from hynt.graph.fact_table import FactTable
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Floats, Vocabulary

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
