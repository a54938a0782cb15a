"""What starting from another run's weights gains: quality against seconds of training, from scratch beside it.

    python -m benchmarks.fine_tuning world --out tuned.json
    PYTHONPATH=src:. python3 -m benchmarks.fine_tuning world --device cuda --out tuned.json

A run of hynt-inductive is trained on a part of the training facts, those of some entities and no others. Then the
whole graph is trained on twice, from its weights and from scratch, with the same settings and seed, and each
validation is written down with the seconds of training before it: of the processor on a CPU, of the clock on a GPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.result_file import write_measured
from hynt.graph.changes import names_any
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph
from hynt.kernels.device import chosen_device
from hynt.runs.checkpoint import WEIGHTS, Watcher
from hynt.runs.run_folder import RunFolder
from hynt.runs.settings import RunSettings
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start, train

FIGURES = ("link.all.mrr", "relation.all.mrr", "number.all.rmse")


class Curve(Watcher):
    """Each validation with the seconds before it."""

    def __init__(self) -> None:
        self.points: list[dict[str, float]] = []

    def validated(self, record: Any) -> None:
        """Keeps the figures of one validation."""
        found = {name: _figure(record.results, name) for name in FIGURES}
        self.points.append({"seconds": record.trained_seconds, "epoch": record.epoch, **found})
        print(f"  epoch {record.epoch}, {record.trained_seconds:.0f} s: {json.dumps(found)}", flush=True)


def _figure(results: Any, name: str) -> float:
    for part in name.split(".", 2):
        results = results[part]
    return round(float(results), 4)


def part_of(graph: KnowledgeGraph, share: float, seed: int) -> KnowledgeGraph:
    """The graph without the training facts that name some entities; so many of these that about a `share` is left."""
    table, order = graph.split("train"), np.random.default_rng(seed).permutation(graph.vocabulary.entity_count)
    low, high = 0, len(order)
    while low < high:  # the most entities whose facts may go
        middle = (low + high + 1) // 2
        left = np.count_nonzero(~names_any(table, graph.vocabulary, order[:middle]))
        low, high = (middle, high) if left >= share * len(table) else (low, middle - 1)
    kept = table.where(~names_any(table, graph.vocabulary, order[:low]))
    return replace(graph, splits={**graph.splits, "train": kept})


def trained(
    graph: KnowledgeGraph, settings: RunSettings, folder: Path, device: torch.device, weights: Path | None = None
) -> list[dict[str, float]]:
    """The validations of one training."""
    curve, clock = Curve(), time.process_time if device.type == "cpu" else time.monotonic
    train(start(graph, settings, folder, device, None, weights), device, curve, clock=clock)
    return curve.points


def compared(graph: KnowledgeGraph, settings: RunSettings, share: float, device: torch.device) -> dict[str, Any]:
    """The curves of all three trainings, and the seconds until each of the latter two is as good as the other's end."""
    part = part_of(graph, share, settings.seed)
    with tempfile.TemporaryDirectory() as place:
        first = Path(place) / "part"
        print(f"a part of {len(part.split('train')):,} of {len(graph.split('train')):,} training facts", flush=True)
        found: dict[str, Any] = {"part": trained(part, settings, first, device)}
        weights = RunFolder.open(first).checked(WEIGHTS)
        print("the whole graph, from its weights", flush=True)
        found["from part"] = trained(graph, settings, Path(place) / "tuned", device, weights)
        print("the whole graph, from scratch", flush=True)
        found["from scratch"] = trained(graph, settings, Path(place) / "scratch", device)
    return found


def table(found: dict[str, Any]) -> str:
    """Both ways side by side, by the seconds of the first."""
    lines = ["| seconds | from the part's run | from scratch |", "|---|---|---|"]
    for one, other in zip(found["from part"], found["from scratch"], strict=False):
        cells = (" / ".join(f"{row[name]:.3f}" for name in FIGURES) for row in (one, other))
        lines.append(f"| {one['seconds']:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", help="a saved graph, or world")
    parser.add_argument("--share", type=float, default=0.7, help="of the training facts, in the part")
    parser.add_argument("--epochs", type=int, help="of each training")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], help="a change of a setting, key=value")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    graph, device = load_graph(given.graph), chosen_device(given.device)
    every = ("validation.every=1", "validation.first=1", "validation.each_task=false")
    request = SettingsRequest("hynt-inductive", epochs=given.epochs, changes=(*every, *given.set))
    settings = resolve_settings(request, graph, on_gpu=device.type == "cuda")
    found = compared(graph, settings, given.share, device)
    write_measured(given.out, found, str(__doc__))
    print(f"\nvalidation: {', '.join(FIGURES)}\n\n{table(found)}")


if __name__ == "__main__":
    main()
