"""Validation on some facts only: fewer questions, the same candidates and filter, the same facts every time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hynt.errors import UsageError
from hynt.evaluation.evaluator import Evaluator
from hynt.formats.from_python import graph_from_facts
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training import validating
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.validating import NumbersOf, SampledEvaluator, check_metric, validation_for
from tests.training.small_graph import small_graph, tiny_settings


def test_a_sample_of_facts_is_asked_about_and_stays_the_same():
    graph, cpu = small_graph(people=60), torch.device("cpu")
    asked = {}
    for facts in (None, 3):
        settings = tiny_settings(validation={"facts": facts} if facts else {})
        data = training_data(graph, settings, fit_scaling(graph, settings), cpu)
        model = new_model(settings, data, cpu)
        validate = validation_for(settings, data, model, cpu)
        assert validate is not None
        first, second = validate(), validate()
        assert first == second
        asked[facts] = first["link"]["all"]["count"]
    assert 0 < asked[3] < asked[None]


def test_another_seed_draws_other_facts_of_the_same_number():
    graph = small_graph(people=60)
    settings = tiny_settings()
    scaling = fit_scaling(graph, settings)
    drawn = [SampledEvaluator(graph, scaling, "valid", facts_asked=4, seed=seed)._is_asked for seed in (0, 0, 1)]
    assert [int(one.sum()) for one in drawn] == [4, 4, 4]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_scales_are_chosen_by_a_sample_in_which_rare_relations_stay_whole(monkeypatch):
    facts = {"train": [("a", "height", 1.0), ("a", "weight", 2.0), ("a", "age", 3.0)], "valid": []}
    for relation, count in (("height", 50), ("weight", 7), ("age", 20)):
        facts["valid"] += [("a", relation, 1 + index / 50) for index in range(count)]
    graph = graph_from_facts(facts, name="people")
    ids = np.array([graph.vocabulary.relation_ids[name] for name in ("height", "weight")])
    settings = tiny_settings()
    data = training_data(graph, settings, fit_scaling(graph, settings), torch.device("cpu"))
    model = new_model(settings, data, torch.device("cpu"))

    def asked():
        found = NumbersOf.of(Evaluator(graph, data.scaling, "valid"), ids).evaluate(model)
        assert set(found.per_question) == {"number"}
        numbers = found.per_question["number"]
        return [sorted(numbers.truth[numbers.relation == one].tolist()) for one in ids.tolist()]

    assert [len(one) for one in asked()] == [50, 7]
    monkeypatch.setattr(validating, "MOST_NUMBERS", 20)
    assert [len(one) for one in asked()] == [13, 7]
    assert asked() == asked()
    assert max(asked()[0]) > 1.3  # not the first of the file


def _graph(*valid):
    train = [("a", "likes", "b"), ("b", "likes", "a"), ("a", "height", 1.5, [("measured", 3.0)]), ("b", "height", 2.0)]
    return graph_from_facts({"train": train, "valid": list(valid)}, name="people")


LINKS, NUMBERS = ("a", "likes", "b"), ("a", "height", 1.5)


@pytest.mark.parametrize(
    ("model", "valid", "metric"),
    [
        ("hynt", [LINKS, NUMBERS], "link.all.mrr"),
        ("hynt", [NUMBERS], "number.all.rmse"),
        ("hynt", [], "link.all.mrr"),
        ("relation-mean", [LINKS, NUMBERS], "number.all.rmse"),
        ("frequency", [NUMBERS], "link.all.mrr"),
    ],
)
def test_a_run_is_judged_by_what_its_graph_asks_and_its_model_answers(model, valid, metric):
    assert resolve_settings(SettingsRequest(model), _graph(*valid), on_gpu=False).validation.metric == metric


def test_what_a_person_or_a_preset_says_stays():
    said = SettingsRequest(changes=["validation.metric=relation.all.mrr"])
    assert resolve_settings(said, _graph(NUMBERS), on_gpu=False).validation.metric == "relation.all.mrr"
    preset = SettingsRequest(preset="hn-yg-relation")
    assert resolve_settings(preset, _graph(NUMBERS), on_gpu=False).validation.metric == "relation.all.mrr"


@pytest.mark.parametrize(
    ("model", "metric", "valid", "words"),
    [
        (
            "transea",
            "relation.all.mrr",
            [LINKS, NUMBERS],
            "validation.metric: transea answers no relation questions, so there is no relation.all.mrr. "
            "Choose a metric of link or number.",
        ),
        (
            "hynt",
            "number.all.rmse",
            [LINKS],
            "validation.metric: the validation split holds no number at all, so there is no number.all.rmse. "
            "Choose a metric of link or relation.",
        ),
        (
            "hynt",
            "number.triplet.mae",
            [("a", "likes", "b", [("measured", 3.0)])],
            "validation.metric: the validation split holds no number as a tail, so there is no number.triplet.mae. "
            "Choose number.all.rmse.",
        ),
    ],
)
def test_a_metric_that_no_question_gives_is_refused_before_training(model, metric, valid, words):
    graph = _graph(*valid)
    settings = resolve_settings(SettingsRequest(model, changes=[f"validation.metric={metric}"]), graph, on_gpu=False)
    with pytest.raises(UsageError) as told:
        check_metric(settings, graph)
    assert str(told.value) == words
