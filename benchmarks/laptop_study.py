"""Which model suits which graph and which budget of time: every model that answers, on parts of graphs, in one table.

A part is cut as `benchmarks.own_graph` cuts it, so many facts about some entities; a smaller graph is taken whole.
Each model trains for the same minutes of processor time as `hynt compare` has it, with statistics beside it. Rows that
are there are passed over, so the command goes on with what was stopped, and the file says what was not run.

python -m benchmarks.laptop_study run --graph world=world --facts 2000 --minutes 1 --out study.json
python -m benchmarks.laptop_study table --out study.json
python -m benchmarks.laptop_study default --out docs/results/raw/laptop-study.json

The table names for each part and budget what validation places first among the models that answer most tasks, and shows
its figures on test. `default` writes these choices where `hynt train --minutes` reads them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.own_graph import cut, described
from benchmarks.result_file import (
    ResultFile,
    Row,
    graph_fingerprint,
    read_results,
    row_of_trial,
    this_commit,
    this_device,
    trial_of_row,
)
from hynt.comparison.comparing import model_names, trial_for
from hynt.comparison.table import MARKS, recommended
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph
from hynt.training.default_model import USUAL, Case

WHAT = "Which model suits which graph and which budget of time."
DEFAULTS = Path(__file__).resolve().parent.parent / "src" / "hynt" / "training" / "default_models.json"
PLAN = "plan"
"""The row of what was to be run, and of the parts' sizes."""


def part_of(source: str, facts: int) -> KnowledgeGraph:
    """A graph whole, or so many of its facts split anew."""
    graph = load_graph(source)
    return graph if sum(map(len, graph.splits.values())) <= facts else cut(graph, "heads", facts, seed=0)


def row_of(graph: KnowledgeGraph, model: str, minutes: float, device: str, changes: Sequence[str]) -> dict[str, Any]:
    """One model within the time: what `hynt compare` tells of it."""
    import torch

    from hynt.comparison.trial import TrialPlace, run_trial

    target = torch.device(device)
    clock = time.process_time if device == "cpu" else time.monotonic
    trial = trial_for(model, graph, target, 0, 60 * minutes)
    trial = replace(trial, changes=(*trial.changes, *changes))
    with tempfile.TemporaryDirectory(prefix="study-") as folder:
        return run_trial(TrialPlace(graph, target, clock=clock, compiled=minutes >= 4), trial, Path(folder) / "run")


def study(
    graphs: Mapping[str, str],
    sizes: Sequence[int],
    budgets: Sequence[float],
    models: str,
    device: str,
    changes: Sequence[str],
    out: Path,
) -> Iterator[str]:
    """Runs what is missing, smallest first, and writes after each row; a line for each."""
    found = read_results(out) if out.exists() else ResultFile(WHAT)
    done = {row.name for row in found.rows}
    where = this_device(device)
    for size, minutes, (name, source) in product(sizes, budgets, graphs.items()):
        wanted = {
            " ".join([name, str(size), f"{minutes:g}", device, model, *changes]): model for model in model_names(models)
        }
        plan = found.row(PLAN) or Row(PLAN, [], where, measured={"planned": [], "graphs": {}})
        plan.measured["planned"] = sorted({*plan.measured["planned"], *wanted})
        if wanted.keys() <= done:
            continue
        graph = part_of(source, size)
        plan.measured["graphs"][f"{name} {size}"] = described(graph)
        found, fingerprint = found.with_row(plan), graph_fingerprint(graph)
        for key, model in wanted.items():
            if key in done:
                continue
            options = f"--graph {name}={name} --facts {size} --minutes {minutes:g} --models {model} --device {device}"
            options += "".join(f" --set {change}" for change in changes)
            commands = [f"python -m benchmarks.laptop_study run {options} --out {out.name}"]
            measured: dict[str, Any] = {"minutes": minutes, "on": device} | ({"set": [*changes]} if changes else {})
            try:
                row = row_of_trial(
                    row_of(graph, model, minutes, device, changes),
                    key,
                    f"{name} {size}",
                    where,
                    commands=commands,
                    commit=this_commit(),
                    fingerprint=fingerprint,
                    measured=measured,
                )
            except (RuntimeError, ValueError, MemoryError, AssertionError) as problem:
                measured["failed"] = str(problem)
                row = Row(key, commands, where, this_commit(), model, f"{name} {size}", fingerprint, measured=measured)
            found = found.with_row(row)
            found.write(out)
            yield f"{key}: {told(row)}"


