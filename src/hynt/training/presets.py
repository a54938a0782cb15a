"""Settings worth a name: the authors' for each graph and task, and sensible ones for anybody's graph by its size.

Presets are plain mappings over the defaults, the same that a `config.toml` holds, so they can be read, printed and
changed by `--set`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.names import Registry
from hynt.training.presets_literals import LITERAL_GRIDS, LITERAL_PRESETS
from hynt.training.presets_nary import NARY_GRIDS, NARY_PRESETS
from hynt.training.presets_transformers import TRANSFORMER_GRIDS, TRANSFORMER_PRESETS

AUTHORS_CLIP = 0.1

PRESETS: Registry[Mapping[str, Any]] = Registry("preset")


def _authors(
    *,
    rate: float = 1e-3,
    epochs: int,
    layers: tuple[int, int] = (2, 2),
    heads: int = 16,
    feedforward: int = 1024,
    dropout: float,
    smoothing: float,
    batch: int = 2048,
    period: int = 50,
    metric: str = "link.all.mrr",
    tied: bool = False,
    equal_start: bool = False,
    context_scale: float = 1.0,
    relation_weight: float = 1.0,
) -> Mapping[str, Any]:
    """A row of the authors' table: width 256, both transformers alike but for their depth.

    Of what the table does not say, validation chose (docs/results): `equal_start`, the released code's way to start,
    for links on HN-YG and WD50K and not for numbers, and other graphs follow them by task; how large the context starts
    and what weight relations have, where they were tried.
    """
    return {
        "batch_size": batch,
        "optimiser": {"learning_rate": rate, "clip": AUTHORS_CLIP},
        "schedule": {"epochs": epochs, "period": period},
        "losses": {"smoothing": smoothing, "relation_weight": relation_weight},
        "validation": {"metric": metric},
        "model": {
            "dimension": 256,
            "context_layers": layers[0],
            "prediction_layers": layers[1],
            "context_heads": heads,
            "prediction_heads": heads,
            "context_feedforward": feedforward,
            "prediction_feedforward": feedforward,
            "dropout": dropout,
            "tied_output": tied,
            "equal_start": equal_start,
            "context_scale": context_scale,
        },
    }


RELATION, NUMBER = "relation.all.mrr", "number.all.rmse"

for _name, _preset in {
    "hn-yg-link": _authors(
        epochs=700,
        heads=64,
        feedforward=1536,
        dropout=0.4,
        smoothing=0.7,
        period=100,
        equal_start=True,
        context_scale=0.03,
    ),
    "hn-yg-relation": _authors(epochs=50, dropout=0.1, smoothing=0.5, metric=RELATION),
    "hn-yg-number": _authors(epochs=350, dropout=0.1, smoothing=0.5, metric=NUMBER),
    # One cycle more than the authors' 350 epochs: numbers go on getting better.
    "hn-yg-number-long": _authors(epochs=750, dropout=0.1, smoothing=0.5, metric=NUMBER),
    "wd50k-link": _authors(
        epochs=350,
        layers=(3, 3),
        heads=4,
        dropout=0.2,
        smoothing=0.7,
        equal_start=True,
        context_scale=0.3,
        relation_weight=0.3,
    ),
    "wikipeople-link": _authors(
        epochs=350, layers=(3, 3), dropout=0.2, smoothing=0.4, equal_start=True, context_scale=0.3, relation_weight=0.3
    ),
    "hn-wk-link": _authors(
        rate=4e-4,
        epochs=1050,
        layers=(4, 4),
        heads=8,
        feedforward=2048,
        dropout=0.15,
        smoothing=0.4,
        batch=1024,
        period=150,
        equal_start=True,
    ),
    "hn-wk-relation": _authors(
        rate=4e-4,
        epochs=1050,
        layers=(4, 4),
        heads=8,
        feedforward=2048,
        dropout=0.15,
        smoothing=0.4,
        batch=1024,
        period=150,
        metric=RELATION,
    ),
    "hn-wk-number": _authors(epochs=750, dropout=0.1, smoothing=0.5, batch=1024, metric=NUMBER),
    "hn-fb-s-link": _authors(
        rate=3e-4,
        epochs=1550,
        layers=(10, 3),
        heads=8,
        dropout=0.3,
        smoothing=0.55,
        batch=512,
        tied=True,
        equal_start=True,
    ),
    "hn-fb-s-relation": _authors(
        rate=3e-4,
        epochs=600,
        layers=(6, 3),
        heads=4,
        feedforward=2048,
        dropout=0.35,
        smoothing=0.45,
        batch=512,
        metric=RELATION,
    ),
    "hn-fb-s-number": _authors(epochs=750, dropout=0.2, smoothing=0.7, metric=NUMBER),
    "hn-fb-link": _authors(epochs=750, dropout=0.1, smoothing=0.3, batch=512, equal_start=True),
    "hn-fb-relation": _authors(epochs=50, dropout=0.1, smoothing=0.3, batch=512, metric=RELATION),
    "hn-fb-number": _authors(epochs=750, dropout=0.1, smoothing=0.3, batch=512, metric=NUMBER),
    # The embedded graph, for a first look: about a minute on two CPU cores. Chosen on its validation split.
    "world": {
        "batch_size": 256,
        "optimiser": {"learning_rate": 3e-3, "clip": AUTHORS_CLIP},
        "schedule": {"epochs": 40, "period": 40},
        "losses": {"smoothing": 0.2, "number_weight": 5.0},
        "model": {
            "dimension": 64,
            "context_layers": 1,
            "prediction_layers": 1,
            "context_heads": 4,
            "prediction_heads": 4,
            "context_feedforward": 256,
            "prediction_feedforward": 256,
            "dropout": 0.05,
        },
    },
}.items():
    PRESETS.add(_name, _preset)
for _name, _preset in {**LITERAL_PRESETS, **TRANSFORMER_PRESETS, **NARY_PRESETS}.items():
    PRESETS.add(_name, _preset)

GRIDS: Mapping[str, Sequence[Mapping[str, Any]]] = {**LITERAL_GRIDS, **NARY_GRIDS, **TRANSFORMER_GRIDS}
"""Everything the HyNT paper searched for each baseline."""

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
    Where an entity has few facts the model learns them by heart, so dropout and smoothing are higher and the context
    starts quiet.

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
