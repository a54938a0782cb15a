"""Hy-Transformer: roles instead of positions, tables normed and dropped as a whole, one masked token."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from hynt.batches.buckets import layout_of
from hynt.batches.masked_batch import mask
from hynt.evaluation.evaluator import evaluate
from hynt.models.contract import Entities, Position, Task, Tokens
from hynt.models.hy_transformer import HyTransformer, HyTransformerSettings
from tests.models.first_steps import trained
from tests.models.small_models import facts_of
from tests.training.small_graph import forty_facts, small_graph

SMALL = HyTransformerSettings(dimension=16, layers=2, heads=2, feedforward=24, dropout=0.0, table_dropout=0.0)


def model_for(facts, seed=0, **changes):
    torch.manual_seed(seed)
    model = HyTransformer.build(facts.sizes, facts, replace(SMALL, **changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def ask(facts, row, position, wider=0):
    count = int(facts.qualifier_counts()[row]) + wider
    batch, _ = mask(facts, torch.tensor([row]), torch.tensor([position]), layout_of([(1, count)]))
    return batch


def scores(model, facts, position, row=0):
    return model.score(model.read(ask(facts, row, position)), Tokens())


def test_the_order_of_qualifiers_does_not_matter():
    facts = facts_of([3], seed=5, literals=True)
    model = model_for(facts, qualifier_values=1.0)
    order = torch.tensor([2, 0, 1, 3])
    names = ("relation", "entity", "value", "number", "is_number")
    mixed = replace(facts, **{f"qualifier_{name}": getattr(facts, f"qualifier_{name}")[order] for name in names})
    for position, moved in ((0, 0), (2, 2), (4, 6)):
        torch.testing.assert_close(scores(model, facts, position), scores(model, mixed, moved), rtol=1e-4, atol=1e-5)


def test_the_table_is_normed_and_the_hidden_row_is_no_candidate():
    facts = facts_of([1, 0], literals=True)
    model = HyTransformer.build(facts.sizes, facts, SMALL).eval()
    question = model.read(ask(facts, 0, 2))
    torch.testing.assert_close(question.table.mean(1), torch.zeros(len(question.table)), rtol=0, atol=1e-5)
    torch.testing.assert_close(question.table.var(1, correction=0), torch.ones(len(question.table)), rtol=0, atol=1e-2)
    tokens = facts.sizes.entities + facts.sizes.literals
    assert model.score(question, Tokens()).shape == (1, tokens)
    with torch.no_grad():
        model.entity[tokens] = torch.linspace(-1e3, 1e3, 16)
    torch.testing.assert_close(model.read(ask(facts, 0, 2)).table[:tokens], question.table[:tokens])


def test_dropped_entries_are_the_same_for_reading_and_scoring():
    facts = facts_of([0, 1], literals=True)
    model = model_for(facts, table_dropout=0.5).train()
    question = model.read(ask(facts, 1, 2))
    assert (question.table == 0).float().mean() == pytest.approx(0.5, abs=0.15)
    expected = question.encoded @ question.table[: facts.sizes.entities].t()
    torch.testing.assert_close(model.score(question, Entities()), expected)
    assert not torch.equal(question.table == 0, model.read(ask(facts, 1, 2)).table == 0)


def test_a_head_is_the_object_of_the_reverse_relation():
    facts = facts_of([0, 0, 0, 0, 0], seed=1, literals=True)
    row = int(torch.nonzero(~facts.tail_is_number)[0])
    model = model_for(facts)
    swapped = replace(facts, head=facts.tail_entity, tail_entity=facts.head)
    direct, reverse = model.relation.detach()[: facts.sizes.relations], model.relation.detach()[facts.sizes.relations :]
    head = scores(model, facts, 0, row)
    with torch.no_grad():
        model.relation.copy_(torch.cat([reverse, direct]))
    torch.testing.assert_close(scores(model, swapped, 2, row), head)


def test_the_outcome_of_the_hidden_value_is_read():
    facts = facts_of([3], literals=True)
    model = model_for(facts, qualifier_values=1.0)
    seen = []
    encoder = model.encoder
    model.encoder = type("Spy", (torch.nn.Module,), {"forward": lambda self, *a: (seen.append(a[2]), encoder(*a))[1]})()
    model.read(ask(facts, 0, 6))
    assert seen[0].tolist() == [6]
    model.read(ask(facts, 0, 0))
    assert seen[1].tolist() == [2]


def test_values_of_qualifiers_are_answered_where_they_were_asked_for():
    facts = facts_of([1], literals=True)
    assert (Task.LINK, Position.QUALIFIER_VALUE) not in model_for(facts).answers
    assert (Task.LINK, Position.QUALIFIER_VALUE) in model_for(facts, qualifier_values=0.5).answers


def test_parameters_are_those_of_the_paper_without_padding():
    facts = facts_of([1, 2], literals=True)
    model = HyTransformer.build(facts.sizes, facts, HyTransformerSettings(dimension=200))
    d, f, layers = 200, 512, 2
    entities, relations = facts.sizes.entities + facts.sizes.literals, facts.sizes.relations
    tables = (entities + 1) * d + 2 * relations * d + 4 * d + 5 * d
    formula = tables + layers * (4 * d * d + 2 * d * f + 9 * d + f) + d * d + d
    assert sum(parameter.numel() for parameter in model.parameters()) == formula


SETTINGS = {
    "batch_size": 32,
    "optimiser": {"learning_rate": 1e-3, "clip": 1.0},
    "losses": {"smoothing": 0.1},
    "model": {"dimension": 16, "layers": 1, "heads": 2, "feedforward": 24, "qualifier_values": 0.5},
}
EXPECTED = [1.249094, 1.109561, 1.312434, 1.170417, 1.073277]


def test_the_first_losses_are_as_expected():
    _, losses, _ = trained("hy-transformer", small_graph(), SETTINGS, 5)
    assert losses == pytest.approx(EXPECTED, rel=2e-4)


def test_a_few_facts_are_learnt_by_heart():
    graph = forty_facts()
    settings = SETTINGS | {
        "batch_size": 64,
        "losses": {"smoothing": 0.0},
        "optimiser": {"learning_rate": 2e-3},
        "model": {
            "dimension": 32,
            "layers": 1,
            "heads": 2,
            "feedforward": 64,
            "qualifier_values": 1.0,
            "dropout": 0.0,
            "table_dropout": 0.0,
        },
    }
    model, _, data = trained("hy-transformer", graph, settings, 400)
    found = evaluate(model, graph, data.scaling, "train", literals=data.literals)
    assert found.metric("link.all.mrr") > 0.9
    assert found.metric("number.all.rmse") < 0.1
