"""Settings worth a name: the authors' for each graph and task, and sensible ones for anybody's graph by its size.

Presets are plain mappings over the defaults, the same that a `config.toml` holds, so they can be read, printed and
changed by `--set`. Beside this file is one for each model; the name of a preset is a table's, and begins with its
model's where that is not hynt: `hynt train GRAPH --model ram --preset ram-paper`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import product
from typing import Any

from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.names import Registry

AUTHORS_CLIP = 0.1
GRID = "grid"
"""The table of a file that says what the HyNT paper searched for the model, as changes of `MODEL-paper`."""

PRESETS: Registry[Mapping[str, Any]] = Registry("preset")
GRIDS: dict[str, Sequence[Mapping[str, Any]]] = {}
"""Everything the HyNT paper searched for each baseline; the first is `MODEL-paper`."""


def _read() -> None:
    folder = resources.files(__name__)
    for file in sorted((one for one in folder.iterdir() if one.name.endswith(".toml")), key=lambda one: one.name):
        model, tables = file.name.removesuffix(".toml"), tomllib.loads(file.read_text(encoding="utf-8"))
        axes = tables.pop(GRID, None)
        for name, preset in tables.items():
            PRESETS.add(name, preset)
        if axes is not None:
            GRIDS[model] = _grid(tables[f"{model}-paper"], axes)


def _grid(first: Mapping[str, Any], axes: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Every choice on each axis with every choice on the others; an axis may move further settings along."""
    found: list[Mapping[str, Any]] = []
    for values in product(*(axis["choices"] for axis in axes.values())):
        changed = {name: dict(value) if isinstance(value, Mapping) else value for name, value in first.items()}
        for (path, axis), value in zip(axes.items(), values, strict=True):
            for one in (path, *axis.get("also", ())):
                group, _, name = one.partition(".")
                changed[group][name] = value
        found.append(changed)
    return found


_read()

PLAIN: Mapping[str, Any] = {
    "batch_size": 256,
    "optimiser": {"learning_rate": 1e-2},
    "schedule": {"epochs": 100, "period": 100},
    "losses": {"smoothing": 0.1},
}
"""For a model of another package, of which nothing is known: what embeddings without a network learn well with."""


SMALL_GRAPH = 50_000
"""Training facts up to which a graph gets the small model below, on a CPU and on a GPU alike."""
SPARSE = 3
"""Facts for each entity below which a small graph counts as sparse."""
FACTS_SEEN = 1_000_000
"""How many facts training goes through in all on a small graph: a minute or two of one core."""


def defaults_for(graph: KnowledgeGraph, *, on_gpu: bool) -> Mapping[str, Any]:
    """Settings for a graph nobody has tuned for, by how many facts it trains on, and for how many entities."""
    facts = len(graph.splits.get("train", ()))
    if facts > SMALL_GRAPH:
        return _for_large(facts, on_gpu=on_gpu)
    return _for_small(facts, is_sparse=facts < SPARSE * graph.vocabulary.entity_count)


def _for_small(facts: int, *, is_sparse: bool) -> Mapping[str, Any]:
    """A narrow model of one layer each, and as many epochs as there is time for: what few facts need most is steps.
    Where an entity has few facts the model learns them by heart, so dropout and smoothing are higher and the initial
    gain of the context's norm is lower.

    Found on validation, on parts of four graphs (docs/how-to/training.md, "Settings for your own graph").
    """
    epochs = min(1_000, round(FACTS_SEEN / max(facts, 1)))
    dropout = 0.2 if is_sparse else 0.1 if facts <= 20_000 else 0.05
    return {
        "batch_size": 128 if facts <= 5_000 else 256,
        "optimiser": {"learning_rate": 3e-3, "clip": AUTHORS_CLIP},
        "schedule": {"epochs": epochs, "period": epochs},
        "losses": {"smoothing": 0.4 if is_sparse else 0.2, "number_weight": 5.0},
        "model": {
            "dimension": 64,
            "context_layers": 1,
            "prediction_layers": 1,
            "context_heads": 4,
            "prediction_heads": 4,
            "context_feedforward": 256,
            "prediction_feedforward": 256,
            "dropout": dropout,
            "tied_output": True,
            "position_scale": 0.25,
            "context_scale": 0.1 if is_sparse else 1.0,
        },
    }


def _for_large(facts: int, *, on_gpu: bool) -> Mapping[str, Any]:
    """The authors' form; larger graphs need fewer epochs to see as many facts, and on a CPU all is smaller."""
    if on_gpu:
        epochs, period = (350, 50) if facts <= 200_000 else (70, 10) if facts <= 2_000_000 else (14, 2)
    else:
        epochs, period = (14, 2) if facts <= 500_000 else (7, 1)
    width = 256 if on_gpu else 128
    return {
        "batch_size": 2048 if on_gpu else 512,
        "optimiser": {"learning_rate": 1e-3, "clip": AUTHORS_CLIP},
        "schedule": {"epochs": epochs, "period": period},
        "losses": {"smoothing": 0.4},
        "model": {
            "dimension": width,
            "context_heads": width // 16,
            "prediction_heads": width // 16,
            "context_feedforward": 4 * width,
            "prediction_feedforward": 4 * width,
            "dropout": 0.2,
            "context_scale": 0.3,
        },
    }
