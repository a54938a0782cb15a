"""Models that answer numbers with distributions are scored by them too."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.batches.number_scaling import NumberScaling
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.results import write_questions
from hynt.evaluation.tables import metric_tables
from hynt.models.combination import Combination, GroupWeights, Weights
from hynt.models.contract import AnswersDistributions, Position, ScaledNumber
from hynt.models.registry import build
from hynt.objectives.number_distribution import Bins, NumberDistribution
from tests.models.question_batches import every_question
from tests.models.test_hynt_inductive import FACTS, SMALL, model_of
from tests.training.small_graph import small_graph

GRAPH = small_graph()
NUMBERS = [relation.name for relation in GRAPH.vocabulary.relations if relation.kind == "number"]


def sure(model):
    """The same model, which believes in its number alone."""
    bins = Bins(4001, margin=0.5)

    def distribution(question):
        value = model.score(question, ScaledNumber())
        at = ((value + bins.margin) / bins.width).round().long().clamp(0, bins.count - 1)
        return NumberDistribution(bins, torch.nn.functional.one_hot(at, bins.count).float())

    model.distribution = distribution
    return model


@pytest.mark.parametrize("log_relations", [(), NUMBERS[:1]])
def test_a_belief_in_one_number_is_scored_by_its_error_on_the_linear_scale(log_relations, tmp_path):
    scaling = NumberScaling.fit([GRAPH.split("train")], GRAPH.vocabulary, log_relations)
    facts = FactTensors.from_table(GRAPH.split("train"), GRAPH.vocabulary, scaling)
    model = sure(build("relation-mean", facts.sizes, facts))
    found = Evaluator(GRAPH, scaling, "test", ("number",)).evaluate(model)
    numbers = found.per_question["number"]
    assert len(numbers.crps) > 3
    np.testing.assert_allclose(numbers.crps, np.abs(numbers.error), atol=2e-3)
    for scope in ("triplet", "all"):
        metrics = found.to_mapping()["number"][scope]
        assert metrics["crps"] == pytest.approx(metrics["mae"], abs=2e-3)
    write_questions(found, tmp_path / "questions.parquet")
    assert "crps" in parquet.read_schema(tmp_path / "questions.parquet").names
    json.dumps(found.to_mapping())


def test_other_models_have_no_such_score():
    scaling = NumberScaling.fit([GRAPH.split("train")], GRAPH.vocabulary)
    facts = FactTensors.from_table(GRAPH.split("train"), GRAPH.vocabulary, scaling)
    found = Evaluator(GRAPH, scaling, "test", ("number",)).evaluate(build("relation-mean", facts.sizes, facts))
    assert found.per_question["number"].crps is None
    result = found.to_mapping() | {"protocol": {"model": "relation-mean"}}
    assert "crps" not in result["number"]["all"]
    assert "CRPS (scaled)" not in metric_tables(result)[0].columns
    result["number"] = {
        scope: one | {"crps": 0.25} for scope, one in result["number"].items() if scope != "per_relation"
    }
    table = metric_tables(result)[0]
    assert table.columns[-2] == "CRPS (scaled)"
    assert table.rows[0][-2] == "0.2500"


def test_several_models_together_believe_what_they_do_on_average_moved_to_what_they_answer():
    first, second = (model_of(FACTS, replace(SMALL, layers=1), seed) for seed in (0, 1))
    batch, answers, _ = every_question(FACTS, torch.arange(20))
    numbers = answers.task == Task.NUMBER
    asked = [(Task.NUMBER, position) for position in Position]

    def together(weights):
        groups = {one: GroupWeights(weights, {}) for one in asked}
        made = Combination(FACTS.sizes, [first, second], Weights(("one", "other"), groups), first.answers, trained=2)
        question = made.read(batch)
        return made.score(question, ScaledNumber())[numbers], made.distribution(question), question.members

    answer, believed, read = together((0.5, 0.5))
    each = [model.distribution(one).probability for model, one in zip((first, second), read, strict=True)]
    torch.testing.assert_close(believed.probability, (each[0] + each[1]) / 2, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(believed.mean()[numbers], answer)
    answer, believed, _ = together((1.2, -0.2))  # the other's share is a shift, no belief
    torch.testing.assert_close(believed.mean()[numbers], answer, rtol=0, atol=0.002)
    alone = Combination(FACTS.sizes, [first], Weights(("one",), {}), first.answers)
    assert not isinstance(alone, AnswersDistributions)
