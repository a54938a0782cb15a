"""tNaLP: the worse of relatedness and fit, its size and its first losses."""

from __future__ import annotations

import pytest
import torch

from hynt.batches.fact_tensors import Sizes
from hynt.kernels.pair_sweep import score_whole
from hynt.models.tnalp import Tnalp, TnalpSettings
from tests.models.fact_scorers import FACTS, model_for, scored, whole
from tests.models.first_steps import trained
from tests.training.small_graph import small_graph

REAL = torch.ones(1, dtype=torch.bool)


def test_the_probability_is_the_lower_of_both():
    model = model_for("tnalp", FACTS)
    for row in range(len(FACTS)):
        batch = whole(FACTS, row)
        with torch.no_grad():
            each = [torch.sigmoid(score_whole((channel,), batch, REAL)) for channel in model.channels]
            torch.testing.assert_close(torch.sigmoid(model.score_facts(batch, REAL)), torch.minimum(*each))


def test_only_the_lower_channel_learns_from_a_fact():
    model = model_for("tnalp", FACTS)
    learnt = set()
    for row in range(len(FACTS)):
        model.zero_grad()
        model.score_facts(whole(FACTS, row), REAL).sum().backward()
        gradients = [model.relatedness.output.bias.grad, model.type_fit.output.bias.grad]
        moved = [float(gradient.abs().sum()) > 0 for gradient in gradients]
        assert sum(moved) == 1
        learnt.add(moved.index(True))
    assert learnt, "some channel learns"


def test_where_all_types_fit_it_is_nalp():
    model = model_for("tnalp", FACTS)
    with torch.no_grad():
        model.type_fit.output.bias.fill_(1e6)
    for row in range(len(FACTS)):
        batch = whole(FACTS, row)
        with torch.no_grad():
            expected = float(score_whole((model.relatedness,), batch, REAL))
        assert scored(model, batch) == pytest.approx(expected)


def test_parameters_are_those_of_the_paper():
    settings = TnalpSettings(dimension=8, filters=6, hidden=5, type_dimension=3, type_hidden=4)
    model = Tnalp(Sizes(9, 4), settings, model_for("tnalp", FACTS).literals)
    published = 372 - 6  # no bias of the convolution, which batch normalisation would take off again
    assert sum(p.numel() for p in model.parameters()) == published + (12 - 4) * (8 + 3)


SETTINGS = {
    "batch_size": 32,
    "optimiser": {"learning_rate": 2e-3},
    "schedule": {"shape": "steps", "decay": 1.0},
    "model": {"dimension": 16, "filters": 12, "hidden": 20, "type_dimension": 8, "type_hidden": 10},
}
EXPECTED = [0.677015, 0.687496, 0.698131, 0.707425, 0.692435]


def test_the_first_losses_are_as_expected():
    _, losses, _ = trained("tnalp", small_graph(), SETTINGS, 5)
    assert losses == pytest.approx(EXPECTED, rel=2e-4)
