"""Whether one run can know graphs that it never met: trained on several graphs at once, each of them left out in turn.

    python -m benchmarks.general_checkpoint --graph world=world --graph yg=graphs/HN-YG --graph wd=graphs/WD50K \
        --device cuda --epochs 20 --tuning 4 --out general.json
    python -m benchmarks.general_checkpoint --out general.json          # the table again

The graphs are laid side by side as one, with names of their own, and hynt-inductive is trained on it. Of the one that
was left out the validation split is asked three times: as the run stands, after `--tuning` epochs from its weights,
and after the same epochs from scratch; the trivial rows stand beside. Nothing is chosen by these figures: all
are of the last weights. An experiment: no weights are kept.

Each graph is left out in a process of its own, and every row is written when it is there: what goes wrong is written
in its place, and the rest goes on. `--out` keeps the rows of other graphs, so several calls fill one file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fine_tuning import FIGURES, Trainings, asked, part_of
from benchmarks.result_file import ResultFile, Row, read_results, this_command, this_commit, this_device
from hynt.batches.fact_tensors import FactTensors
from hynt.graph.changes import names_any, without_names
from hynt.graph.fact_table import ENTITY_KIND, FactTable, components, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.storage import load_graph
from hynt.graph.vocabulary import Entity, Flags, Floats, Ids, Vocabulary
from hynt.kernels.device import chosen_device
from hynt.models.trivial import statistic
from hynt.runs import WEIGHTS
from hynt.runs.elsewhere import on_graph
from hynt.runs.run_folder import RunFolder

TRIVIAL = ("frequency", "relation-median", "neighbour-mean")
ROWS = ("zero-shot", "tuned", "from scratch", *TRIVIAL)
BRANCHES = 4
"""Neighbours that growing a part goes on to from an entity: a hub would bring everything."""


class Lengths(NamedTuple):
    """How long trainings are."""

    epochs: int  # on the other graphs
    tuning: int  # on the one that was left out
    rate: float = 0.3  # of tuning, as a share of the usual one
    most_facts: int | None = None  # of each of the other graphs
    of_left_out: int | None = None


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


def part(graph: KnowledgeGraph, most: int | None, seed: int = 0) -> KnowledgeGraph:
    """The graph as it is, or, where it has more than so many training facts, about so many of a neighbourhood, without
    the names of all other entities. Asked facts that name one of these, or a number beyond those of its relation among
    the training facts, go too: a scale that a few numbers make means nothing beyond them.
    """
    size = len(graph.split("train"))
    if most is None or size <= most:
        return graph
    made = part_of(graph, most / size, order=_outside_in(graph, 2 * most, seed))
    vocabulary, train = made.vocabulary, made.split("train")
    slots = components(train, vocabulary.relation_is_number)
    gone = np.setdiff1d(np.arange(vocabulary.entity_count), slots.entity[slots.kind == ENTITY_KIND])
    ranges = _ranges(train, vocabulary)
    splits = {
        name: one.where(~names_any(one, vocabulary, gone) & _ranges_hold(one, vocabulary, ranges))
        for name, one in made.splits.items()
    }
    return without_names(replace(made, splits=splits), gone)


def _ranges(train: FactTable, vocabulary: Vocabulary) -> tuple[Floats, Floats]:
    """The least and the greatest number of each relation, (relations,) each; nothing lies between where it has none."""
    numbers = sorted_numbers(train, vocabulary.relation_is_number)
    least, most = np.full((2, vocabulary.relation_count), [[np.inf], [-np.inf]])
    least[numbers.present] = numbers.value[numbers.start]
    most[numbers.present] = numbers.value[numbers.start + numbers.size - 1]
    return least, most


def _ranges_hold(table: FactTable, vocabulary: Vocabulary, ranges: tuple[Floats, Floats]) -> Flags:
    """(n,) whether all numbers of each fact are in the range of their relation."""
    numbers, (least, most) = sorted_numbers(table, vocabulary.relation_is_number), ranges
    outside = (numbers.value < least[numbers.relation]) | (numbers.value > most[numbers.relation])
    held = np.ones(len(table), dtype=np.bool_)
    held[numbers.row[outside]] = False
    return held


def _outside_in(graph: KnowledgeGraph, most: int, seed: int) -> Ids:
    """(entities,) all entities, last those that lie around one, nearest at the very end; `most` are walked to."""
    chance, train = np.random.default_rng(seed), graph.split("train")
    linked = np.flatnonzero(~graph.vocabulary.relation_is_number[train.relation])
    linked = chance.permutation(linked)
    ends = np.concatenate([train.head[linked], train.tail_entity[linked]])
    others = np.concatenate([train.tail_entity[linked], train.head[linked]])
    by_end = np.argsort(ends, kind="stable")
    start = np.searchsorted(ends[by_end], np.arange(graph.vocabulary.entity_count + 1))
    first = int(train.head[linked[0]]) if len(linked) else 0
    met, waiting = {first: None}, deque([first])
    while waiting and len(met) < most:
        one = waiting.popleft()
        for other in others[by_end[start[one] : start[one + 1]]][:BRANCHES].tolist():
            if other not in met:
                met[other] = None
                waiting.append(other)
    near = np.fromiter(met, dtype=np.int64)
    far = chance.permutation(np.setdiff1d(np.arange(graph.vocabulary.entity_count), near))
    return np.concatenate([far, near[::-1]])


def left_out(
    name: str, graphs: Mapping[str, KnowledgeGraph], given: Lengths, trainings: Trainings
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of one graph, one after another, those first that need no run trained without it. A row that cannot be
    made tells the error.
    """
    device, graph = trainings.device, part(graphs[name], given.of_left_out)
    train, valid = graph.split("train"), graph.split("valid")
    yield "graph", {"facts": len(train), "asked": len(valid), "entities": graph.vocabulary.entity_count}
    try:
        run, seconds = trainings.run(graph, given.tuning)
        yield "from scratch", asked(graph, run.scaling, run.model, device) | {"seconds": seconds}
        known = FactTensors.from_table(train, graph.vocabulary, run.scaling, device)
        for kind in TRIVIAL:
            yield kind, asked(graph, run.scaling, statistic(kind, known), device)
    except Exception as problem:  # noqa: BLE001 - an experiment of hours tells what failed, and goes on
        yield "from scratch", _failed(problem)
    row = "zero-shot"
    try:
        parts = {other: part(one, given.most_facts) for other, one in graphs.items() if other != name}
        general, seconds = trainings.run(side_by_side(parts), given.epochs)
        moved = on_graph(general, graph, ["train"])
        said = {"seconds": seconds, "facts": len(general.graph.split("train"))}
        yield row, asked(graph, moved.scaling, moved.model, device) | said
        row = "tuned"
        weights = RunFolder.open(general.run.path).checked(WEIGHTS)
        run, seconds = trainings.run(graph, given.tuning, weights, given.rate)
        yield row, asked(graph, run.scaling, run.model, device) | {"seconds": seconds}
    except Exception as problem:  # noqa: BLE001 - likewise
        yield row, _failed(problem)


