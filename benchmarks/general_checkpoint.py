"""Whether one run can know graphs that it never met: trained on several graphs at once, each of them left out in turn.

    python -m benchmarks.general_checkpoint --graph world=world --graph yg=graphs/HN-YG --graph wd=graphs/WD50K \
        --device cuda --epochs 20 --tuning 4 --out general.json
    python -m benchmarks.general_checkpoint --out general.json          # the table again

The graphs are laid side by side as one, with names of their own, and hynt-inductive is trained on it. Of the one that
was left out the validation split is asked three times: as the run stands, after `--tuning` epochs from its weights,
and after the same epochs from scratch; the trivial rows stand beside. An experiment: no weights are kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.result_file import read_measured, write_measured
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.results import by_scope
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph
from hynt.graph.vocabulary import Entity, Vocabulary
from hynt.kernels.device import chosen_device
from hynt.models.trivial import statistic
from hynt.runs.checkpoint import WEIGHTS
from hynt.runs.elsewhere import on_graph
from hynt.runs.opening import LoadedRun, load_run
from hynt.runs.run_folder import RunFolder
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start, train

FIGURES = ("link.all.mrr", "relation.all.mrr", "number.all.rmse")
TRIVIAL = ("frequency", "relation-median", "neighbour-mean")
SPLIT = "valid"


def side_by_side(graphs: Mapping[str, KnowledgeGraph]) -> KnowledgeGraph:
    """One graph of several, which share neither entities nor relations."""
    entities, relations = list[Entity](), list[Any]()
    tables: dict[str, list[FactTable]] = {"train": [], "valid": []}
    places = []
    for name, graph in graphs.items():
        places.append((graph, len(entities), len(relations)))
        entities += [one._replace(name=f"{name}: {one.name}") for one in graph.entities]
        relations += [one._replace(name=f"{name}: {one.name}") for one in graph.relations]
    vocabulary = Vocabulary(tuple(one.name for one in entities), tuple(relations))
    for graph, first, second in places:
        entity = np.arange(first, first + graph.vocabulary.entity_count, dtype=np.int32)
        relation = np.arange(second, second + graph.vocabulary.relation_count, dtype=np.int32)
        for split, found in tables.items():
            if split in graph.splits:
                found.append(graph.split(split).renumbered(entity, relation, vocabulary.relation_is_number))
    splits = {split: concatenate(found) for split, found in tables.items() if found}
    return KnowledgeGraph(vocabulary, splits, tuple(entities))


def asked(graph: KnowledgeGraph, scaling: NumberScaling, model: Any, device: torch.device) -> dict[str, float]:
    """The figures of the validation split, with the training facts observed."""
    found = Evaluator(graph, scaling, SPLIT, device=device, observed=("train",)).evaluate(model)
    told: dict[str, Any] = {}
    for task, questions in found.per_question.items():
        metrics = by_scope(questions, "realistic")["all"]
        told |= {f"{task}.all.{name}": metrics[name] for name in ("mrr", "rmse") if metrics.get(name) is not None}
    return {name: round(float(value), 4) for name, value in told.items()}


def left_out(
    name: str, graphs: Mapping[str, KnowledgeGraph], epochs: int, tuning: int, changes: Sequence[str], device: str
) -> dict[str, Any]:
    """All rows of one graph, trained without it."""
    target, graph = chosen_device(device), graphs[name]
    together = side_by_side({other: one for other, one in graphs.items() if other != name})
    everywhere = ("validation.each_task=false", *changes)

    def trained(on: KnowledgeGraph, length: int, folder: Path, weights: Path | None = None) -> tuple[LoadedRun, float]:
        request = SettingsRequest("hynt-inductive", epochs=length, changes=(*everywhere, "with_statistics=false"))
        began = time.perf_counter()
        settings = resolve_settings(request, on, on_gpu=target.type == "cuda")
        train(start(on, settings, folder, target, None, weights), target)
        return load_run(folder, target), time.perf_counter() - began

    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        general, seconds = trained(together, epochs, Path(place) / "general")
        moved = on_graph(general, graph, ["train"])
        rows["zero-shot"] = asked(graph, moved.scaling, moved.model, target) | {"seconds": round(seconds, 1)}
        weights = RunFolder.open(general.run.path).checked(WEIGHTS)
        for row, begin in (("tuned", weights), ("from scratch", None)):
            run, seconds = trained(graph, tuning, Path(place) / row, begin)
            rows[row] = asked(graph, run.scaling, run.model, target) | {"seconds": round(seconds, 1)}
        facts = FactTensors.from_table(graph.split("train"), graph.vocabulary, run.scaling, target)
        for kind in TRIVIAL:
            rows[kind] = asked(graph, run.scaling, statistic(kind, facts), target)
    return rows


def table(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """A row for each graph that was left out and each way to answer about it."""
    lines = [f"| left out | | {' | '.join(FIGURES)} |", "|---|---|" + "---|" * len(FIGURES)]
    for graph, rows in found.items():
        for row, figures in rows.items():
            cells = (f"{figures[name]:.3f}" if name in figures else "–" for name in FIGURES)
            lines.append(f"| {graph} | {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="append", default=[], help="NAME=FOLDER, or world=world")
    parser.add_argument("--leave-out", action="append", help="only these, by name")
    parser.add_argument("--epochs", type=int, default=20, help="of training on the others")
    parser.add_argument("--tuning", type=int, default=4, help="epochs on the one that was left out")
    parser.add_argument("--set", action="append", default=[], help="a change of a setting, key=value")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    if not given.graph:
        found = read_measured(given.out, advice="name graphs to make one.")
    graphs = {name: load_graph(folder) for name, _, folder in (one.partition("=") for one in given.graph)}
    for name in given.leave_out or list(graphs):
        found[name] = left_out(name, graphs, given.epochs, given.tuning, given.set, given.device)
        write_measured(given.out, found, str(__doc__))
        print(f"{name}: {json.dumps(found[name])}", flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
