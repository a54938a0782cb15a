"""MT-KGNN: DistMult and two networks for numbers, each with its own optimiser."""

from __future__ import annotations

import pytest
import torch

from hynt.models.mt_kgnn import MtKgnn, MtKgnnSettings
from hynt.objectives.attribute_triples import AlternatingTasks, NumberShape
from hynt.objectives.streams import PhaseSettings
from hynt.runs.settings import Optimiser
from hynt.training.optimisation import Optimisation
from hynt.training.step import EagerStep
from tests.models.triples import CPU, facts_from, first_losses, heads, numbers, only, tails, tiny_facts, trainable_count


def model_of(facts, **settings):
    torch.manual_seed(0)
    return MtKgnn.build(facts.sizes, facts, MtKgnnSettings(dimension=8, **settings)).eval()


def number_step(stream, model, chosen, weights):
    return stream.loss_for(NumberShape(chosen.shape[1]))(model, (chosen, weights))


def test_it_has_as_many_parameters_as_it_should():
    assert trainable_count(model_of(tiny_facts())) == 3738


def test_the_first_losses_are_as_ever():
    assert first_losses("mt-kgnn") == pytest.approx(LOSSES, rel=1e-4)


LOSSES = [0.696538, 1.009005, 0.692021, 0.112167, 0.693148]  # links and numbers by turns


def test_head_and_tail_may_be_exchanged():
    facts = only(tiny_facts(), numeric=False)
    model = model_of(facts)
    every = torch.arange(len(facts))
    forth = tails(model, facts)[every, facts.tail_entity.long()]
    back = heads(model, facts)[every, facts.head.long()]
    torch.testing.assert_close(forth, back)


def test_the_loss_is_a_mean_over_numbers_not_over_pairs_of_them():
    facts = tiny_facts()
    model, stream = model_of(facts), AlternatingTasks(facts, 4, 0.1, 4)
    chosen = torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7]])
    triples = stream.triples
    expected = 0.0
    for side, network in enumerate((model.numbers_of_heads, model.numbers_of_tails)):
        each = [
            (network(triples.entity[i : i + 1], triples.attribute[i : i + 1]) - triples.value[i]).square().item()
            for i in chosen[side].tolist()
        ]
        expected += sum(each) / 4
    assert number_step(stream, model, chosen, torch.ones(2, 4)).total.item() == pytest.approx(expected)


def test_an_entity_without_numbers_learns_nothing_from_them():
    facts = tiny_facts()
    model, stream = model_of(facts).train(), AlternatingTasks(facts, 64, 0.1, 4)
    items = stream.epoch(0, 0).items(1)
    assert isinstance(items.shape, NumberShape)
    assert 0 < float(items.tensors[1].mean()) < 1  # some ends of triplets have no number
    stream.loss_for(items.shape)(model, items.tensors).total.backward()
    has = torch.zeros(10, dtype=torch.bool)
    has[stream.triples.entity] = True
    assert bool((model.entities.grad[~has] == 0).all())
    assert bool((model.entities.grad[has] != 0).any())


def test_each_network_takes_numbers_of_its_own_end():
    facts = facts_from([("a", "to", "b"), ("a", "age", 1), ("b", "age", 2), ("b", "size", 3)])
    stream = AlternatingTasks(facts, 32, 0.1, 0)
    chosen = stream.epoch(0, 0).items(1).tensors[0]
    owner = stream.triples.entity[chosen]
    assert owner[0].unique().tolist() == [int(facts.head[0])]
    assert owner[1].unique().tolist() == [int(facts.tail_entity[0])]
    assert len(stream.triples.attribute[chosen[1]].unique()) == 2


def test_the_networks_know_nothing_of_each_other():
    facts = only(tiny_facts(), numeric=True)
    model = model_of(facts)
    before = numbers(model, facts)
    with torch.no_grad():
        for parameter in model.of_tails.parameters():
            parameter.zero_()
    assert torch.equal(numbers(model, facts), before)


def test_numbers_of_all_candidates_are_those_of_each():
    facts = only(tiny_facts(), numeric=True)
    model = model_of(facts, average_networks=True)
    attribute = model.attributes.of_relation[facts.relation.long()]
    every = torch.arange(facts.sizes.entities)
    for row, scores in enumerate(heads(model, facts)):
        predicted = model.numbers(every, attribute[row].expand(len(every)))
        torch.testing.assert_close(scores, -(predicted - facts.tail_number[row]).abs())


def test_links_and_numbers_take_turns_and_numbers_come_last():
    stream = AlternatingTasks(tiny_facts(), 4, 0.1, 4)
    epoch = stream.epoch(0, 0)
    kinds = ["number" if isinstance(epoch.items(i).shape, NumberShape) else "link" for i in range(len(epoch))]
    links = len(epoch.links)
    assert kinds == ["link", "number"] * links + ["number"] * 4
    assert bool(epoch.weights[links:].all())


def test_a_graph_without_numbers_trains_on_links_alone():
    facts = facts_from([("a", "to", "b"), ("b", "to", "c")])
    epoch = AlternatingTasks(facts, 4, 0.1, 4).epoch(0, 0)
    assert len(epoch) == len(epoch.links)
    assert not isinstance(epoch.items(0).shape, NumberShape)


def test_each_task_has_moments_of_its_own_for_the_entities():
    facts = tiny_facts()
    model = model_of(facts).train()
    (phase,) = model.phases(facts, PhaseSettings(batch_size=4, epochs=1))
    stream, first, second = phase.stream, phase.parameters, phase.second
    optimisation = Optimisation(first, Optimiser(), CPU, second)
    runner = EagerStep(model, stream, optimisation, CPU, bf16=False)
    epoch = stream.epoch(0, 0)
    untouched = model.of_heads.inner.weight.clone()
    runner.run(epoch.items(0), 0)
    assert [int(step) for step in optimisation.steps] == [1] * len(first) + [0] * len(second)
    assert torch.equal(model.of_heads.inner.weight, untouched)
    relations = model.relations.clone()
    runner.run(epoch.items(1), 1)
    assert [int(step) for step in optimisation.steps] == [1] * len(first) + [1] * len(second)
    assert torch.equal(model.relations, relations)
    assert not torch.equal(optimisation.means[0], optimisation.means[len(first)])
