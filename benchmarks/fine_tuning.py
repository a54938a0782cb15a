"""What starting from another run's weights gains: quality against seconds of training, from scratch beside it.

    python -m benchmarks.fine_tuning world --out tuned.json
    PYTHONPATH=src:. python3 -m benchmarks.fine_tuning graphs/HN-YG --device cuda --out tuned.json
    python -m benchmarks.fine_tuning --out tuned.json          # the table again

A run of hynt-inductive is trained on a part of the training facts, those of some entities and no others. It is asked of
the whole graph as it stands, without training. Then the whole graph is trained on for each number of `--epochs`, from
its weights and from scratch, with the same settings, seed and schedule, which ends with these epochs. The figures are
of the validation split, by the last weights, so nothing is chosen by them; seconds are of the processor on a CPU and of
the clock on a GPU, the compilation among them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.result_file import read_measured, write_measured
from hynt.batches.number_scaling import NumberScaling
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.results import by_scope
from hynt.graph.changes import names_any
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph
from hynt.graph.vocabulary import Ids
from hynt.kernels.device import chosen_device
from hynt.runs import WEIGHTS
from hynt.runs.elsewhere import on_graph
from hynt.runs.opening import LoadedRun, load_run
from hynt.runs.run_folder import RunFolder
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start, train

FIGURES = ("link.all.mrr", "relation.all.mrr", "number.all.rmse")
EPOCHS, RATES = (1, 3, 10, 20), (1.0, 0.3)
SPLIT, STANDS, SCRATCH = "valid", "as it stands", "from scratch"
ALWAYS = (
    "validation.every=1000000",
    "validation.keep_best=false",
    "validation.each_task=false",
    "with_statistics=false",
)


def part_of(graph: KnowledgeGraph, share: float, seed: int = 0, order: Ids | None = None) -> KnowledgeGraph:
    """The graph without the training facts that name some entities; so many of these that about a `share` is left.

    Entities go in this `order` (entities,); None: as the seed draws it.
    """
    table = graph.split("train")
    order = np.random.default_rng(seed).permutation(graph.vocabulary.entity_count) if order is None else order
    low, high = 0, len(order)
    while low < high:  # the most entities whose facts may go
        middle = (low + high + 1) // 2
        left = np.count_nonzero(~names_any(table, graph.vocabulary, order[:middle]))
        low, high = (middle, high) if left >= share * len(table) else (low, middle - 1)
    kept = table.where(~names_any(table, graph.vocabulary, order[:low]))
    return replace(graph, splits={**graph.splits, "train": kept})


def asked(graph: KnowledgeGraph, scaling: NumberScaling, model: Any, device: torch.device) -> dict[str, float]:
    """The figures of the validation split, with the training facts observed."""
    found = Evaluator(graph, scaling, SPLIT, device=device, observed=("train",)).evaluate(model)
    told: dict[str, Any] = {}
    for task, questions in found.per_question.items():
        metrics = by_scope(questions, "realistic")["all"]
        told |= {f"{task}.all.{name}": metrics[name] for name in ("mrr", "rmse") if metrics.get(name) is not None}
    return {name: round(float(value), 4) for name, value in told.items()}


class Trainings:
    """Trainings of hynt-inductive with the same settings but for their length, on one device."""

    def __init__(self, place: Path, device: torch.device, changes: Sequence[str]) -> None:
        self.place, self.device, self.changes = place, device, (*ALWAYS, *changes)

    def run(
        self, graph: KnowledgeGraph, epochs: int | None, weights: Path | None = None, rate: float = 1.0
    ) -> tuple[LoadedRun, float]:
        """The run and the seconds it took; `rate` is a share of the usual learning rate."""
        request = SettingsRequest("hynt-inductive", epochs=epochs, changes=self.changes)
        settings = resolve_settings(request, graph, on_gpu=self.device.type == "cuda")
        usual = settings.optimiser
        lower = {name: getattr(usual, name) * rate for name in ("learning_rate", "matrix_rate") if getattr(usual, name)}
        settings = replace(settings, optimiser=replace(usual, **lower))
        folder = Path(tempfile.mkdtemp(dir=self.place))
        clock = time.process_time if self.device.type == "cpu" else time.monotonic
        began = clock()
        train(start(graph, settings, folder, self.device, None, weights), self.device, clock=clock)
        return load_run(folder, self.device), round(clock() - began, 1)


def compared(
    graph: KnowledgeGraph, share: float, epochs: Sequence[int], trainings: Trainings, of_part: int | None = None
) -> Iterator[dict[str, Any]]:
    """Row after row: the run of a part as it stands, then all ways for each number of epochs."""
    device, part = trainings.device, part_of(graph, share, 0)
    run, seconds = trainings.run(part, of_part)
    facts = {"facts": len(part.split("train")), "of": len(graph.split("train")), "seconds": seconds}
    moved = on_graph(run, graph, ["train"])
    yield {"way": STANDS, "epochs": 0, "part": facts, **asked(graph, moved.scaling, moved.model, device)}
    weights = RunFolder.open(run.run.path).checked(WEIGHTS)
    for length in epochs:
        for way, begin, rate in ((SCRATCH, None, 1.0), *((tuned(rate), weights, rate) for rate in RATES)):
            run, seconds = trainings.run(graph, length, begin, rate)
            found = asked(graph, run.scaling, run.model, device)
            yield {"way": way, "epochs": length, "seconds": seconds, **found}


def tuned(rate: float) -> str:
    """What the table calls training from the part's weights."""
    return "from the part's run" if rate == 1.0 else f"from it, {rate:g} of the rate"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """All ways side by side, by their epochs."""
    ways = [SCRATCH, *(tuned(rate) for rate in RATES)]
    lines = [f"| epochs | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|"]
    for length in dict.fromkeys(row["epochs"] for row in rows):
        here = {row["way"]: row for row in rows if row["epochs"] == length}
        cells = []
        for way in ways:
            row = here.get(way) or (here.get(STANDS) if way == tuned(1.0) else None)
            figures = " / ".join(f"{row[name]:.3f}" for name in FIGURES if name in row) if row else "–"
            cells.append(f"{figures} ({row.get('seconds', 0):.0f} s)" if row else figures)
        lines.append(f"| {length} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="?", help="a saved graph, or world")
    parser.add_argument("--share", type=float, default=0.7, help="of the training facts, in the part")
    parser.add_argument("--epochs", type=int, nargs="+", default=list(EPOCHS), help="of training on the whole graph")
    parser.add_argument("--of-part", type=int, help="epochs of training on the part; else those of the preset")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], help="a change of a setting, key=value")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.graph is None:
        rows = read_measured(given.out, "rows", advice="name a graph to make one.")["rows"]
    else:
        graph, device = load_graph(given.graph), chosen_device(given.device)
        with tempfile.TemporaryDirectory() as place:
            trainings = Trainings(Path(place), device, given.set)
            for row in compared(graph, given.share, given.epochs, trainings, given.of_part):
                rows.append(row)
                write_measured(given.out, {"graph": graph.name, "rows": rows}, str(__doc__))
                print(json.dumps(row), flush=True)
    print(f"\nvalidation: {', '.join(FIGURES)}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
