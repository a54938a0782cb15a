"""Presets of the models of triplets and literals: the grids that the HyNT paper searched, and small ones for a CPU.

A name begins with its model's: `hynt train GRAPH --model transea --preset transea-paper`. In each grid the first is
the one in the middle, which is what `MODEL-paper` means; the others are for a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any


def _settings(
    *,
    rate: float,
    epochs: int,
    batch: int,
    every: int,
    facts: int | None = None,
    smoothing: float = 0.0,
    method: str = "adam",
    model: Mapping[str, Any],
) -> Mapping[str, Any]:
    """The rate stays what it is, and products are float32 on a GPU too, as in all four models' code."""
    return {
        "precision": "fp32",
        "batch_size": batch,
        "optimiser": {"learning_rate": rate, "method": method},
        "schedule": {"epochs": epochs, "period": epochs, "lowest_rate": rate},
        "losses": {"smoothing": smoothing},
        "validation": {"metric": "link.triplet.mrr", "every": every, "facts": facts},
        "model": dict(model),
    }


def _transea() -> list[Mapping[str, Any]]:
    """The rates are those of plain descent on means over the batch. The authors put |train|/100 in a batch."""
    return [
        _settings(
            rate=rate,
            epochs=500,
            batch=512,
            every=50,
            method="sgd",
            model={"margin": margin, "attribute_weight": share},
        )
        for rate, margin, share in product((0.5, 0.1, 1.0), (5.0, 2.5, 7.5, 10.0), (0.5, 0.25, 0.75))
    ]


def _mt_kgnn() -> list[Mapping[str, Any]]:
    return [
        _settings(rate=rate, epochs=100, batch=128, every=1, smoothing=smoothing, model={"dropout": dropout})
        for rate, dropout, smoothing in product((1e-3, 1e-4), (0.2, 0.1), (0.1, 0.0))
    ]


def _kbln() -> list[Mapping[str, Any]]:
    return [
        _settings(
            rate=rate,
            epochs=100,
            batch=128,
            every=1,
            smoothing=smoothing,
            model={"dropout": dropout, "head_rate": head_rate, "head_epochs": head_epochs},
        )
        for rate, dropout, smoothing, head_rate, head_epochs in product(
            (1e-3, 1e-4, 1e-2), (0.2, 0.1), (0.1, 0.0), (1e-2, 5e-4), (100, 500)
        )
    ]


def _literale() -> list[Mapping[str, Any]]:
    """With ConvE behind: two of the dropouts that the paper searched exist nowhere else."""
    return [
        _settings(
            rate=rate,
            epochs=100,
            batch=128,
            every=1,
            model={
                "base": "conve",
                "directions": "reciprocal",
                "dropout": dropout,
                "feature_map_dropout": of_maps,
                "projection_dropout": of_projection,
                "head_rate": head_rate,
                "head_epochs": head_epochs,
            },
        )
        for rate, dropout, of_maps, of_projection, head_rate, head_epochs in product(
            (1e-3, 1e-2, 1e-1), (0.2, 0.1), (0.2, 0.1), (0.3, 0.2), (1e-2, 5e-4), (100, 500)
        )
    ]


LITERAL_GRIDS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "transea": _transea(),
    "mt-kgnn": _mt_kgnn(),
    "kbln": _kbln(),
    "literale": _literale(),
}
"""Everything the HyNT paper searched for each model; the width is 256 throughout, the default."""

_SMALL: dict[str, Mapping[str, Any]] = {
    # One epoch of a small model, to see that everything runs.
    "transea": _settings(rate=1e-2, epochs=1, batch=256, every=1, facts=500, model={"dimension": 64}),
    "mt-kgnn": _settings(rate=1e-2, epochs=1, batch=256, every=1, facts=500, smoothing=0.1, model={"dimension": 64}),
    "kbln": _settings(
        rate=1e-2, epochs=1, batch=256, every=1, facts=500, smoothing=0.1, model={"dimension": 64, "head_epochs": 10}
    ),
    "literale": _settings(
        rate=1e-2, epochs=1, batch=256, every=1, facts=500, model={"dimension": 64, "head_epochs": 10}
    ),
}

LITERAL_PRESETS: dict[str, Mapping[str, Any]] = {f"{model}-paper": grid[0] for model, grid in LITERAL_GRIDS.items()} | {
    f"{model}-small": preset for model, preset in _SMALL.items()
}
