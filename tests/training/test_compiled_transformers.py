"""The steps of StarE, Hy-Transformer and GRAN compile in one piece: a break would cost speed without a word."""

from __future__ import annotations

import pytest
import torch

from hynt.config import from_mapping
from hynt.runs.model_choice import settings_class_for
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.process import phases_for
from tests.training.small_graph import small_graph

CPU = torch.device("cpu")
TINY = {"dimension": 8, "layers": 1, "heads": 1, "feedforward": 8, "dropout": 0.0}
OWN = {
    "stare": {"graph_layers": 1, "message_dropout": 0.0, "graph_dropout": 0.0},
    "hy-transformer": {"table_dropout": 0.0, "qualifier_values": 0.5},
    "gran": {},
}


@pytest.mark.parametrize("name", OWN)
def test_the_loss_compiles_in_one_piece(name):
    graph = small_graph()
    settings = from_mapping(settings_class_for(name), {"batch_size": 32, "model": TINY | OWN[name]})
    data = training_data(graph, settings, fit_scaling(graph, settings), CPU)
    model = new_model(settings, data, CPU).train()
    (phase,) = phases_for(model, data, settings)
    items = phase.stream.epoch(0, 0).items(0)
    plain = phase.stream.loss_for(items.shape)
    compiled = torch.compile(plain, dynamic=False, fullgraph=True, backend="aot_eager")
    gradients = []
    for loss in (plain, compiled):
        model.zero_grad()
        loss(model, items.tensors).total.backward()
        gradients.append({key: value.grad.clone() for key, value in model.named_parameters() if value.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][key], rtol=1e-4, atol=1e-6)
