"""HINGE: convolutions as sums over rows, the minimum, its size and its first losses."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from hynt.batches.buckets import layout_of
from hynt.batches.fact_tensors import Sizes
from hynt.batches.masked_batch import fill, mask
from hynt.kernels.swept_minimum import SweptMinimum, block
from hynt.kernels.triplet_sweep import score_whole, sweep
from hynt.models.contract import Entities, EntityIds, Relations
from hynt.models.hinge import Hinge, HingeSettings
from tests.models.fact_scorers import (
    FACTS,
    asked_of,
    check_by_formula,
    corruption_of,
    model_for,
    scored,
    whole,
    with_qualifiers,
)
from tests.models.first_steps import trained
from tests.training.small_graph import small_graph

PAIRS = [(0, 3), (1, 4), (3, 2)]
interpreted = pytest.mark.skipif(
    torch.cuda.is_available() or find_spec("triton") is None,
    reason="kernels are compiled here; make test-gpu holds them",
)


def test_the_formula_is_that_of_plain_convolutions_over_images():
    model = model_for("hinge", FACTS)
    triplet, pairs = torch.randn(3, 8), torch.randn(4, 2, 8)

    def features(layer, image):
        found = torch.nn.functional.conv2d(image[None, None], layer.weight.unsqueeze(1), layer.bias)[0, :, 0]
        norm = layer.norm
        found = (found - norm.running_mean[:, None]) / (norm.running_variance[:, None] + norm.epsilon).sqrt()
        return torch.relu(found * norm.weight[:, None] + norm.bias[:, None]).flatten()

    each = [features(model.of_triplet, triplet)]
    each += [features(model.of_qualifier, torch.cat([triplet, pair])) for pair in pairs]
    torch.testing.assert_close(model.fact_score(triplet, pairs), model.output(torch.stack(each).amin(0)).squeeze())


def by_formula(model, facts, row, position, candidate):
    """The paper's formula on the fact with a candidate in place, part by part."""
    count = int(facts.qualifier_counts()[row])
    slots = slice(int(facts.offsets[row]), int(facts.offsets[row]) + count)
    ids = [int(facts.head[row]), int(facts.relation[row]), int(facts.tail_entity[row])]
    pairs = zip(facts.qualifier_relation[slots].tolist(), facts.qualifier_entity[slots].tolist(), strict=True)
    ids += [part for pair in pairs for part in pair]
    ids[position] = candidate
    vectors = [(model.relation if place % 2 else model.entity)[one] for place, one in enumerate(ids)]
    qualifiers = torch.stack(vectors[3:]).view(count, 2, -1) if count else torch.zeros(0, 2, len(vectors[0]))
    with torch.no_grad():
        return float(model.fact_score(torch.stack(vectors[:3]), qualifiers))


def test_whole_facts_and_swept_candidates_score_by_the_formula():
    check_by_formula(model_for("hinge", FACTS), by_formula)


def test_head_and_tail_are_not_alike():
    model = model_for("hinge", FACTS)
    fact = with_qualifiers(FACTS, PAIRS)
    turned = replace(fact, head=fact.tail_entity, tail_entity=fact.head)
    assert scored(model, whole(fact, 0)) != pytest.approx(scored(model, whole(turned, 0)), abs=1e-4)


def test_a_plain_triplet_does_not_ask_the_second_convolution():
    model = model_for("hinge", FACTS)
    fact = with_qualifiers(FACTS, [])
    before = scored(model, whole(fact, 0, extra=2))
    assert before == pytest.approx(scored(model, whole(fact, 0)))
    with torch.no_grad():
        for parameter in model.of_qualifier.parameters():
            parameter.add_(1.0)
    assert scored(model, whole(fact, 0, extra=2)) == before


def test_a_further_qualifier_can_only_lower_features():
    model = model_for("hinge", FACTS)
    found = []
    model.finish = lambda triplet, lowest, has_any: found.append(torch.minimum(triplet, lowest)) or lowest[:, 0]
    for count in (1, 2, 3):
        scored(model, whole(with_qualifiers(FACTS, PAIRS[:count]), 0))
    assert bool((found[1] <= found[0]).all())
    assert bool((found[2] <= found[1]).all())
    assert bool((found[2] < found[0]).any())


def test_parameters_are_those_of_the_paper():
    model = Hinge(Sizes(9, 4), HingeSettings(dimension=8, filters=5), model_for("hinge", FACTS).literals)
    assert sum(p.numel() for p in model.parameters()) == 293


def test_a_fair_coin_decides_between_values_and_relations():
    assert corruption_of(model_for("hinge", FACTS)).relations == 0.5


SETTINGS = {
    "batch_size": 32,
    "optimiser": {"learning_rate": 2e-3},
    "schedule": {"shape": "steps", "decay": 1.0},
    "model": {"dimension": 12, "filters": 6},
}
EXPECTED = [0.809602, 0.701001, 0.665773, 0.758344, 0.672776]


def test_the_first_losses_are_as_expected():
    _, losses, _ = trained("hinge", small_graph(), SETTINGS, 5)
    assert losses == pytest.approx(EXPECTED, rel=2e-4)


