"""Which settings suit a graph of one's own: parts of a graph as somebody's own graph would be, and trials on them.

A part is the facts about some entities, or those around one entity, split anew as an import splits. A trial trains one
model with some settings and reads the validation split; the test split is not looked at. Trials come from a JSON list
of {"graph", "label", "model", "preset", "seed", "set"} (all but "graph" may be left out); those whose row is there are
passed over. Time is that of processors, so that other work on the machine does not count.

python -m benchmarks.own_graph cut --graph world --by heads --facts 2000 --out parts/world-2k
python -m benchmarks.own_graph try --plan plan.json --out docs/results/raw/own-graph.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.result_file import (
    ResultFile,
    Row,
    Run,
    graph_fingerprint,
    kept_metrics,
    read_results,
    this_command,
    this_commit,
    this_device,
)
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import Fact
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph, save_graph


def about_some(graph: KnowledgeGraph, count: int, seed: int = 0, of_type: str = "") -> list[Fact]:
    """All facts whose heads are among entities drawn one by one, until there are `count` facts."""
    facts, types = list(graph.facts()), {entity.name: entity.type for entity in graph.entities}
    by_head: dict[str, list[Fact]] = {}
    for fact in facts:
        if not of_type or types[fact.head] == of_type:
            by_head.setdefault(fact.head, []).append(fact)
    heads = sorted(by_head)
    found: list[Fact] = []
    for place in np.random.default_rng(seed).permutation(len(heads)):
        if len(found) >= count:
            break
        found += by_head[heads[place]]
    return found


def around_one(graph: KnowledgeGraph, count: int, seed: int = 0) -> list[Fact]:
    """All facts whose heads lie nearest to an entity drawn by lot, breadth first along entity tails, both ways."""
    facts = list(graph.facts())
    by_head: dict[str, list[Fact]] = {}
    beside: dict[str, list[str]] = {}
    for fact in facts:
        by_head.setdefault(fact.head, []).append(fact)
        if isinstance(fact.tail, str):
            beside.setdefault(fact.head, []).append(fact.tail)
            beside.setdefault(fact.tail, []).append(fact.head)
    random = np.random.default_rng(seed)
    heads = sorted(by_head)
    found: list[Fact] = []
    queue = [heads[int(random.integers(len(heads)))]]
    seen = set(queue)
    while queue and len(found) < count:
        entity = queue.pop(0)
        found += by_head.get(entity, [])
        news = sorted(set(beside.get(entity, ())) - seen)
        for place in random.permutation(len(news))[:20]:  # a hub does not fill the whole part
            seen.add(news[place])
            queue.append(news[place])
    return found


WAYS = ("heads", "neighbourhood")


def cut(graph: KnowledgeGraph, way: str, count: int, seed: int, of_type: str = "") -> KnowledgeGraph:
    """A part of the graph, as a new import would split it."""
    facts = about_some(graph, count, seed, of_type) if way == "heads" else around_one(graph, count, seed)
    return graph_from_facts(facts, name=f"{graph.name} {way} {len(facts)}")


def try_one(graph: KnowledgeGraph, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One model on the validation split: its metrics, its time and its settings."""
    import torch

    from hynt.config import to_mapping
    from hynt.evaluation.evaluator import Evaluator
    from hynt.runs.opening import load_run
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings
    from hynt.training.run import start, train

    changes = tuple(
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in wanted.get("set", {}).items()
    )
    request = SettingsRequest(
        wanted.get("model", "hynt"), wanted.get("preset"), seed=wanted.get("seed", 0), changes=changes
    )
    settings, device = resolve_settings(request, graph, on_gpu=False), torch.device("cpu")
    with tempfile.TemporaryDirectory(prefix="own-graph-") as folder:
        began = time.process_time()
        run = train(start(graph, settings, Path(folder) / "run", device), device, clock=time.process_time)
        lines = [json.loads(line) for line in run.metrics.read_text(encoding="utf-8").splitlines()]
        training, loaded = run.manifest["training"], load_run(run.path)
        found = Evaluator(graph, loaded.scaling, "valid", literals=loaded.literals).evaluate(loaded.model).to_mapping()
    curve = [line for line in lines if "validation" in line]
    epochs = max((line["epoch"] for line in lines if "loss" in line), default=0)
    return {
        "valid": {task: found[task] for task in ("link", "relation", "number") if found.get(task)},
        "epoch": training.get("weights_of_epoch", 0),
        "epochs": epochs,
        "curve": [[line["epoch"], round(line["value"], 5)] for line in curve],
        "train_seconds": training["seconds"],
        "all_seconds": round(time.process_time() - began, 2),
        "settings": to_mapping(settings),
    }


