"""LiteralE: the gate, and the three models behind it."""

from __future__ import annotations

import pytest
import torch

from hynt.errors import UsageError
from hynt.models.literale import Literale, LiteraleSettings, LiteralGate
from hynt.models.registry import build
from tests.models.triples import facts_from, first_losses, heads, numbers, only, tails, tiny_facts, trainable_count


def model_of(facts, **settings):
    torch.manual_seed(0)
    return Literale.build(facts.sizes, facts, LiteraleSettings(dimension=8, **settings)).eval()


@pytest.mark.parametrize(
    "settings, count",
    [
        ({}, 304),
        ({"gate": "linear"}, 208),
        ({"base": "complex"}, 608),
        ({"base": "conve"}, 1748),
        ({"missing": "mask-channel"}, 304 + 2 * 3 * 8),
        ({"directions": "reciprocal"}, 304 + 4 * 8),
    ],
)
def test_it_has_as_many_parameters_as_it_should(settings, count):
    model = model_of(tiny_facts(), **settings)
    assert trainable_count(model, "number_head") == count
    assert trainable_count(model) == count + 3 * (8 * model.parts + 1)


def test_the_gate_has_as_many_parameters_as_it_should():
    assert trainable_count(LiteralGate(8, 3)) == 192


@pytest.mark.parametrize("base", ["distmult", "complex", "conve"])
def test_the_first_losses_are_as_ever(base):
    assert first_losses("literale", base=base, directions="reciprocal") == pytest.approx(LOSSES[base], rel=1e-4)


LOSSES = {
    "distmult": [0.690259, 0.688845, 0.688264, 0.684598, 0.680764],
    "complex": [0.691423, 0.690389, 0.687012, 0.687495, 0.681431],
    "conve": [0.703231, 0.666097, 0.646252, 0.635271, 0.603898],
}


def test_a_closed_gate_leaves_the_model_behind():
    facts = only(tiny_facts(), numeric=False)
    model = model_of(tiny_facts())
    with torch.no_grad():
        model.gates[0].bias.fill_(-1e4)
    table = model.entities[0]
    expected = (table[facts.head.long()] * model.relations[0][facts.relation.long()]) @ table.t()
    torch.testing.assert_close(tails(model, facts), expected.detach())


def test_an_open_gate_leaves_only_the_bounded_part():
    gate = LiteralGate(8, 3)
    with torch.no_grad():
        gate.bias.fill_(1e4)
    entities, literals = 10 * torch.randn(20, 8), torch.rand(20, 3)
    found = gate(entities, literals)
    torch.testing.assert_close(found, torch.tanh(gate.changed(torch.cat([entities, literals], 1))))
    assert float(found.detach().abs().max()) <= 1


def test_the_gate_lies_between_the_entity_and_the_changed_one():
    gate = LiteralGate(8, 3)
    entities, literals = torch.randn(50, 8), torch.rand(50, 3)
    changed = torch.tanh(gate.changed(torch.cat([entities, literals], 1)))
    found = gate(entities, literals)
    assert bool((found >= torch.minimum(entities, changed) - 1e-6).all())
    assert bool((found <= torch.maximum(entities, changed) + 1e-6).all())


@pytest.mark.parametrize("base, symmetric", [("distmult", True), ("complex", False), ("conve", False)])
def test_only_distmult_takes_head_and_tail_alike(base, symmetric):
    facts = only(tiny_facts(), numeric=False)
    model = model_of(tiny_facts(), base=base)
    every = torch.arange(len(facts))
    forth = tails(model, facts)[every, facts.tail_entity.long()]
    back = heads(model, facts)[every, facts.head.long()]
    assert torch.allclose(forth, back, atol=1e-5) == symmetric


def test_complex_scores_are_the_real_part_of_the_product():
    facts = only(tiny_facts(), numeric=False)
    model = model_of(tiny_facts(), base="complex")
    table = torch.complex(*(gate(one, model.literals) for gate, one in zip(model.gates, model.entities, strict=True)))
    relation = torch.complex(*model.relations)[facts.relation.long()]
    expected = ((table[facts.head.long()] * relation) @ table.conj().t()).real
    torch.testing.assert_close(tails(model, facts), expected.detach())


def test_attributes_may_come_in_any_order():
    facts = only(tiny_facts(), numeric=False)
    model, order = model_of(tiny_facts()), torch.tensor([2, 0, 1])
    before = tails(model, facts)
    gate = model.gates[0]
    with torch.no_grad():
        model.literals.copy_(model.literals[:, order])
        gate.of_literals.weight.copy_(gate.of_literals.weight[:, order])
        gate.changed.weight[:, 8:] = gate.changed.weight[:, 8:][:, order].clone()
    model.eval()
    torch.testing.assert_close(tails(model, facts), before)


def test_missing_literals_read_zero_the_mean_or_are_marked():
    facts = facts_from([("a", "to", "b"), ("b", "to", "c"), ("a", "age", 0), ("b", "age", 10), ("b", "age", 5)])
    rows = {kind: model_of(facts, missing=kind).literals.tolist() for kind in ("zero", "mean", "mask-channel")}
    assert rows["zero"] == [[0.0], [0.5], [0.0]]
    assert rows["mean"] == [[0.0], [0.5], [0.5]]
    assert rows["mask-channel"] == [[0.0, 1.0], [0.5, 1.0], [0.0, 0.0]]


def test_what_is_kept_between_questions_follows_the_weights():
    facts = only(tiny_facts(), numeric=False)
    model = model_of(tiny_facts())
    with torch.no_grad():
        before = tails(model, facts)
        assert torch.equal(tails(model, facts), before)
        model.entities[0].mul_(2)
        changed = tails(model, facts)
        assert not torch.allclose(changed, before)
        # A captured step changes weights without Python seeing it; training mode and back must do.
        model.entities[0].data.mul_(2)
        model.train()
        model.eval()
        assert not torch.allclose(tails(model, facts), changed)


def test_the_head_sees_raw_or_gated_vectors():
    facts = only(tiny_facts(), numeric=True)
    raw, gated = model_of(tiny_facts()), model_of(tiny_facts(), head_input="gated")
    for model in (raw, gated):
        with torch.no_grad():
            model.number_head.weight.fill_(0.1)
    entity = facts.head.long()
    bias = raw.number_head.bias[raw.attributes.of_relation[facts.relation.long()]]
    torch.testing.assert_close(numbers(raw, facts), (0.1 * raw.entities[0][entity].sum(1) + bias).detach())
    enriched = gated.gates[0](gated.entities[0][entity], gated.literals[entity])
    torch.testing.assert_close(numbers(gated, facts), (0.1 * enriched.sum(1) + bias).detach())


def test_a_picture_too_small_is_refused():
    facts = tiny_facts()
    with pytest.raises(UsageError, match="a vector of 2 numbers makes no picture that ConvE could look at"):
        build("literale", facts.sizes, facts, {"dimension": 2, "base": "conve"})
