"""Small HyNT models in every form, for tests."""

from __future__ import annotations

import torch

from hynt.batches.fact_tensors import FactTensors, distinct_literals
from hynt.batches.number_scaling import NumberScaling
from hynt.models.hynt import Hynt, HyntSettings, as_released
from tests.batches.random_graphs import VOCABULARY, random_table

SMALL = {
    "dimension": 16,
    "context_heads": 4,
    "prediction_heads": 2,
    "context_feedforward": 24,
    "prediction_feedforward": 20,
    "context_layers": 2,
    "prediction_layers": 2,
    "dropout": 0.0,
}

FORMS = {
    "paper": HyntSettings(**SMALL),
    "deep": HyntSettings(**SMALL | {"context_layers": 3, "prediction_layers": 1}),
    "released": as_released(HyntSettings(**SMALL)),
    "tied": HyntSettings(**SMALL, tied_output=True),
    "hadamard": HyntSettings(**SMALL, encoding="hadamard"),
    "linear prediction": HyntSettings(**SMALL, prediction="linear"),
    "no number bias": HyntSettings(**SMALL, number_bias=False),
    "hidden number": HyntSettings(**SMALL, number_of_hidden_relation="hidden"),
}


def facts_of(lengths: list[int], seed: int = 0, literals: bool = False) -> FactTensors:
    """Random facts; with ids for literals where asked."""
    table = random_table(lengths, seed)
    scaling = NumberScaling.fit([table], VOCABULARY)
    return FactTensors.from_table(table, VOCABULARY, scaling, literals=distinct_literals(table) if literals else None)


def small_model(form: str | HyntSettings, facts: FactTensors, seed: int = 1) -> Hynt:
    """A model for these facts whose weights, biases too, are all random and none zero."""
    settings = FORMS[form] if isinstance(form, str) else form
    torch.manual_seed(seed)
    model = Hynt.build(facts.sizes, facts, settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()