def told(row: Row, split: str = "valid") -> str:
    """`link MRR 0.3, relation MRR 0.9`."""
    if "failed" in row.measured:
        return f"failed: {row.measured['failed']}"
    cells = [(words, row.runs[0].metric(split, task, "triplet", metric)) for task, (metric, words, _) in MARKS.items()]
    return ", ".join(f"{words} {value:.3f}" for words, value in cells if value is not None)


def placed(found: ResultFile) -> Iterator[tuple[str, float, str, list[Row], Row]]:
    """For each part, budget and device: the rows of single models, and the one that validation places first."""
    groups: dict[tuple[str, float, str], list[Row]] = {}
    for row in found.rows:
        if row.runs and not row.measured.get("several_as_one") and not row.measured.get("set"):
            groups.setdefault((str(row.graph), row.measured["minutes"], row.measured["on"]), []).append(row)
    for (graph, minutes, device), rows in groups.items():
        trials = [trial_of_row(row, row.runs[0]) for row in rows]
        best = recommended({"rows": trials, "minutes_per_model": minutes}, graph)
        if best is not None:
            yield graph, minutes, device, rows, next(row for row in rows if row.model == best["model"])


def table(found: ResultFile) -> str:
    """A row per part and budget: what to train there, what it reaches, and who was tried; then what was not run."""
    lines = ["| graph, facts | minutes | device | model | on test, triplets | tried |", "|---|---|---|---|---|---|"]
    for graph, minutes, device, rows, chosen in placed(found):
        tried = ", ".join(str(row.model) for row in rows)
        lines.append(f"| {graph} | {minutes:g} | {device} | {chosen.model} | {told(chosen, 'test')} | {tried} |")
    plan = found.row(PLAN)
    missing = sorted({*(plan.measured.get("planned", []) if plan else [])} - {row.name for row in found.rows})
    return "\n".join([*lines, "", f"not run: {', '.join(missing) or 'nothing'}"])


def write_defaults(found: ResultFile, path: Path = DEFAULTS) -> None:
    """What `hynt train --minutes` reads: for each part and budget for which several models were tried, the first, or
    hynt where that is better at links, which runs are judged by.
    """
    plan = found.row(PLAN)
    sizes = plan.measured["graphs"] if plan else {}
    cases = []
    for graph, minutes, device, rows, chosen in placed(found):
        if len(rows) > 1 and graph in sizes:
            facts = sizes[graph]["splits"]["train"]
            numbers = round(sizes[graph]["number_tails"] / facts, 3)
            links = {row.model: row.runs[0].metric("valid", "link", "triplet", "mrr") or 0.0 for row in rows}
            model = USUAL if links.get(USUAL, 0.0) > links[chosen.model] else str(chosen.model)
            case = Case(graph, device, minutes, facts, numbers, model)
            cases.append(json.dumps(case._asdict()))
    path.write_text("[\n" + ",\n".join(sorted(cases)) + "\n]\n", encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table", "default"])
    parser.add_argument("--graph", action="append", metavar="NAME=FOLDER", default=None, help="Repeatable.")
    parser.add_argument("--facts", default="2000,10000,60000,170000", help="Sizes of the parts.")
    parser.add_argument("--minutes", default="3,10,30", help="Of training, for each model.")
    parser.add_argument("--models", default="all")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="A setting of all. Repeatable.")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.verb == "run":
        graphs = dict(one.split("=", 1) for one in given.graph or ["world=world"])
        sizes, budgets = [int(one) for one in given.facts.split(",")], [float(one) for one in given.minutes.split(",")]
        for line in study(graphs, sizes, budgets, given.models, given.device, given.set, given.out):
            print(line, flush=True)
    found = read_results(given.out, "run it first: laptop_study run")
    if given.verb == "default":
        write_defaults(found)
    print(table(found))


if __name__ == "__main__":
    main()