def _failed(problem: Exception) -> dict[str, Any]:
    traceback.print_exception(problem)
    return {"error": f"{type(problem).__name__}: {problem}"[:2000]}


def table(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """A row for each graph that was left out and each way to answer about it; below, what went wrong."""
    lines = [f"| left out | | {' | '.join(FIGURES)} |", "|---|---|" + "---|" * len(FIGURES)]
    for graph, rows in found.items():
        for row in (one for one in ROWS if one in rows):
            cells = (f"{rows[row][name]:.3f}" if name in rows[row] else "–" for name in FIGURES)
            lines.append(f"| {graph} | {row} | {' | '.join(cells)} |")
    errors = [
        f"{graph}, {row}: {one['error']}"
        for graph, rows in found.items()
        for row, one in rows.items()
        if "error" in one
    ]
    return "\n".join([*lines, *errors])


def in_a_process(name: str, arguments: list[str]) -> str:
    """Leaves one graph out in a process of its own; how that ended, "" if well."""
    command = [sys.executable, "-m", "benchmarks.general_checkpoint", *arguments, "--here", name]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    sys.stderr.write(done.stderr)
    return f"ended with {done.returncode}: {done.stderr.strip()[-2000:]}" if done.returncode else ""


def written(out: Path, row: Row) -> ResultFile:
    """The file, in which the row is now, beside those that it had."""
    found = read_results(out) if out.exists() else ResultFile(str(__doc__).splitlines()[0])
    found = found.with_row(row)
    found.write(out)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="append", default=[], help="NAME=FOLDER, or world=world")
    parser.add_argument("--leave-out", action="append", help="only these, by name")
    parser.add_argument("--epochs", type=int, default=20, help="of training on the others")
    parser.add_argument("--tuning", type=int, default=4, help="epochs on the one that was left out")
    parser.add_argument("--rate", type=float, default=0.3, help="of tuning, as a share of the usual learning rate")
    parser.add_argument("--most-facts", type=int, help="of each training graph, those of a neighbourhood")
    parser.add_argument("--of-left-out", type=int, help="the same of the graph that is left out")
    parser.add_argument("--set", action="append", default=[], help="a change of a setting, key=value")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--here", help=argparse.SUPPRESS)  # in this process, this one
    given = parser.parse_args()
    folders = {name: folder for name, _, folder in (one.partition("=") for one in given.graph)}
    if not folders:
        print(table({row.name: row.measured for row in read_results(given.out, "name graphs to make one.").rows}))
    elif given.here:
        leave_out(given.here, {name: load_graph(folder) for name, folder in folders.items()}, given)
    else:
        for name in given.leave_out or folders:
            if problem := in_a_process(name, sys.argv[1:]):
                row = read_results(given.out).row(name) if given.out.exists() else None
                row = row or Row(name, [this_command()], this_device(given.device), this_commit(), graph=name)
                written(given.out, replace(row, measured={**row.measured, "process": {"error": problem}}))
        print(table({row.name: row.measured for row in read_results(given.out).rows}))


def leave_out(name: str, graphs: Mapping[str, KnowledgeGraph], given: argparse.Namespace) -> None:
    """Writes the rows of one graph into the file as they come."""
    lengths = Lengths(given.epochs, given.tuning, given.rate, given.most_facts, given.of_left_out)
    command = this_command(sys.argv[1:-2])  # without --here NAME
    row = Row(name, [command], this_device(given.device), this_commit(), graph=name, split="valid", changes=given.set)
    with tempfile.TemporaryDirectory() as place:
        trainings = Trainings(Path(place), chosen_device(given.device), given.set)
        for way, figures in left_out(name, graphs, lengths, trainings):
            row = replace(row, measured={**row.measured, way: figures})
            written(given.out, row)
            print(f"{name}, {way}: {json.dumps(figures)}", flush=True)


if __name__ == "__main__":
    main()
