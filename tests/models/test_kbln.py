"""KBLN: DistMult and the numeric expert, whose sums over existing literals equal the sums over everything."""

from __future__ import annotations

import pytest
import torch

from hynt.graph.fact_table import HEAD, TAIL
from hynt.models.contract import EntityIds, EntityRange
from hynt.models.kbln import Kbln, KblnSettings
from hynt.objectives.attribute_triples import AttributeTriples
from hynt.objectives.number_distribution import NumberHeadFit
from hynt.runs.settings import Optimiser
from hynt.training.optimisation import Optimisation
from hynt.training.step import EagerStep
from tests.models.triples import CPU, ask, facts_from, first_losses, heads, only, tails, tiny_facts, trainable_count

FORMS = {
    "released": {},
    "masked": {"mask_missing": True},
    "by relation": {"per_relation_stats": True},
    "reciprocal": {"directions": "reciprocal", "per_relation_stats": True, "mask_missing": True},
}


def model_of(facts, **settings):
    torch.manual_seed(0)
    return Kbln.build(facts.sizes, facts, KblnSettings(dimension=8, **settings)).eval()


def test_it_has_as_many_parameters_as_it_should():
    model = model_of(tiny_facts())
    assert trainable_count(model, "number_head") == 124
    assert trainable_count(model) == 124 + 27


def test_the_first_losses_are_as_ever():
    assert first_losses("kbln") == pytest.approx(LOSSES, rel=1e-4)


LOSSES = [0.891785, 0.800214, 0.87518, 0.835633, 0.813401]


def obvious(model, facts, position):
    """Every row, candidate and attribute, one by one."""
    settings, found = model.settings, []
    for head, relation, tail in zip(facts.head.long(), facts.relation.long(), facts.tail_entity.long(), strict=True):
        known = tail if position == HEAD else head
        turned = settings.directions == "reciprocal" and position == HEAD
        row = relation + (facts.sizes.relations if turned else 0)
        by = relation if settings.per_relation_stats else 0
        scores = []
        for candidate in range(facts.sizes.entities):
            score = (model.entities[known] * model.relations[row] * model.entities[candidate]).sum()
            for a in range(model.literals.shape[1]):
                if settings.mask_missing and not (model.has[known, a] and model.has[candidate, a]):
                    continue
                centre = -model.centre[by, a] if turned else model.centre[by, a]
                apart = model.literals[known, a] - model.literals[candidate, a] - centre
                score = score + model.numeric[row, a] * torch.exp(-apart.square() / model.spread[by, a])
            scores.append(score)
        found.append(torch.stack(scores))
    return torch.stack(found).detach()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("position", [HEAD, TAIL])
def test_scores_equal_those_written_out(form, position):
    facts = only(tiny_facts(), numeric=False)
    model = model_of(tiny_facts(), **FORMS[form])
    whole = obvious(model, facts, position)
    torch.testing.assert_close(ask(model, facts, position), whole)
    torch.testing.assert_close(ask(model, facts, position, EntityRange(3, 8)), whole[:, 3:8])
    chosen = torch.tensor([7, 0, 3])
    torch.testing.assert_close(ask(model, facts, position, EntityIds(chosen)), whole[:, chosen])


def distmult(model, facts):
    queries = model.entities[facts.head.long()] * model.relations[facts.relation.long()]
    return (queries @ model.entities.t()).detach()


def test_without_weights_it_is_distmult():
    facts = only(tiny_facts(), numeric=False)
    model = model_of(tiny_facts(), numeric_init="zeros")
    torch.testing.assert_close(tails(model, facts), distmult(model, facts))


def test_literals_that_all_share_change_no_rank():
    everybody = facts_from(
        [(f"e{i}", "likes", f"e{(i + 1) % 5}") for i in range(5)]
        + [(f"e{i}", "age", 3) for i in range(5)]
        + [(f"e{i}", "size", 8) for i in range(5)]
    )
    links = only(everybody, numeric=False)
    model = model_of(everybody)
    apart = tails(model, links) - distmult(model, links)
    torch.testing.assert_close(apart, apart[:, :1].expand_as(apart))


