"""Whether one run can know graphs that it never met: trained on several graphs at once, each of them left out in turn.

    python -m benchmarks.general_checkpoint --graph world=world --graph yg=graphs/HN-YG --graph wd=graphs/WD50K \
        --device cuda --epochs 20 --tuning 4 --out general.json
    python -m benchmarks.general_checkpoint --out general.json          # the table again

The graphs are laid side by side as one, with names of their own, and hynt-inductive is trained on it. Of the one that
was left out the validation split is asked three times: as the run stands, after `--tuning` epochs from its weights,
and after the same epochs from scratch; the trivial rows stand beside. Nothing is chosen by these figures: all
are of the last weights. An experiment: no weights are kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fine_tuning import FIGURES, Trainings, asked, part_of
from benchmarks.result_file import read_measured, write_measured
from hynt.batches.fact_tensors import FactTensors
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph
from hynt.graph.vocabulary import Entity, Vocabulary
from hynt.kernels.device import chosen_device
from hynt.models.trivial import statistic
from hynt.runs.checkpoint import WEIGHTS
from hynt.runs.elsewhere import on_graph
from hynt.runs.run_folder import RunFolder

TRIVIAL = ("frequency", "relation-median", "neighbour-mean")


class Lengths(NamedTuple):
    """How long trainings are."""

    epochs: int  # on the other graphs
    tuning: int  # on the one that was left out
    rate: float = 0.3  # of tuning, as a share of the usual one
    most_facts: int | None = None  # of each of the other graphs


def side_by_side(graphs: Mapping[str, KnowledgeGraph]) -> KnowledgeGraph:
    """One graph of the training facts of several, which share neither entities nor relations."""
    entities, relations = list[Entity](), list[Any]()
    tables: list[FactTable] = []
    places = []
    for name, graph in graphs.items():
        places.append((graph, len(entities), len(relations)))
        entities += [one._replace(name=f"{name}: {one.name}") for one in graph.entities]
        relations += [one._replace(name=f"{name}: {one.name}") for one in graph.relations]
    vocabulary = Vocabulary(tuple(one.name for one in entities), tuple(relations))
    for graph, first, second in places:
        entity = np.arange(first, first + graph.vocabulary.entity_count, dtype=np.int32)
        relation = np.arange(second, second + graph.vocabulary.relation_count, dtype=np.int32)
        tables.append(graph.split("train").renumbered(entity, relation, vocabulary.relation_is_number))
    return KnowledgeGraph(vocabulary, {"train": concatenate(tables)}, tuple(entities))


def left_out(
    name: str, graphs: Mapping[str, KnowledgeGraph], given: Lengths, trainings: Trainings
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of one graph, one after another; the run was trained without it."""
    device, graph = trainings.device, graphs[name]
    parts = {other: capped(one, given.most_facts) for other, one in graphs.items() if other != name}
    general, seconds = trainings.run(side_by_side(parts), given.epochs)
    moved = on_graph(general, graph, ["train"])
    facts = len(general.graph.split("train"))
    said = {"seconds": seconds, "facts": facts}
    yield "zero-shot", asked(graph, moved.scaling, moved.model, device) | said
    weights = RunFolder.open(general.run.path).checked(WEIGHTS)
    for row, begin, rate in (("tuned", weights, given.rate), ("from scratch", None, 1.0)):
        run, seconds = trainings.run(graph, given.tuning, begin, rate)
        yield row, asked(graph, run.scaling, run.model, device) | {"seconds": seconds}
    known = FactTensors.from_table(graph.split("train"), graph.vocabulary, run.scaling, device)
    for kind in TRIVIAL:
        yield kind, asked(graph, run.scaling, statistic(kind, known), device)


def capped(graph: KnowledgeGraph, most: int | None) -> KnowledgeGraph:
    """The graph with about so many training facts, those of some entities; as it is where it has fewer."""
    size = len(graph.split("train"))
    return graph if most is None or size <= most else part_of(graph, most / size, 0)


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
    parser.add_argument("--rate", type=float, default=0.3, help="of tuning, as a share of the usual learning rate")
    parser.add_argument("--most-facts", type=int, help="of each training graph, those of some of its entities")
    parser.add_argument("--set", action="append", default=[], help="a change of a setting, key=value")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    if not given.graph:
        found = read_measured(given.out, advice="name graphs to make one.")
    graphs = {name: load_graph(folder) for name, _, folder in (one.partition("=") for one in given.graph)}
    lengths = Lengths(given.epochs, given.tuning, given.rate, given.most_facts)
    for name in given.leave_out or list(graphs):
        with tempfile.TemporaryDirectory() as place:
            trainings = Trainings(Path(place), chosen_device(given.device), given.set)
            for row, figures in left_out(name, graphs, lengths, trainings):
                found.setdefault(name, {})[row] = figures
                write_measured(given.out, found, str(__doc__))
                print(f"{name}, {row}: {json.dumps(figures)}", flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
