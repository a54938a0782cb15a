"""NeuInfer: a mean of two probabilities, kept as logarithms; its sizes and its first losses."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as functional

from hynt.batches.fact_tensors import Sizes
from hynt.models.neuinfer import NeuInfer, NeuInferSettings
from tests.models.fact_scorers import FACTS, model_for, scored, whole, with_qualifiers
from tests.models.first_steps import trained
from tests.training.small_graph import small_graph

PAIRS = [(0, 3), (1, 4), (3, 2)]


def by_the_formula(model, fact):
    """(validity, compatibility, probability) written down plainly; compatibility is None without qualifiers."""
    head, tail = model.entity[int(fact.head)], model.entity[int(fact.tail_entity)]
    triplet = torch.cat([head, model.relation[int(fact.relation)], tail])

    def through(network, x):
        for layer in network.layers:
            x = torch.relu(layer(x))
        return x

    validity = torch.sigmoid(model.validity_output(through(model.of_triplet, triplet)))
    pairs = zip(fact.qualifier_relation[:-1].tolist(), fact.qualifier_entity[:-1].tolist(), strict=True)
    each = [through(model.of_qualifier, torch.cat([triplet, model.relation[q], model.entity[v]])) for q, v in pairs]
    if not each:
        return float(validity.detach()), None, float(validity.detach())
    agreement = torch.sigmoid(model.compatibility_output(torch.stack(each).amin(0)))
    w = model.settings.validity_weight
    return tuple(float(x.detach()) for x in (validity, agreement, w * validity + (1 - w) * agreement))


@pytest.mark.parametrize("layers", [(1, 1), (2, 2), (1, 2), (2, 1)])
def test_the_logit_is_that_of_the_mean_of_both_probabilities(layers):
    model = model_for("neuinfer", FACTS, validity_layers=layers[0], compatibility_layers=layers[1])
    for pairs in ([], PAIRS[:1], PAIRS):
        fact = with_qualifiers(FACTS, pairs)
        validity, agreement, probability = by_the_formula(model, fact)
        logit = torch.tensor(scored(model, whole(fact, 0)))
        assert float(torch.sigmoid(logit)) == pytest.approx(probability, abs=1e-5)
        if agreement is not None:
            assert min(validity, agreement) <= probability <= max(validity, agreement)
        naive = -torch.log(torch.tensor(probability)), -torch.log(torch.tensor(1 - probability))
        assert float(functional.softplus(-logit)) == pytest.approx(float(naive[0]), abs=1e-4)
        assert float(functional.softplus(logit)) == pytest.approx(float(naive[1]), abs=1e-4)


def test_a_plain_triplet_does_not_ask_about_qualifiers():
    model = model_for("neuinfer", FACTS)
    fact = with_qualifiers(FACTS, [])
    before = scored(model, whole(fact, 0, extra=2))
    with torch.no_grad():
        for parameter in model.of_qualifier.parameters():
            parameter.add_(1.0)
    assert scored(model, whole(fact, 0, extra=2)) == before == pytest.approx(scored(model, whole(fact, 0)))


def test_with_all_weight_on_validity_qualifiers_do_not_count():
    model = model_for("neuinfer", FACTS, validity_weight=1.0)
    scores = [scored(model, whole(with_qualifiers(FACTS, pairs), 0)) for pairs in ([], PAIRS[:1], PAIRS)]
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-5)
    batch = whole(with_qualifiers(FACTS, PAIRS), 0)
    model.score_facts(batch, torch.ones(1, dtype=torch.bool)).sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


def test_certain_facts_are_still_ranked():
    model = model_for("neuinfer", FACTS)
    plain = torch.ones(2, dtype=torch.bool)
    with torch.no_grad():
        model.validity_output.weight.fill_(0.0)
        model.compatibility_output.weight.fill_(0.0)
        sides = []
        for bias in (40.0, 60.0):
            model.validity_output.bias.fill_(bias)
            model.compatibility_output.bias.fill_(bias)
            blank = torch.zeros(2, model.validity_output.in_features), torch.zeros(2, 6)
            sides.append(float(model.finish(*blank, plain)[0]))
    assert sides == pytest.approx([40.0, 60.0]), "a sigmoid in 32 bits would say 1 to both"


@pytest.mark.parametrize("layers, count", [((1, 1), 678), ((2, 2), 1751), ((1, 2), 1519), ((2, 1), 910)])
def test_parameters_are_those_of_the_paper(layers, count):
    settings = NeuInferSettings(dimension=8, hidden=6, validity_layers=layers[0], compatibility_layers=layers[1])
    model = NeuInfer(Sizes(9, 4), settings, model_for("neuinfer", FACTS).literals)
    assert sum(p.numel() for p in model.parameters()) == count


def test_hidden_widths_are_the_authors():
    literals = model_for("neuinfer", FACTS).literals
    for hidden, between in ((800, 1040), (1000, 1140), (1200, 1240)):
        model = NeuInfer(Sizes(3, 2), NeuInferSettings(hidden=hidden, compatibility_layers=2), literals)
        assert [layer.out_features for layer in model.of_qualifier.layers] == [between, hidden]


SETTINGS = {
    "batch_size": 32,
    "optimiser": {"learning_rate": 2e-3},
    "schedule": {"shape": "steps", "decay": 1.0},
    "model": {"dimension": 16, "hidden": 20},
}
EXPECTED = [0.709172, 0.694297, 0.700112, 0.692251, 0.696924]


def test_the_first_losses_are_as_expected():
    _, losses, _ = trained("neuinfer", small_graph(), SETTINGS, 5)
    assert losses == pytest.approx(EXPECTED, rel=2e-4)