def test_the_unit_of_a_literal_does_not_matter():
    facts = only(tiny_facts(), numeric=False)
    model = model_of(tiny_facts())
    before = tails(model, facts)
    model.literals[:, 1] *= 3
    model.cell_value[model.cell_attribute == 1] *= 3
    model.centre[:, 1] *= 3
    model.spread[:, 1] *= 9
    torch.testing.assert_close(tails(model, facts), before)


def test_differences_have_a_direction():
    facts = only(tiny_facts(), numeric=False)
    model = model_of(tiny_facts())
    every = torch.arange(len(facts))
    forth = tails(model, facts)[every, facts.tail_entity.long()]
    back = heads(model, facts)[every, facts.head.long()]
    assert not torch.allclose(forth, back, atol=1e-3)
    model.centre.zero_()
    forth = tails(model, facts)[every, facts.tail_entity.long()]
    back = heads(model, facts)[every, facts.head.long()]
    torch.testing.assert_close(forth, back)


def test_means_and_variances_are_those_of_the_triplets():
    facts = tiny_facts()
    model = model_of(facts)
    links = only(facts, numeric=False)
    apart = (model.literals[links.head.long()] - model.literals[links.tail_entity.long()]).double()
    torch.testing.assert_close(model.centre[0].double(), apart.mean(0), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(model.spread[0].double(), apart.var(0, unbiased=False) + 1e-6, atol=1e-6, rtol=1e-5)


def test_a_cell_with_several_values_has_the_last_or_the_mean():
    facts = facts_from([("a", "to", "b"), ("a", "age", 0), ("a", "age", 8), ("a", "age", 4), ("b", "age", 10)])
    triples = AttributeTriples.of(facts)
    torch.testing.assert_close(triples.cells("last").value, torch.tensor([0.4, 1.0]))
    torch.testing.assert_close(triples.cells("mean").value, torch.tensor([0.4, 1.0]))
    values, has = triples.table(triples.cells("mean"))
    assert has.all()
    assert values.shape == (2, 1)
    uneven = AttributeTriples.of(facts_from([("a", "to", "b"), ("a", "age", 0), ("a", "age", 8), ("b", "age", 10)]))
    torch.testing.assert_close(uneven.cells("last").value, torch.tensor([0.8, 1.0]))
    torch.testing.assert_close(uneven.cells("mean").value, torch.tensor([0.4, 1.0]))


def test_the_head_finds_the_least_squares_and_moves_nothing_else():
    facts = facts_from(
        [("e0", "to", "e1")] + [(f"e{i % 30}", "age", (7 * i) % 41) for i in range(60)] + [("e1", "size", 5)]
    )
    model = model_of(facts)
    with torch.no_grad():
        model.entities.normal_()
    stream = NumberHeadFit(facts, 64)
    before = {name: value.clone() for name, value in model.named_parameters()}
    optimisation = Optimisation(list(model.number_head.parameters()), Optimiser(0.05), CPU)
    runner = EagerStep(model, stream, optimisation, CPU, bf16=False)
    for epoch in range(400):
        optimisation.set_rate(0.05 * (1 - epoch / 400))
        runner.run(stream.epoch(0, epoch).items(0), epoch)
    moved = {name for name, value in model.named_parameters() if not torch.equal(value, before[name])}
    assert moved == {"number_head.weight", "number_head.bias"}
    assert all(p.grad is None for name, p in model.named_parameters() if not name.startswith("number_head"))
    triples = stream.triples
    ages = triples.attribute == triples.attribute[0]
    inputs = torch.cat([before["entities"][triples.entity[ages]], torch.ones(int(ages.sum()), 1)], 1).double()
    target = triples.value[ages].double().unsqueeze(1)
    best = (inputs @ torch.linalg.lstsq(inputs, target).solution - target).square().mean()
    found = model.number_head(model.entities[triples.entity[ages]], triples.attribute[ages]) - triples.value[ages]
    assert found.square().mean().item() == pytest.approx(best.item(), rel=1e-3)
