"""Presets of the transformer baselines: the grids that the HyNT paper searched, the authors' own settings, and small
ones for a CPU.

A name begins with its model's: `hynt train GRAPH --model gran --preset gran-paper`. `MODEL-paper` is the first of its
grid; the others are for a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any


def _gran(
    *,
    dropout: float,
    entities: float,
    relations: float,
    epochs: int = 200,
    batch: int = 1024,
    facts: int | None = None,
    **model: Any,
) -> Mapping[str, Any]:
    """Smoothing as ε, which the paper lists; the authors' files list 1 − ε."""
    return {
        "batch_size": batch,
        "optimiser": {"learning_rate": 5e-4, "clip": 1.0, "epsilon": 1e-6, "weight_decay": 0.01},
        "schedule": {"epochs": epochs, "shape": "linear", "warm_up": 0.1},
        "losses": {"smoothing": entities, "relation_smoothing": relations},
        "validation": {"metric": "link.all.mrr", "every": min(20, epochs), "facts": facts},
        "model": {"dropout": dropout, **model},
    }


def _grouped(
    *, epochs: int, batch: int, every: int, rate: float = 1e-4, facts: int | None = None, **model: Any
) -> Mapping[str, Any]:
    """What StarE and Hy-Transformer share: Adam, a cut of the rate every 50 epochs, ConvE's smoothing."""
    return {
        "batch_size": batch,
        "optimiser": {"learning_rate": rate, "clip": 1.0},
        "schedule": {"epochs": epochs, "shape": "steps", "period": 50, "decay": 0.95},
        "losses": {"smoothing": 0.1},
        "validation": {"metric": "link.triplet.mrr", "every": every, "facts": facts},
        "model": dict(model),
    }


TRANSFORMER_GRIDS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "gran": [
        _gran(dropout=dropout, entities=entities, relations=relations)
        for dropout, entities, relations in product((0.1, 0.2, 0.3), (0.2, 0.4, 0.6, 0.8), (0.0, 0.2, 0.4))
    ],
    "hy-transformer": [
        _grouped(
            epochs=400,
            batch=512,
            every=10,
            layers=layers,
            qualifier_values=values,
            dropout=dropout,
            table_dropout=table,
        )
        for layers, values, dropout, table in product((2, 1), (0.0, 0.5, 1.0), (0.1, 0.2), (0.3, 0.2))
    ],
    "stare": [
        _grouped(
            epochs=400, batch=128, every=5, graph_layers=graph, layers=layers, graph_dropout=of_graph, dropout=dropout
        )
        for graph, layers, of_graph, dropout in product((2, 1), (2, 1), (0.3, 0.2), (0.1, 0.2))
    ],
}
"""Everything the HyNT paper searched for each model; the width is 256 throughout, the default."""

TRANSFORMER_PRESETS: Mapping[str, Mapping[str, Any]] = {
    f"{model}-paper": grid[0] for model, grid in TRANSFORMER_GRIDS.items()
} | {
    "gran-wikipeople": _gran(dropout=0.1, entities=0.2, relations=0.1, epochs=160),
    # One epoch of a small model, to see that everything runs. HyNT's own presets for a schedule are in `presets`.
    "hynt-small": {
        "batch_size": 256,
        "optimiser": {"learning_rate": 3e-3, "clip": 0.1},
        "schedule": {"epochs": 1, "period": 1},
        "losses": {"smoothing": 0.2, "number_weight": 5.0},
        "validation": {"facts": 500},
        "model": {
            "dimension": 32,
            "context_layers": 1,
            "prediction_layers": 1,
            "context_heads": 4,
            "prediction_heads": 4,
            "context_feedforward": 64,
            "prediction_feedforward": 64,
            "dropout": 0.05,
        },
    },
    "gran-small": _gran(
        dropout=0.1,
        entities=0.2,
        relations=0.1,
        epochs=1,
        batch=512,
        facts=500,
        dimension=32,
        layers=2,
        feedforward=64,
        instances=3,
    ),
    "hy-transformer-small": _grouped(
        epochs=1, batch=256, every=1, rate=3e-3, facts=500, dimension=32, layers=1, feedforward=64, qualifier_values=0.5
    ),
    "stare-small": _grouped(
        epochs=1, batch=512, every=1, rate=5e-3, facts=500, dimension=32, graph_layers=1, layers=1, feedforward=64
    ),
}
