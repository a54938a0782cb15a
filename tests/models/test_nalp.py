"""NaLP: the separable minimum, sets of pairs, its size and its first losses."""

from __future__ import annotations

import pytest
import torch

from hynt.batches.corruption import Corruption
from hynt.batches.fact_tensors import Sizes
from hynt.kernels.pair_sweep import lowest_features
from hynt.models.layers.relatedness import MaskedBatchNorm
from hynt.models.nalp import Nalp, NalpSettings
from tests.models.fact_scorers import FACTS, check_by_formula, corruption_of, model_for, whole, with_qualifiers
from tests.models.first_steps import trained
from tests.training.small_graph import small_graph


def test_the_minimum_over_pairs_of_pairs_is_separable():
    """Against the formula of the paper, with every ρ_ij written down; values and gradients."""
    model = model_for("nalp", FACTS).double()
    channel = model.relatedness
    roles, values = torch.tensor([0, 5, 9, 11]), torch.tensor([1, 2, 3, 9])

    def separable():
        return channel.finish(channel.after(channel.role_part(roles) + channel.value_part(values), None).amin(0))

    torch.testing.assert_close(separable(), model.fact_score(roles, values), rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        channel.relate_bias += 0.5  # so that no gradient is lost to the ReLU
    parameters = [channel.role, channel.value, channel.relate]
    ours = torch.autograd.grad(separable(), parameters)
    theirs = torch.autograd.grad(model.fact_score(roles, values), parameters)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    assert any(float(gradient.abs().sum()) > 0 for gradient in ours)


def by_formula(model, facts, row, position, candidate):
    """The paper's formula on the pairs of the fact with a candidate in place."""
    slots = slice(int(facts.offsets[row]), int(facts.offsets[row + 1]))
    parts = [int(facts.head[row]), int(facts.relation[row]), int(facts.tail_entity[row])]
    for pair in zip(facts.qualifier_relation[slots].tolist(), facts.qualifier_entity[slots].tolist(), strict=True):
        parts += pair
    parts[position] = candidate
    head, relation, tail, *others = parts
    count = facts.sizes.relations
    roles = [relation, count + relation, *(2 * count + one for one in others[::2])]
    with torch.no_grad():
        return float(model.fact_score(torch.tensor(roles), torch.tensor([head, tail, *others[1::2]])))


def test_whole_facts_and_swept_candidates_score_by_the_formula():
    check_by_formula(model_for("nalp", FACTS), by_formula)


def test_a_further_pair_can_only_lower_features():
    model = model_for("nalp", FACTS)
    shown = torch.ones(5, dtype=torch.bool)
    few = whole(with_qualifiers(FACTS, [(0, 3), (1, 4)]), 0)
    more = whole(with_qualifiers(FACTS, [(0, 3), (1, 4), (3, 2)]), 0)
    before = lowest_features(model.channels, few, None, shown[:4])
    after = lowest_features(model.channels, more, None, shown)
    assert bool((after <= before).all())
    assert bool((after < before).any())


def test_parameters_are_those_of_the_paper():
    sizes = Sizes(9, 4)  # with one token for unknown literals there are ten values
    model = Nalp(sizes, NalpSettings(dimension=8, filters=6, hidden=5), model_for("nalp", FACTS).literals)
    published, roles_there, roles_here = 291, 4, 12
    assert sum(p.numel() for p in model.parameters()) == published + (roles_here - roles_there) * 8


def test_negatives_exchange_relations_as_often_as_there_are_of_them():
    assert corruption_of(model_for("nalp", FACTS)) == Corruption()
    changed = model_for("nalp", FACTS, relation_share=0.5, pool="all", negatives=3, loss="softmax")
    assert corruption_of(changed) == Corruption(3, relations=0.5, pool="all", loss="softmax")


def test_normalisation_is_torchs_on_the_rows_that_count():
    torch.manual_seed(0)
    for shape in ((7, 4), (7, 4, 3)):
        x = torch.randn(shape)
        counted = torch.tensor([True, True, False, True, False, True, True])
        ours, theirs = MaskedBatchNorm(4), torch.nn.BatchNorm1d(4)
        torch.testing.assert_close(ours(x, counted)[counted], theirs(x[counted]))
        torch.testing.assert_close(ours.running_mean, theirs.running_mean)
        torch.testing.assert_close(ours.running_variance, theirs.running_var)
        torch.testing.assert_close(ours.eval()(x, counted), theirs.eval()(x))
    before = ours.running_mean.clone()
    ours.train()(x, torch.zeros(7, dtype=torch.bool))
    assert torch.equal(ours.running_mean, before), "a batch in which nothing counts leaves no trace"


SETTINGS = {
    "batch_size": 32,
    "optimiser": {"learning_rate": 2e-3},
    "schedule": {"shape": "steps", "decay": 1.0},
    "model": {"dimension": 16, "filters": 12, "hidden": 20},
}
EXPECTED = [0.655659, 0.696698, 0.667316, 0.717421, 0.688009]


def test_the_first_losses_are_as_expected():
    _, losses, _ = trained("nalp", small_graph(), SETTINGS, 5)
    assert losses == pytest.approx(EXPECTED, rel=2e-4)
