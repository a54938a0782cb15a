"""GRAN: its edges, its one table, its loss, and what the paper's form implies."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as functional

from hynt.batches.buckets import layout_of
from hynt.batches.masked_batch import Masking, mask
from hynt.evaluation.evaluator import evaluate
from hynt.models.contract import Entities, Relations, ScaledNumber, Tokens
from hynt.models.gran import (
    EdgeLayer,
    Edges,
    FactNodes,
    Gran,
    GranSettings,
    attended,
    attended_written_out,
    edge_labels,
    edges_of,
)
from hynt.objectives.losses import LossSettings, smoothed_cross_entropy
from hynt.objectives.masked_facts import MaskedComponents, even_share
from tests.models.first_steps import trained
from tests.models.small_models import facts_of
from tests.training.small_graph import forty_facts, small_graph

SMALL = GranSettings(dimension=16, layers=2, heads=2, feedforward=24, dropout=0.0)


def model_for(facts, seed=0, **changes):
    torch.manual_seed(seed)
    model = Gran.build(facts.sizes, facts, replace(SMALL, **changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def ask(facts, row, position):
    count = int(facts.qualifier_counts()[row])
    batch, _ = mask(facts, torch.tensor([row]), torch.tensor([position]), layout_of([(1, count)]))
    return batch


@pytest.mark.parametrize("pairs", [0, 1, 4])
def test_edges_are_symmetric_and_of_four_kinds(pairs):
    labels = edge_labels(pairs, torch.device("cpu"))
    assert torch.equal(labels, labels.t())
    counts = torch.bincount(labels.flatten(), minlength=5).tolist()
    assert counts[1:] == [2, 2, 2 * pairs, 2 * pairs]
    if pairs:
        assert labels[0, 3] == 3
        assert labels[3, 3 + pairs] == 4
        assert pairs == 1 or labels[3, 4 + pairs] == 0


@pytest.mark.parametrize("by", [attended, attended_written_out])
def test_attention_is_that_of_the_formula(by):
    torch.manual_seed(0)
    pairs, heads, width = 2, 2, 3
    length = 3 + 2 * pairs
    labels = edge_labels(pairs, torch.device("cpu"))
    query, key, value = torch.randn(3, 1, length, heads, width).unbind(0)
    edge_key, edge_value = torch.randn(2, 4, width).unbind(0)
    present = torch.tensor([[True] * 4 + [False, True, False]])
    edges = edges_of(pairs, torch.device("cpu"), alike=False)
    found = by(query, key, value, present, edges, edge_key, edge_value, 0.0)
    for head in range(heads):
        for i in range(length):
            scores, values = [], []
            for j in range(length):
                kind = int(labels[i, j])
                biased = key[0, j, head] + (edge_key[kind - 1] if kind else 0)
                score = query[0, i, head] @ biased / width**0.5
                scores.append(score if present[0, j] else torch.tensor(float("-inf")))
                values.append(value[0, j, head] + (edge_value[kind - 1] if kind else 0))
            expected = (torch.stack(scores).softmax(0).unsqueeze(1) * torch.stack(values)).sum(0)
            torch.testing.assert_close(found[0, i, head], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("has_edges", [True, False])
def test_attention_written_out_agrees_for_the_one_node_asked_for(has_edges):
    torch.manual_seed(0)
    size, pairs, heads, width = 4, 1, 2, 3
    key, value = torch.randn(2, size, 3 + 2 * pairs, heads, width).unbind(0)
    query = torch.randn(size, 1, heads, width)
    present, place = torch.rand(size, 3 + 2 * pairs) < 0.7, torch.tensor([0, 4, 3, 1])
    present[:, :3] = True
    of_all = edges_of(pairs, torch.device("cpu"), alike=False)
    edges = Edges(*(one[place].unsqueeze(1) for one in of_all)) if has_edges else None
    tables = [torch.randn(4, width, requires_grad=has_edges) for _ in range(2)]
    found = [by(query, key, value, present, edges, *tables, 0.0) for by in (attended, attended_written_out)]
    torch.testing.assert_close(*found)
    if has_edges:
        torch.testing.assert_close(*(torch.autograd.grad(one.square().sum(), tables) for one in found))


def test_the_order_of_qualifiers_does_not_matter():
    facts = facts_of([3], seed=5, literals=True)
    model = model_for(facts)
    order = torch.tensor([2, 0, 1, 3])
    names = ("relation", "entity", "value", "number", "is_number")
    mixed = replace(facts, **{f"qualifier_{name}": getattr(facts, f"qualifier_{name}")[order] for name in names})
    for position, moved in ((0, 0), (1, 1), (2, 2), (3, 5), (4, 6)):
        kind = Relations() if position % 2 else Tokens()
        one = model.score(model.read(ask(facts, 0, position)), kind)
        other = model.score(model.read(ask(mixed, 0, moved)), kind)
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("edges", ["none", "alike", "typed"])
def test_only_kinds_of_edges_tell_head_from_tail(edges):
    facts = facts_of([0, 0, 0, 0, 0, 0], seed=2, literals=True)
    row = int(torch.nonzero(~facts.tail_is_number & (facts.head != facts.tail_entity))[0])
    model = model_for(facts, edges=edges)
    swapped = replace(facts, head=facts.tail_entity, tail_entity=facts.head)
    one, other = (model.score(model.read(ask(f, row, 1)), Relations()) for f in (facts, swapped))
    assert torch.allclose(one, other, rtol=1e-4, atol=1e-5) == (edges != "typed")


def test_without_edges_their_tables_get_no_gradient():
    facts = facts_of([2], literals=True)
    model = model_for(facts, edges="none")
    model.score(model.read(ask(facts, 0, 0)), Entities()).sum().backward()
    assert model.edge_key.grad is None
    assert model.edge_value.grad is None


def test_candidates_are_of_the_right_kind_and_scored_by_the_table_itself():
    facts = facts_of([1, 2], literals=True)
    model = model_for(facts)
    sizes = facts.sizes
    question = model.read(ask(facts, 1, 1))
    scores = model.score(question, Relations())
    assert scores.shape == (1, sizes.relations)
    rows = model.node[sizes.entities + sizes.literals : -1]
    torch.testing.assert_close(scores, question.encoded @ rows.t() + model.output_bias[-sizes.relations :])
    assert not any("output_weight" in name for name, _ in model.named_parameters())


def test_parameters_are_those_of_the_paper_without_dead_ones():
    facts = facts_of([1, 2], literals=True)
    settings = GranSettings()
    model = Gran.build(facts.sizes, facts, settings)
    d, f, nodes = 256, 512, sum(facts.sizes) + 2
    formula = (
        nodes * d + 10 * 64 + 2 * d + 12 * (4 * (d * d + d) + 2 * d * f + f + d + 4 * d) + d * d + d + 2 * d + nodes
    )
    unused = d + 2 * 64 + 2  # the padding node, the bias of no edge, biases of padding and of the masked node
    assert sum(parameter.numel() for parameter in model.parameters()) == formula - unused


@pytest.mark.parametrize("smoothing", [0.0, 0.2, 0.9])
def test_the_target_is_the_papers(smoothing):
    logits, candidates = torch.randn(1, 7, generator=torch.Generator().manual_seed(0)), 7
    target = torch.full((1, candidates), smoothing / (candidates - 1))
    target[0, 3] = 1 - smoothing
    torch.testing.assert_close(target.sum(), torch.tensor(1.0))
    expected = -(target * logits.log_softmax(1)).sum(1)
    found = smoothed_cross_entropy(logits, torch.tensor([3]), even_share(smoothing, candidates))
    torch.testing.assert_close(found, expected)
    entropy = -(target * target.clamp(min=1e-30).log()).sum()
    assert float(found) >= float(entropy)


def test_every_component_is_hidden_once_an_epoch_but_not_all_of_a_long_fact():
    facts = facts_of([0] * 20 + [1] * 6 + [2, 3], literals=True)
    stream = MaskedComponents(facts, 16)
    asked = hidden_in(stream)
    assert sorted(asked) == list(range(20 * 3 + 6 * 5 + 7 + 9)), "2k + 3 for a fact with k qualifiers"
    assert stream.item_count == len(asked)
    long = facts_of([0] * 20 + [358], literals=True)
    few = MaskedComponents(long, 16, instances=10)
    counts = [sum(int(few.owner[one]) == 20 for one in hidden_in(few, epoch)) for epoch in range(4)]
    assert all(0 < count < 30 for count in counts), counts


def hidden_in(stream, epoch=0):
    plan, found = stream.epoch(0, epoch), []
    for index in range(len(plan)):
        chosen, weights = plan.items(index).tensors
        found += chosen[weights > 0].tolist()
    return found


def test_the_loss_is_the_mean_over_all_questions():
    facts = facts_of([0] * 9 + [2] * 4, literals=True)
    losses = LossSettings(smoothing=0.2, relation_smoothing=0.1)
    stream, model = MaskedComponents(facts, 12, Masking(), losses), model_for(facts)
    items = stream.epoch(0, 0).items(0)
    found = stream.loss_for(items.shape)(model, items.tensors)
    total = 0.0
    chosen, weights = items.tensors
    for one in chosen[weights > 0].tolist():
        row, position = int(stream.owner[one]), int(stream.position[one])
        count = int(facts.qualifier_counts()[row])
        batch, answers = mask(facts, torch.tensor([row]), torch.tensor([position]), layout_of([(1, count)]))
        relation = position % 2 == 1
        logits = model.score(model.read(batch), Relations() if relation else Tokens())
        entity = int(answers.entity)
        answer = int(answers.relation) if relation else entity - (entity > facts.sizes.entities)
        smoothing, candidates = (0.1 if relation else 0.2), logits.shape[1]
        target = torch.full((candidates,), smoothing / (candidates - 1))
        target[answer] = 1 - smoothing
        total += float(functional.cross_entropy(logits[0], target).detach())
    assert float(found.counts.sum()) == float((weights > 0).sum())
    assert float(found.total.detach()) == pytest.approx(total / float(found.counts.sum()), rel=1e-4)


def test_numbers_are_values_that_the_relation_had_in_training():
    graph = small_graph()
    model, _, data = trained("gran", graph, SETTINGS, 4)
    assert evaluate(model, graph, data.scaling, "test", literals=data.literals).metric("number.all.rmse") > 0
    facts = data.facts
    row = int(torch.nonzero(facts.tail_is_number)[0])
    question = model.read(ask(facts, row, 2))
    value = float(model.score(question, ScaledNumber()))
    relation = int(facts.relation[row])
    met = facts.tail_number[facts.relation == relation]
    assert min(abs(met - value)) < 1e-6
    mean = Gran(model.sizes, replace(model.settings, numbers="softmax-mean"), model.literals).eval()
    mean.load_state_dict(model.state_dict())
    softened = float(mean.score(question, ScaledNumber()).detach())
    assert float(met.min()) <= softened <= float(met.max())
    assert softened != value


@pytest.mark.parametrize("alike", [False, True])
def test_the_last_layer_makes_of_the_asked_nodes_what_it_would_make_of_all(alike):
    torch.manual_seed(0)
    layer = EdgeLayer(8, 2, 16, 0.0, 1e-12).eval()
    place = [torch.tensor([0, 2, 1]), torch.tensor([4, 0])]
    present = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    facts = [
        FactNodes(3, 3, None, edges_of(0, torch.device("cpu"), alike=alike), place[0]),
        FactNodes(2, 5, present, edges_of(1, torch.device("cpu"), alike=alike), place[1]),
    ]
    nodes, (edge_key, edge_value) = torch.randn(3 * 3 + 2 * 5, 8), torch.randn(2, 4, 4).unbind(0)
    asked = torch.cat([3 * torch.arange(3) + place[0], 9 + 5 * torch.arange(2) + place[1]])
    whole = layer(nodes, facts, edge_key, edge_value)[asked]
    torch.testing.assert_close(layer(nodes, facts, edge_key, edge_value, asked), whole)


SETTINGS = {
    "batch_size": 32,
    "optimiser": {"learning_rate": 2e-3, "clip": 1.0, "epsilon": 1e-6, "weight_decay": 0.01},
    "losses": {"smoothing": 0.2, "relation_smoothing": 0.0},
    "model": {"dimension": 16, "layers": 2, "heads": 2, "feedforward": 24, "dropout": 0.1},
}
EXPECTED = [3.114499, 3.122482, 3.235971, 3.103417, 3.110276]


def test_the_first_losses_are_as_expected():
    _, losses, _ = trained("gran", small_graph(), SETTINGS, 5)
    assert losses == pytest.approx(EXPECTED, rel=2e-4)


def test_a_few_facts_are_learnt_by_heart():
    graph = forty_facts()
    settings = SETTINGS | {
        "batch_size": 64,
        "losses": {"smoothing": 0.0},
        "optimiser": {"learning_rate": 5e-3, "clip": 1.0},
        "model": {"dimension": 32, "layers": 2, "heads": 2, "feedforward": 64, "dropout": 0.0},
    }
    model, losses, data = trained("gran", graph, settings, 450)
    assert losses[-1] < 0.3 * losses[0]
    found = evaluate(model, graph, data.scaling, "train", literals=data.literals)
    assert found.metric("link.all.mrr") > 0.9


def test_a_literal_that_training_lacks_is_read_as_the_mean_of_literals_where_asked():
    facts = facts_of([1, 2], literals=True)
    row, unknown = 1, facts.sizes.mask_entity
    model, own = model_for(facts, unseen="mean"), model_for(facts)
    changed = replace(facts, tail_entity=facts.tail_entity.clone())
    changed.tail_entity[row] = unknown
    with torch.no_grad():
        found = model.score(model.read(ask(changed, row, 1)), Relations())
        masked = own.score(own.read(ask(changed, row, 1)), Relations())
        changed.tail_entity[row] = unknown + 1  # the first literal, which is made the mean of all
        own.node[facts.sizes.entities] = own.node[facts.sizes.entities : own.tokens].mean(0)
        expected = own.score(own.read(ask(changed, row, 1)), Relations())
        # The relation is asked for as ever, also where the value beside it is not known.
        assert torch.equal(model.score(model.read(ask(facts, row, 1)), Relations()), _as_ever(facts, row))
    torch.testing.assert_close(found[:, :], expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found, masked)


def _as_ever(facts, row):
    model = model_for(facts)
    return model.score(model.read(ask(facts, row, 1)), Relations())
