"""Validation on some facts only: fewer questions, the same candidates and filter, the same facts every time."""

from __future__ import annotations

import numpy as np
import torch

from hynt.training.run import new_model
from hynt.training.training_data import fit_scaling, training_data
from hynt.training.validating import SampledEvaluator, validation_for
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
    drawn = [
        SampledEvaluator(graph, scaling, "valid", facts_asked=4, seed=seed)._is_asked
        for seed in (0, 0, 1)
    ]  # fmt: skip
    assert [int(one.sum()) for one in drawn] == [4, 4, 4]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
