"""The losses of the models of literals compile in one piece: without that a captured step would run as written."""

from __future__ import annotations

import pytest
import torch

from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.process import phases_for
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")
FORMS = {
    "transea": {},
    "mt-kgnn": {},
    "kbln": {},
    "literale": {},
    "literale with complex": {"base": "complex"},
    "literale with conve": {"base": "conve"},
}


@pytest.mark.parametrize("form", FORMS)
def test_losses_compile_in_one_piece(form):
    settings = tiny_settings(
        form.partition(" ")[0], batch_size=16, model={"dimension": 8, **FORMS[form]}, losses={"smoothing": 0.1}
    )
    graph = small_graph()
    data = training_data(graph, settings, fit_scaling(graph, settings), CPU)
    model = new_model(settings, data, CPU).train()
    for phase in phases_for(model, data, settings):
        epoch = phase.stream.epoch(0, 0)
        for index in range(2):
            items = epoch.items(min(index, len(epoch) - 1))
            loss = phase.stream.loss_for(items.shape)
            torch.manual_seed(0)
            plain = loss(model, items.tensors)
            torch._dynamo.reset()
            torch.manual_seed(0)
            compiled = torch.compile(loss, backend="eager", fullgraph=True, dynamic=False)(model, items.tensors)
            torch.testing.assert_close(compiled.total, plain.total)
            torch.testing.assert_close(compiled.sums, plain.sums)
            assert compiled.second == plain.second