@interpreted
@pytest.mark.parametrize("position", range(3 + 2 * 2))
def test_one_kernel_makes_the_scores_that_pairs_written_out_make(position, monkeypatch):
    model = model_for("hinge", FACTS)
    row = int(torch.nonzero(FACTS.qualifier_counts() >= 2)[0])
    plain = int(torch.nonzero(FACTS.qualifier_counts() == 0)[0])
    candidates = Relations() if position % 2 else Entities()
    asked = [(asked_of(FACTS, row, position, extra=1), candidates), (asked_of(FACTS, plain, 0), Entities())]
    with torch.no_grad():
        questions = [(model.read(batch), candidates) for batch, candidates in asked]
        expected = [model.score(question, candidates) for question, candidates in questions]
        monkeypatch.setattr(SweptMinimum, "serves", lambda self, ids: True)
        for (question, candidates), scores in zip(questions, expected, strict=True):
            torch.testing.assert_close(model.score(question, candidates), scores, rtol=1e-4, atol=1e-5)


@interpreted
def test_a_swept_score_does_not_depend_on_what_else_is_asked():
    from hynt.kernels.convolved_minimum_kernel import swept_scores

    generator = torch.Generator().manual_seed(0)
    weight, a, b, c, d = (torch.randn(*size, 70, generator=generator) for size in ((), (3,), (130,), (3,), (130,)))
    whole = swept_scores(weight, a, b, c, d)
    torch.testing.assert_close(whole, block(weight, a, b, c, d))
    assert torch.equal(swept_scores(weight, a[1:2], b[120:], c[1:2], d[120:]), whole[1:2, 120:])


@interpreted
@pytest.mark.parametrize("segments", [[(2, 0), (1, 1), (2, 4)], [(3, 0)], [(2, 8)]])
@pytest.mark.parametrize("dimension, filters, held", [(8, 5, 8), (8, 9, 3), (40, 3, 8)])
def test_the_kernel_gives_the_scores_gradients_and_statistics_of_the_plain_form(
    segments, dimension, filters, held, monkeypatch
):
    from hynt.kernels import convolved_minimum_kernel

    monkeypatch.setattr(convolved_minimum_kernel, "HELD", held)  # with 3, some facts have more qualifiers than that
    layout = layout_of(segments)
    fits = {0: [0, 5], 1: [1], 4: [2, 3], 8: [3, 4]}
    rows = torch.tensor(
        [fits[capacity][row % len(fits[capacity])] for size, capacity in segments for row in range(size)]
    )
    batch, _ = mask(FACTS, rows, torch.zeros_like(rows), layout)
    batch = fill(batch, FACTS.head[rows].long(), torch.zeros_like(rows))
    real = torch.ones(len(rows), dtype=torch.bool)
    real[1] = False
    outer = torch.randn(len(rows), generator=torch.Generator().manual_seed(1))
    found = []
    for is_fused in (False, True):
        model = model_for("hinge", FACTS, dimension=dimension, filters=filters).train()
        scores = model.fused_scores(batch, real) if is_fused else model.score_facts(batch, real)
        (scores * outer).sum().backward()
        gradients = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
        statistics = {name: one for name, one in model.named_buffers() if "running" in name}
        found.append({"scores": scores.detach(), **statistics, **gradients})
    plain, fused = found
    for name in plain | fused:
        # A bias before a normalisation changes nothing, and so does a layer for qualifiers where there are none: their
        # gradients are 0, what rounding makes of it, or not there.
        expected, value = plain.get(name, torch.tensor(0.0)), fused.get(name, torch.tensor(0.0))
        torch.testing.assert_close(*torch.broadcast_tensors(value, expected), rtol=2e-4, atol=2e-5, msg=name)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("dimension, filters", [(8, 5), (100, 70), (256, 33)])
def test_kernels_on_a_gpu_give_what_the_plain_forms_give(dimension, filters):
    facts, rows = FACTS.to("cuda"), torch.tensor([0, 5, 1, 2, 3] * 40, device="cuda").sort(stable=True).values
    rows = torch.cat([rows[(rows == 0) | (rows == 5)], rows[rows == 1], rows[(rows == 2) | (rows == 3)]])
    batch, _ = mask(facts, rows, torch.zeros_like(rows), layout_of([(80, 0), (40, 1), (80, 4)]))
    batch = fill(batch, facts.head[rows].long(), torch.zeros_like(rows))
    real, found = torch.arange(200, device="cuda") % 7 > 0, []
    for is_fused in (False, True):
        model = model_for("hinge", FACTS, dimension=dimension, filters=filters).to("cuda").train()
        scores = model.fused_scores(batch, real) if is_fused else score_whole(model, batch, real)
        torch.nn.functional.softplus(scores).sum().backward()
        found.append([scores.detach(), model.entity.grad, model.of_triplet.weight.grad, model.of_qualifier.weight.grad])
    for plain, fused in zip(*found, strict=True):
        torch.testing.assert_close(fused, plain, rtol=1e-3, atol=1e-3 * float(plain.abs().max()))
    model, ids = model.eval(), torch.arange(300, device="cuda") % facts.sizes.entities
    for position in (0, 2, 4):
        asked, _ = mask(facts, rows[120:], torch.full_like(rows[120:], position), layout_of([(80, 4)]))
        question = model.read(asked)
        with torch.no_grad():
            swept = model.score(question, EntityIds(ids))
        torch.testing.assert_close(swept, sweep(model, question, ids).detach(), rtol=1e-3, atol=1e-3)
