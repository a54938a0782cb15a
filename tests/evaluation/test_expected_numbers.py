"""Answers on a log scale are medians; squared errors are measured from means."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hynt.batches.number_scaling import Expectation, NumberScaling
from hynt.errors import DataError
from hynt.evaluation.results import Evaluation, NumberQuestions, columns
from hynt.formats.from_python import graph_from_facts
from hynt.objectives.number_distribution import Bins, NumberDistribution
from hynt.training.validating import FURTHEST, fit_expectation, with_expectation


def log_normal(count=400, sigma=0.8, seed=0):
    """A graph whose numbers spread around a known median, and questions that are answered with that median."""
    rng = np.random.default_rng(seed)
    median = 10 ** rng.uniform(1, 4, count)
    truth = median * np.exp(sigma * rng.standard_normal(count))
    facts = [(f"e{index}", "population", value) for index, value in enumerate(truth)]
    graph = graph_from_facts({"train": facts})
    scaling = NumberScaling.fit([graph.split("train")], graph.vocabulary, ["population"])
    relation, zero = np.zeros(count, np.int64), np.zeros(count, np.int64)
    scaled = [scaling.linear(relation, one) for one in (truth, median)]
    questions = NumberQuestions(
        np.arange(count), zero + 2, relation, zero, zero, truth, median, median, *scaled, scaled[1]
    )
    return graph, scaling, questions


def rmse(questions):
    return float(np.sqrt(np.mean(questions.mean_error**2)))


def test_a_fitted_mean_lowers_squared_errors_and_leaves_the_answers_alone():
    graph, scaling, questions = log_normal()
    means = fit_expectation(questions, scaling, graph.split("train"), graph.vocabulary)
    before = Evaluation(graph.vocabulary, {"number": questions}, None, "realistic", {})
    after = with_expectation(before, scaling, means).per_question["number"]
    assert rmse(after) < 0.95 * rmse(questions)
    assert after.metrics()["mae"] == questions.metrics()["mae"]  # of the answers, which are medians
    assert np.array_equal(after.predicted, questions.predicted)


def test_an_answer_beyond_all_bounds_is_drawn_in():
    """One answer of 10⁹ where the numbers end at 10⁵ would be all of the error: it is drawn to the training mean."""
    graph, scaling, questions = log_normal()
    wild = questions.expected.copy()
    wild[7] = 1e9
    questions = NumberQuestions(
        **{**vars(questions), "expected": wild, "expected_scaled": scaling.linear(questions.relation, wild)}
    )
    means = fit_expectation(questions, scaling, graph.split("train"), graph.vocabulary)
    whole = Evaluation(graph.vocabulary, {"number": questions}, None, "realistic", {})
    assert rmse(with_expectation(whole, scaling, means).per_question["number"]) < 0.05 * rmse(questions)


def test_a_few_values_move_a_mean_a_little():
    graph, scaling, questions = log_normal()
    two = NumberQuestions(**{name: column[:2] for name, column in columns(questions).items()})
    far = NumberQuestions(**{**vars(two), "truth": 50 * two.truth})
    means = fit_expectation(far, scaling, graph.split("train"), graph.vocabulary)
    assert means.factor[0] <= FURTHEST
    assert fit_expectation(two, scaling.plain(), graph.split("train"), graph.vocabulary).factor[0] == 1.0  # linear


def test_means_are_kept_by_name_and_read_back():
    graph, scaling, questions = log_normal()
    means = fit_expectation(questions, scaling, graph.split("train"), graph.vocabulary)
    kept = means.to_mapping(graph.vocabulary)
    again = Expectation.from_mapping(kept, graph.vocabulary, "means.json")
    assert np.array_equal(again.factor, means.factor)
    for wrong in (
        {"size": kept["population"]},
        {"population": {"factor": 1.0}},
        {"population": {"offset": 0.0, "factor": "1"}},
    ):
        with pytest.raises(DataError, match="cannot be read"):
            Expectation.from_mapping(wrong, graph.vocabulary, "means.json")


def test_a_distribution_is_integrated_in_the_original_space():
    bins = Bins(101)
    logits = torch.randn(5, 101, generator=torch.Generator().manual_seed(0))
    found = NumberDistribution.of(bins, logits)
    reach = torch.tensor([0.0, 2.0, 5.0, 12.0, 20.0])
    place = found.mean_of_exponentials(reach)
    assert place[0] == found.mean()[0]
    direct = (found.probability.double() * torch.exp(reach[:, None] * bins.centres(logits.device))).sum(1)
    assert torch.exp(reach * place)[1:].double().numpy() == pytest.approx(direct[1:].numpy(), rel=1e-4)
    assert (place[1:] > found.mean()[1:]).all()  # a mean lies above the median of what leans to one side
