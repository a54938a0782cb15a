"""Which model suits which graph and which budget of time: every model that answers, on parts of graphs, in one table.

A part is cut as `benchmarks.own_graph` cuts it, so many facts about some entities; a smaller graph is taken whole.
Each model trains for the same minutes of processor time as `hynt compare` has it, with statistics beside it. Rows that
are there are passed over, so the command goes on with what was stopped, and the file says what was not run.

python -m benchmarks.laptop_study run --graph world=world --facts 2000 --minutes 1 --out study.json
python -m benchmarks.laptop_study table --out study.json

The table names for each part and budget what validation places first among the models that answer most tasks, and shows
its figures on test.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.own_graph import cut, described
from benchmarks.result_file import read_result
from hynt.comparison.comparing import model_names, trial_for
from hynt.comparison.table import MARKS, recommended
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph

KEPT = ("model", "preset", "seed", "epochs", "train_seconds", "facts_per_second", "parameters", "budget_limited")


def part_of(source: str, facts: int) -> KnowledgeGraph:
    """A graph whole, or so many of its facts split anew."""
    graph = load_graph(source)
    return graph if sum(map(len, graph.splits.values())) <= facts else cut(graph, "heads", facts, seed=0)


def row_of(graph: KnowledgeGraph, model: str, minutes: float, device: str) -> dict[str, Any]:
    """One model within the time: what `hynt compare` keeps of it, without settings and curves."""
    import torch

    from hynt.comparison.trial import TrialPlace, run_trial

    target = torch.device(device)
    clock = time.process_time if device == "cpu" else time.monotonic
    trial = trial_for(model, graph, target, 0, 60 * minutes)
    with tempfile.TemporaryDirectory(prefix="study-") as folder:
        row = run_trial(TrialPlace(graph, target, clock=clock, compiled=minutes >= 4), trial, Path(folder) / "run")
    return {
        **{name: row[name] for name in KEPT},
        "valid": row["valid"],
        "test": {"realistic": row["test"]["realistic"]},
    }


def study(
    graphs: Mapping[str, str], sizes: Sequence[int], budgets: Sequence[float], models: str, device: str, out: Path
) -> Iterator[str]:
    """Runs what is missing, smallest first, and writes after each row; a line for each."""
    found = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"graphs": {}, "rows": [], "planned": []}
    done = {row["key"] for row in found["rows"]}
    for size, minutes, (name, source) in product(sizes, budgets, graphs.items()):
        wanted = {f"{name} {size} {minutes:g} {device} {model}": model for model in model_names(models)}
        found["planned"] = sorted({*found["planned"], *wanted})
        if wanted.keys() <= done:
            continue
        graph = part_of(source, size)
        found["graphs"][f"{name} {size}"] = described(graph)
        for key, model in wanted.items():
            if key in done:
                continue
            try:
                row = row_of(graph, model, minutes, device)
            except (RuntimeError, ValueError, MemoryError, AssertionError) as problem:
                row = {"model": model, "failed": str(problem)}
            where = {"key": key, "graph": f"{name} {size}", "minutes": minutes, "device": device}
            found["rows"].append({**where, **row})
            out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            yield f"{key}: {told(row)}"


def told(row: Mapping[str, Any], split: str = "valid") -> str:
    """`link MRR 0.3, relation MRR 0.9`."""
    if "failed" in row:
        return f"failed: {row['failed']}"
    table = row["valid"] if split == "valid" else row["test"]["realistic"]
    cells = [(words, table.get(task, {}).get("triplet", {}).get(metric)) for task, (metric, words, _) in MARKS.items()]
    return ", ".join(f"{words} {value:.3f}" for words, value in cells if value is not None)


def table(found: Mapping[str, Any]) -> str:
    """A row per part and budget: what to train there, what it reaches, and who was tried; then what was not run."""
    lines = ["| graph, facts | minutes | device | model | on test, triplets | tried |", "|---|---|---|---|---|---|"]
    groups: dict[tuple[str, float, str], list[Mapping[str, Any]]] = {}
    for row in found["rows"]:
        groups.setdefault((row["graph"], row["minutes"], row["device"]), []).append(row)
    for (graph, minutes, device), rows in groups.items():
        fine = [row for row in rows if "failed" not in row]
        best = recommended({"rows": fine, "minutes_per_model": minutes}, graph)
        if best is None:
            continue
        chosen = next(row for row in fine if row["model"] == best["model"])
        tried = ", ".join(row["model"] for row in fine)
        lines.append(f"| {graph} | {minutes:g} | {device} | {best['model']} | {told(chosen, 'test')} | {tried} |")
    missing = sorted({*found["planned"]} - {row["key"] for row in found["rows"]})
    return "\n".join([*lines, "", f"not run: {', '.join(missing) or 'nothing'}"])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table"])
    parser.add_argument("--graph", action="append", metavar="NAME=FOLDER", default=None, help="Repeatable.")
    parser.add_argument("--facts", default="2000,10000,60000,170000", help="Sizes of the parts.")
    parser.add_argument("--minutes", default="3,10,30", help="Of training, for each model.")
    parser.add_argument("--models", default="all")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.verb == "run":
        graphs = dict(one.split("=", 1) for one in given.graph or ["world=world"])
        sizes, budgets = [int(one) for one in given.facts.split(",")], [float(one) for one in given.minutes.split(",")]
        for line in study(graphs, sizes, budgets, given.models, given.device, given.out):
            print(line, flush=True)
    print(table(read_result(given.out, "rows", "planned", advice="run it first: laptop_study run")))


if __name__ == "__main__":
    main()
