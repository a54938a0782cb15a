"""The stream of masked facts: every fact once an epoch, losses as counted, and a loss that compiles in one piece."""

from __future__ import annotations

import torch

from hynt.objectives.masked_facts import MaskedFacts
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from tests.training.small_graph import TINY, small_graph, tiny_settings

CPU = torch.device("cpu")


def prepared(**model):
    settings = tiny_settings(model={**TINY["model"], "dropout": 0.0, **model})
    graph = small_graph(people=40)
    data = training_data(graph, settings, fit_scaling(graph, settings), CPU)
    return MaskedFacts(data.facts, 32, settings.masking, settings.losses), new_model(settings, data, CPU)


def test_every_fact_is_asked_once_an_epoch():
    stream, model = prepared()
    epoch = stream.epoch(0, 0)
    counts = torch.zeros(3)
    for index in range(len(epoch)):
        items = epoch.items(index)
        loss = stream.loss_for(items.shape)(model, items.tensors)
        assert torch.isfinite(loss.total)
        counts += loss.counts
    assert counts.sum() == stream.item_count == len(stream.facts)
    assert (counts > 0).all()


def test_the_total_is_the_sum_of_means():
    stream, model = prepared()
    items = stream.epoch(0, 1).items(0)
    loss = stream.loss_for(items.shape)(model, items.tensors)
    means = (loss.sums / loss.counts.clamp(min=1)).sum()
    torch.testing.assert_close(loss.total, means, rtol=1e-5, atol=1e-6)


def test_weights_of_filler_are_never_felt():
    """Rows of weight 0 may hold anything: exchange what they point at, and the loss stays."""
    stream, model = prepared()
    items = stream.epoch(0, 0).items(0)
    indices, weights = items.tensors
    filler = torch.nonzero(weights == 0).squeeze(1)
    assert len(filler)
    places = 2 * items.shape.layout.rows
    changed = indices.clone()
    changed[places + filler] = items.shape.layout.rows - 1
    loss = stream.loss_for(items.shape)
    torch.testing.assert_close(loss(model, (indices, weights)).total, loss(model, (changed, weights)).total)


def test_the_loss_compiles_in_one_piece():
    """A break in the compiled graph would cost its speed without a word. Gradients agree with the plain loss."""
    stream, model = prepared()
    items = stream.epoch(0, 0).items(0)
    plain = stream.loss_for(items.shape)
    compiled = torch.compile(plain, dynamic=False, fullgraph=True, backend="aot_eager")
    gradients = []
    for loss in (plain, compiled):
        model.zero_grad()
        found = loss(model, items.tensors)
        found.total.backward()
        gradients.append(
            {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
        )
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-5, atol=1e-7)