def described(graph: KnowledgeGraph) -> dict[str, Any]:
    """The sizes that a rule may look at."""
    table, is_number = graph.split("train"), graph.vocabulary.relation_is_number
    return {
        "name": graph.name,
        "splits": {name: len(split) for name, split in graph.splits.items()},
        "entities": graph.vocabulary.entity_count,
        "relations": graph.vocabulary.relation_count,
        "number_tails": int(is_number[table.relation].sum()),
        "qualifiers": int(table.qualifier_total),
    }


def tried(plan: list[dict[str, Any]], out: Path, parts: Path) -> Iterator[str]:
    """Runs what is missing, and writes after each row."""
    found = read_results(out) if out.exists() else ResultFile("Which settings suit small graphs, on validation.")
    done = {json.dumps(row.measured.get("wanted"), sort_keys=True) for row in found.rows}
    graphs: dict[str, KnowledgeGraph] = {}
    device = this_device("cpu")
    for wanted in plan:
        if json.dumps(wanted, sort_keys=True) in done:
            continue
        name = wanted["graph"]
        if name not in graphs:
            graphs[name] = load_graph(str(parts / name) if (parts / name).is_dir() else name)
            sizes = {"graph": described(graphs[name])}
            fingerprint = graph_fingerprint(graphs[name])
            found = found.with_row(
                Row(f"graph {name}", [this_command()], device, graph=name, fingerprint=fingerprint, measured=sizes)
            )
        row = {"wanted": wanted, **try_one(graphs[name], wanted)}
        found = found.with_row(kept(row, device))
        found.write(out)
        yield line_of(row)


def kept(row: Mapping[str, Any], device: str) -> Row:
    """A trial as raw files hold it."""
    wanted = row["wanted"]
    named = {key: value for key, value in wanted.items() if key not in ("graph", "set")}
    changes = [f"{key}={value}" for key, value in wanted.get("set", {}).items()]
    words = [wanted["graph"], *(f"{key} {value}" for key, value in named.items()), *changes]
    run = Run(
        wanted.get("seed", 0),
        {"valid": kept_metrics(row["valid"])},
        {"train": row["train_seconds"], "whole": row["all_seconds"]},
        {"epochs": row["epochs"], "weights_of_epoch": row["epoch"]},
        row["curve"],
    )
    return Row(
        ", ".join(words),
        [this_command()],
        device,
        this_commit(),
        wanted.get("model", "hynt"),
        wanted["graph"],
        split="valid",
        preset=wanted.get("preset"),
        changes=changes,
        settings=row["settings"],
        runs=[run],
        measured={"wanted": wanted},
    )


def line_of(row: Mapping[str, Any]) -> str:
    """A row as a line of text."""
    valid = row["valid"]

    def metric(task: str, scope: str, name: str) -> str:
        value = valid.get(task, {}).get(scope, {}).get(name)
        return "–" if value is None else f"{value:.4f}"

    cells = [
        row["wanted"]["graph"],
        row["wanted"].get("model", "hynt"),
        json.dumps(row["wanted"].get("set", {})),
        f"link {metric('link', 'triplet', 'mrr')} all {metric('link', 'all', 'mrr')}",
        f"relation {metric('relation', 'all', 'mrr')}",
        f"number {metric('number', 'all', 'rmse')}",
        f"{row['train_seconds']:.0f} s",
        f"{row['epochs']} epochs",
    ]
    return " | ".join(cells)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    cutting = verbs.add_parser("cut")
    cutting.add_argument("--graph", default="world")
    cutting.add_argument("--by", choices=WAYS, default="heads")
    cutting.add_argument("--type", default="", help="of the heads")
    cutting.add_argument("--facts", type=int, required=True)
    cutting.add_argument("--seed", type=int, default=0)
    cutting.add_argument("--out", type=Path, required=True)
    trying = verbs.add_parser("try")
    trying.add_argument("--plan", type=Path, required=True)
    trying.add_argument("--parts", type=Path, default=Path("parts"))
    trying.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.verb == "cut":
        graph = cut(load_graph(given.graph), given.by, given.facts, given.seed, given.type)
        save_graph(graph, given.out)
        print(described(graph))
        return
    for line in tried(json.loads(given.plan.read_text(encoding="utf-8")), given.out, given.parts):
        print(line, flush=True)


if __name__ == "__main__":
    main()
