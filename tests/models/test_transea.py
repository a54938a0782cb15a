"""TransEA: unit vectors, translations, one bias per attribute."""

from __future__ import annotations

import pytest
import torch

from hynt.graph.fact_table import HEAD
from hynt.models.transea import Transea, TranseaSettings
from hynt.objectives.attribute_triples import TranslatedTriples
from hynt.runs.settings import Optimiser
from hynt.training.optimisation import Optimisation
from hynt.training.step import EagerStep
from tests.models.triples import CPU, facts_from, first_losses, heads, numbers, only, tails, tiny_facts, trainable_count


def model_of(facts, **settings):
    torch.manual_seed(0)
    return Transea.build(facts.sizes, facts, TranseaSettings(dimension=8, **settings)).eval()


def test_it_has_as_many_parameters_as_it_should():
    assert trainable_count(model_of(tiny_facts())) == 139


def test_the_first_losses_are_as_ever():
    assert first_losses("transea") == pytest.approx(LOSSES, rel=1e-4)


LOSSES = [5.246187, 5.41051, 5.135538, 5.422898, 4.819858]


@pytest.mark.parametrize("distance", ["l1", "squared-l2"])
def test_only_directions_matter(distance):
    facts = tiny_facts()
    model = model_of(facts, distance=distance)
    links, values = only(facts, numeric=False), only(facts, numeric=True)
    before = tails(model, links), heads(model, links), numbers(model, values)
    with torch.no_grad():
        model.entities[3] *= 5
        model.relations *= 0.1
        model.directions[1] *= 7
    for one, other in zip(before, (tails(model, links), heads(model, links), numbers(model, values)), strict=True):
        torch.testing.assert_close(one, other)


def test_an_exact_translation_has_no_distance_and_ranks_first():
    facts = facts_from([("a", "to", "b"), ("c", "to", "d")])
    model = model_of(facts)
    with torch.no_grad():
        model.entities.copy_(torch.eye(4, 8))
        # From e0 to e1 is √2 long; a unit relation gets there where the two lie 60° apart.
        model.entities[1] = torch.tensor([0.5, 0.75**0.5, 0, 0, 0, 0, 0, 0])
        model.relations[0] = model.entities[1] - model.entities[0]
    scores = tails(model, facts)[0]
    assert scores[1] == pytest.approx(0, abs=1e-6)
    assert scores.argmax() == 1
    assert heads(model, facts)[0].argmax() == 0


@pytest.mark.parametrize("share, still", [(1.0, ["relations"]), (0.0, ["directions", "bias"])])
def test_a_share_of_one_or_none_freezes_the_other_part(share, still):
    facts = tiny_facts()
    model = model_of(facts).train()
    stream = TranslatedTriples(facts, 16, 5.0, share)
    items = stream.epoch(0, 0).items(0)
    stream.loss_for(items.shape)(model, items.tensors).total.backward()
    moved = {name for name, p in model.named_parameters() if p.grad is not None and bool((p.grad != 0).any())}
    assert moved == {"entities", "relations", "directions", "bias"} - set(still)


def test_a_bias_moves_the_numbers_of_its_attribute_alone():
    facts = only(tiny_facts(), numeric=True)
    model = model_of(facts)
    before = numbers(model, facts)
    chosen = model.attributes.of_relation[facts.relation.long()] == 1
    with torch.no_grad():
        model.bias[1] += 0.25
    torch.testing.assert_close(numbers(model, facts) - before, chosen * 0.25)


def test_attributes_may_come_in_any_order():
    facts = only(tiny_facts(), numeric=True)
    model, order = model_of(facts), torch.tensor([2, 0, 1])
    before = numbers(model, facts)
    with torch.no_grad():
        model.directions.copy_(model.directions[order])
        model.bias.copy_(model.bias[order])
        model.attributes.of_relation.copy_(torch.argsort(order)[model.attributes.of_relation])
    torch.testing.assert_close(numbers(model, facts), before)


def test_who_has_a_number_is_who_is_predicted_nearest_to_it():
    facts = only(tiny_facts(), numeric=True)
    model = model_of(facts)
    attribute = model.attributes.of_relation[facts.relation.long()]
    every = torch.arange(facts.sizes.entities)
    for row, scores in enumerate(heads(model, facts)):
        predicted = model.numbers(every, attribute[row].expand(len(every)))
        torch.testing.assert_close(scores, -(predicted - facts.tail_number[row]).abs())


def test_twenty_numbers_can_be_learned_by_heart():
    facts = facts_from([("a", "to", "b")] + [(f"e{i // 2}", ("age", "size")[i % 2], (7 * i) % 20) for i in range(20)])
    torch.manual_seed(0)
    model = Transea.build(facts.sizes, facts, TranseaSettings(dimension=32))
    stream = TranslatedTriples(facts, 64, 5.0, 1.0)
    stream.rows = stream.rows.repeat(64)
    stream.item_count = 64
    runner = EagerStep(model, stream, Optimisation(list(model.parameters()), Optimiser(0.01), CPU), CPU, bf16=False)
    for epoch in range(300):
        runner.optimisation.set_rate(0.01 * (1 - epoch / 300))
        runner.run(stream.epoch(0, epoch).items(0), epoch)
    values = only(facts, numeric=True)
    assert float((numbers(model.eval(), values) - values.tail_number).abs().mean()) < 0.01


def test_false_triplets_are_false_and_everything_comes_once():
    facts = tiny_facts()
    stream = TranslatedTriples(facts, 5, 5.0, 0.5)
    true = set(zip(facts.head.tolist(), facts.relation.tolist(), facts.tail_entity.tolist(), strict=True))
    epoch = stream.epoch(3, 7)
    rows, asked, false, numeric = epoch.indices
    assert sorted(rows.tolist()) == list(range(12))
    assert bool(facts.tail_is_number[numeric].all())
    assert bool(epoch.weights.all())
    for row, position, entity in zip(rows.tolist(), asked.tolist(), false.tolist(), strict=True):
        h, r, t = (int(x[row]) for x in (facts.head, facts.relation, facts.tail_entity))
        assert ((entity, r, t) if position == HEAD else (h, r, entity)) not in true
    assert [epoch.items(i).shape for i in range(len(epoch))] == [(5, True), (5, True), (2, True)]
    again = stream.epoch(3, 7)
    assert torch.equal(epoch.indices, again.indices)
    assert not torch.equal(epoch.indices, stream.epoch(3, 8).indices)


def test_a_triplet_that_no_false_one_exists_for_counts_for_nothing():
    facts = facts_from([("a", "to", "a"), ("a", "to", "b"), ("b", "to", "a"), ("b", "to", "b")])
    epoch = TranslatedTriples(facts, 4, 5.0, 0.5).epoch(0, 0)
    assert not bool(epoch.weights.any())


def test_the_side_to_exchange_follows_how_many_stand_there():
    facts = facts_from([(f"e{i}", "in", "town") for i in range(3)])
    stream = TranslatedTriples(facts, 4, 5.0, 0.5)
    assert float(stream.tail_chance[0]) == pytest.approx(3 / 4)  # three heads a tail, one tail a head


def test_the_loss_sees_the_very_numbers_of_the_table():
    facts = tiny_facts()
    stream = TranslatedTriples(facts, 16, 5.0, 1.0)
    model = model_of(facts).train()
    with torch.no_grad():
        model.directions.zero_()
        model.bias.zero_()
    items = stream.epoch(0, 0).items(0)
    found = stream.loss_for(items.shape)(model, items.tensors)
    assert float(found.sums[1].detach()) == float(facts.tail_number[items.tensors[0][3]].sum())
