"""Presets of the models of whole facts that are no transformers: the grids that the HyNT paper searched, the authors'
own settings, and small ones for a CPU.

A name begins with its model's: `hynt train GRAPH --model ram --preset ram-paper`. In each grid the first is the one
nearest to the authors' own, which is what `MODEL-paper` means; the others are for a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

RATES = (5e-5, 1e-5, 1e-4)


def _logistic(
    *,
    rate: float,
    epochs: int,
    every: int,
    batch: int = 128,
    facts: int | None = None,
    pool: str = "answers",
    model: Mapping[str, Any],
) -> Mapping[str, Any]:
    """What NaLP, tNaLP, HINGE and NeuInfer share: Adam at a rate that stays what it is, and float32 products.

    Negatives come from all possible answers, except in the authors' own settings: what the HyNT paper's implementations
    drew from is not said, but only a model that was shown all of them as wrong ranks well (docs/background/baselines-nary.md).
    """
    return {
        "precision": "fp32",
        "batch_size": batch,
        "optimiser": {"learning_rate": rate},
        "schedule": {"epochs": epochs, "shape": "steps", "decay": 1.0},
        "validation": {"metric": "link.all.mrr", "every": every, "facts": facts},
        "model": {"pool": pool, **model},
    }


def _ram(
    *,
    rate: float,
    decay: float,
    batch: int = 64,
    epochs: int = 200,
    every: int = 1,
    patience: int = 10,
    facts: int | None = None,
    model: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Cross entropy without smoothing over values alone; the rate falls each epoch. Float32 products."""
    return {
        "precision": "fp32",
        "batch_size": batch,
        "optimiser": {"learning_rate": rate},
        "schedule": {"epochs": epochs, "shape": "steps", "period": 1, "decay": decay},
        "losses": {"smoothing": 0.0},
        "masking": {"relations": False},
        "validation": {"metric": "link.all.mrr", "every": every, "patience": patience, "facts": facts},
        "model": dict(model),
    }


NARY_GRIDS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "nalp": [
        _logistic(rate=rate, epochs=5000, every=500, model={"filters": filters, "hidden": hidden})
        for rate, filters, hidden in product(RATES, (200, 100), (1000, 800, 1200))
    ],
    "tnalp": [
        _logistic(
            rate=rate, epochs=5000, every=500, model={"filters": filters, "hidden": hidden, "type_hidden": of_types}
        )
        for rate, filters, hidden, of_types in product(RATES, (200, 100), (1000, 800, 1200), (200, 100))
    ],
    "hinge": [
        _logistic(rate=rate, epochs=1000, every=100, model={"filters": filters})
        for rate, filters in product((1e-4, 5e-5, 1e-5), (400, 200, 100))
    ],
    "neuinfer": [
        _logistic(
            rate=rate,
            epochs=5000,
            every=500,
            model={
                "hidden": hidden,
                "validity_layers": validity,
                "compatibility_layers": compatibility,
                "validity_weight": weight,
            },
        )
        for rate, hidden, validity, compatibility, weight in product(
            (1e-4, 5e-5, 1e-5), (1000, 800, 1200), (1, 2), (1, 2), (0.3, 0.1)
        )
    ],
    "ram": [
        _ram(rate=rate, decay=decay, model={"role_dropout": dropout, "entity_dropout": dropout})
        for rate, decay, dropout in product((0.003, 0.001, 0.002, 0.005), (0.995, 0.99), (0.2, 0.0, 0.4))
    ],
}
"""Everything the HyNT paper searched for each model; the width is 256 throughout, for RAM 128 in each of two parts."""

_RANKING = {"negatives": 8, "loss": "softmax"}
"""What makes these models rank better, though none of their authors did it (docs/background/baselines-nary.md)."""

_SMALL: dict[str, Mapping[str, Any]] = {
    # One epoch of a small model, to see that everything runs.
    "nalp": _logistic(
        rate=1e-3,
        epochs=1,
        every=1,
        batch=256,
        facts=500,
        model={"dimension": 32, "filters": 32, "hidden": 64, **_RANKING},
    ),
    "tnalp": _logistic(
        rate=1e-3,
        epochs=1,
        every=1,
        batch=256,
        facts=500,
        model={"dimension": 32, "filters": 32, "hidden": 64, "type_dimension": 16, "type_hidden": 32, **_RANKING},
    ),
    "hinge": _logistic(
        rate=1e-3, epochs=1, every=1, batch=256, facts=500, model={"dimension": 24, "filters": 8, **_RANKING}
    ),
    "neuinfer": _logistic(
        rate=1e-3, epochs=1, every=1, batch=256, facts=500, model={"dimension": 32, "hidden": 64, **_RANKING}
    ),
    "ram": _ram(rate=0.005, decay=0.995, batch=256, epochs=1, facts=500, model={"dimension": 16, "instances": 8}),
}

NARY_PRESETS: dict[str, Mapping[str, Any]] = (
    {f"{model}-paper": grid[0] for model, grid in NARY_GRIDS.items()}
    | {f"{model}-small": preset for model, preset in _SMALL.items()}
    | {
        # Each author's own, for WikiPeople.
        "nalp-wikipeople": _logistic(
            rate=5e-5, epochs=5000, every=100, pool="seen", model={"dimension": 100, "filters": 200, "hidden": 1200}
        ),
        "hinge-wikipeople": _logistic(
            rate=1e-4, epochs=400, every=100, pool="seen", model={"dimension": 100, "filters": 400}
        ),
        "neuinfer-wikipeople": _logistic(
            rate=1e-4,
            epochs=5000,
            every=100,
            pool="seen",
            model={"dimension": 100, "hidden": 1000, "validity_layers": 1, "validity_weight": 0.3},
        ),
        "ram-wikipeople": _ram(
            rate=0.003, decay=0.995, model={"dimension": 25, "role_dropout": 0.0, "entity_dropout": 0.2}
        ),
        # In the width that the HyNT paper could afford on its larger graphs.
        "ram-narrow": _ram(rate=0.003, decay=0.995, every=5, model={"dimension": 32}),
    }
)
