"""StarE: rotations, the graph encoder against sums written out, and what the decoder reads."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from hynt.batches.buckets import layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import mask
from hynt.batches.number_scaling import NumberScaling
from hynt.evaluation.evaluator import evaluate
from hynt.formats.from_python import graph_from_facts
from hynt.models.contract import Entities, Tokens
from hynt.models.stare import Stare, StareSettings, StarGraph, composed
from tests.models.first_steps import trained
from tests.models.small_models import facts_of
from tests.training.small_graph import forty_facts, small_graph

SMALL = StareSettings(
    dimension=16, graph_layers=2, layers=1, heads=2, feedforward=24, dropout=0.0, message_dropout=0.0, graph_dropout=0.0
)


def model_for(facts, seed=0, noise=0.3, **changes):
    torch.manual_seed(seed)
    model = Stare.build(facts.sizes, facts, replace(SMALL, **changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    return model


def ask(facts, row, position):
    count = int(facts.qualifier_counts()[row])
    batch, _ = mask(facts, torch.tensor([row]), torch.tensor([position]), layout_of([(1, count)]))
    return batch


def tensors(*facts):
    graph = graph_from_facts({"train": list(facts)})
    table = graph.split("train")
    return FactTensors.from_table(table, graph.vocabulary, NumberScaling.fit([table], graph.vocabulary))


def test_rotations_keep_lengths_and_reverse_ones_undo_them():
    facts = facts_of([0, 1], literals=True)
    model = Stare.build(facts.sizes, facts, SMALL)
    count = facts.sizes.relations
    x = torch.randn(count, 16)
    direct, reverse = model.relation[:count], model.relation[count:]
    there = composed(x, direct, "rotate")
    torch.testing.assert_close(there.norm(dim=1), x.norm(dim=1))
    torch.testing.assert_close(composed(there, reverse, "rotate"), x)


@pytest.mark.parametrize("how", ["multiply", "subtract", "correlate"])
def test_other_compositions(how):
    entity, relation = torch.randn(2, 3, 4).unbind(0)
    expected = {"multiply": entity * relation, "subtract": entity - relation}
    if how == "correlate":
        pairs = zip(entity, relation, strict=True)
        slow = [[sum(e[i] * r[(i + k) % 4] for i in range(4)) for k in range(4)] for e, r in pairs]
        expected["correlate"] = torch.tensor([[float(v) for v in row] for row in slow])
    torch.testing.assert_close(composed(entity, relation, how), expected[how])


def test_a_layer_is_the_sum_over_edges_written_out():
    facts = facts_of([0, 2, 1, 0, 3], seed=3, literals=True)
    model = model_for(facts, graph_layers=1)
    layer, graph = model.encoder[0], model.graph
    x, relations = model.entity.detach(), model.relation.detach()
    keep, total = 0.8, []
    for direction in range(2):
        gathered = torch.zeros(graph.tokens, 16)
        degree = torch.bincount(graph.receiver[direction], minlength=graph.tokens)
        for edge in range(len(facts)):
            into, out = int(graph.receiver[direction, edge]), int(graph.sender[direction, edge])
            z = torch.zeros(16)
            for slot in range(int(facts.offsets[edge]), int(facts.offsets[edge + 1])):
                key, value = int(graph.qualifier_relation[slot]), int(graph.qualifier_value[slot])
                z = z + composed(x[value], relations[key], "rotate")
            of_edge = keep * relations[graph.relation[direction, edge]] + (1 - keep) * z @ layer.of_qualifiers
            share = (degree[into] * degree[out]).float()
            share = share**-0.5 if share > 0 else torch.tensor(0.0)
            gathered[into] += share * composed(x[out], of_edge, "rotate") @ layer.message[direction]
        total.append(gathered)
    loop = composed(x, layer.loop_relation, "rotate") @ layer.loop
    expected = torch.tanh(layer.norm((sum(total) + loop) / 3))
    found, changed = layer(x, relations, graph)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(changed, relations @ layer.of_relations)


def test_a_sender_that_never_receives_is_silent():
    alone = StarGraph(tensors(("a", "r", "b")), "symmetric")
    assert alone.share.tolist() == [[0.0], [0.0]]
    both = StarGraph(tensors(("a", "r", "b"), ("b", "r", "a")), "symmetric")
    assert both.share.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert StarGraph(tensors(("a", "r", "b")), "mean").share.tolist() == [[1.0], [1.0]]


def test_the_graph_does_not_depend_on_the_order_of_facts_or_qualifiers():
    one = tensors(("a", "r", "b", [("k", "c"), ("l", "d")]), ("b", "r", "c"), ("c", "l", "a"))
    other = replace(
        one, qualifier_relation=one.qualifier_relation[[1, 0, 2]], qualifier_entity=one.qualifier_entity[[1, 0, 2]]
    )
    encoded = [model_for(facts).eval().encoded_graph()[0] for facts in (one, other)]
    torch.testing.assert_close(encoded[0], encoded[1])


def test_with_no_weight_on_qualifiers_nothing_depends_on_them():
    facts = facts_of([2, 1, 0, 2], seed=4, literals=True)
    model = model_for(facts, qualifier_weight=0.0, decoder_qualifiers=False)
    other = replace(facts, qualifier_entity=(facts.qualifier_entity + 1) % facts.sizes.entities)
    changed = model_for(other, qualifier_weight=0.0, decoder_qualifiers=False)
    one = model.score(model.read(ask(facts, 0, 0)), Tokens())
    torch.testing.assert_close(one, changed.score(changed.read(ask(other, 0, 0)), Tokens()))
    one.sum().backward()
    assert all(bool((layer.of_qualifiers.grad == 0).all()) for layer in model.encoder)


def test_the_decoder_sorts_qualifiers_and_tells_their_places_apart():
    facts = facts_of([3, 0], seed=5, literals=True)
    order = torch.tensor([2, 0, 1, 3])
    names = ("relation", "entity", "value", "number", "is_number")
    mixed = replace(facts, **{f"qualifier_{name}": getattr(facts, f"qualifier_{name}")[order] for name in names})
    model = model_for(facts)
    one, other = (model.score(model.read(ask(f, 0, 0)), Tokens()) for f in (facts, mixed))
    torch.testing.assert_close(one, other)
    assert torch.equal(model._positions(20)[-2:], model.position[-2:]), "places beyond the longest fact are its last"
    assert torch.equal(model._positions(8), model.position)


def test_candidates_are_encoded_by_the_graph_and_kept_until_a_weight_changes():
    facts = facts_of([0, 1, 2, 0, 0], literals=True)
    model = model_for(facts)
    with torch.no_grad():
        question = model.read(ask(facts, 0, 0))
        x, _ = model.encoded_graph()
        assert model.encoded_graph()[0] is x
        torch.testing.assert_close(model.score(question, Entities()), question.encoded @ x[: facts.sizes.entities].t())
        model.entity.mul_(1.5)
        changed, _ = model.encoded_graph()
    assert not torch.allclose(changed, x)


def test_parameters_are_those_of_the_paper_without_padding():
    facts = facts_of([1, 6], literals=True)
    model = Stare.build(facts.sizes, facts, StareSettings(dimension=200))
    d, f = 200, 512
    entities, relations, longest = facts.sizes.entities + facts.sizes.literals, facts.sizes.relations, 3 + 2 * 6
    graph = 2 * (5 * d * d + 3 * d)
    decoder = 2 * (4 * d * d + 2 * d * f + 9 * d + f) + (longest - 1) * d + d * d + d
    assert sum(p.numel() for p in model.parameters()) == entities * d + 2 * relations * d + graph + decoder


SETTINGS = {
    "batch_size": 32,
    "optimiser": {"learning_rate": 1e-3, "clip": 1.0},
    "losses": {"smoothing": 0.1},
    "model": {"dimension": 16, "graph_layers": 1, "layers": 1, "heads": 2, "feedforward": 24},
}
EXPECTED = [0.853047, 0.855047, 0.854384, 0.810941, 0.818671]


def test_the_first_losses_are_as_expected():
    _, losses, _ = trained("stare", small_graph(), SETTINGS, 5)
    assert losses == pytest.approx(EXPECTED, rel=2e-4)


def test_a_few_facts_are_learnt_by_heart():
    graph = forty_facts()
    settings = SETTINGS | {
        "batch_size": 64,
        "losses": {"smoothing": 0.0},
        "optimiser": {"learning_rate": 5e-3},
        "model": {
            "dimension": 32,
            "graph_layers": 1,
            "layers": 1,
            "heads": 2,
            "feedforward": 64,
            "dropout": 0.0,
            "message_dropout": 0.0,
            "graph_dropout": 0.0,
        },
    }
    model, _, data = trained("stare", graph, settings, 150)
    found = evaluate(model, graph, data.scaling, "train", literals=data.literals)
    assert found.metric("link.all.mrr") > 0.95
