"""What single statistics are worth beside a trained run: its validation errors with all of them, and without each.

    hynt train GRAPH --minutes 2 --model hynt --out RUN
    python -m benchmarks.statistics_worth RUN --without number-series neighbour-regression --out worth.json

Weights are fitted on one half of the validation facts and judged on the other, and the other way round; the test split
is not read. Links and relations are MRR, numbers RMSE on the run's scale, of all positions.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.result_file import graph_fingerprint, write_measured
from hynt.evaluation.combining import QUESTIONS, combined, fit_weights
from hynt.evaluation.evaluator import Evaluator
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.models.combination import Combination
from hynt.models.contract import Model
from hynt.models.training_statistics import number_ranges
from hynt.models.trivial import FORMER, STATISTICS, statistic
from hynt.runs.opening import LoadedRun, load_run

FITTED, JUDGED = "valid", "test"
"""What the halves are called in a graph of their own."""


def halves(graph: KnowledgeGraph, seed: int = 0) -> tuple[KnowledgeGraph, KnowledgeGraph]:
    """Two graphs whose held-out splits are the halves of the graph's validation split, once each way round."""
    valid = graph.split("valid")
    first = np.random.default_rng(seed).permutation(len(valid)) % 2 == 0
    parts = valid.where(first), valid.where(~first)
    return cast(
        tuple[KnowledgeGraph, KnowledgeGraph],
        tuple(
            KnowledgeGraph(
                graph.vocabulary, {"train": graph.split("train"), FITTED: one, JUDGED: other}, graph.entities
            )
            for one, other in (parts, parts[::-1])
        ),
    )


def worth(loaded: LoadedRun, without: Collection[str], questions: int = QUESTIONS) -> dict[str, float]:
    """The figures of a run with all statistics but these, each fact judged by weights that were fitted on others."""
    whole = loaded.model
    models = whole.trained_members() if isinstance(whole, Combination) else [whole]
    totals: dict[str, list[float]] = {}
    for graph in halves(loaded.graph):
        fitting, judging = (Evaluator(graph, loaded.scaling, split) for split in (FITTED, JUDGED))
        facts = fitting.observed_facts
        names = [name for name in STATISTICS if name not in without]
        members = [*models, *(cast(Model, statistic(name, facts)) for name in names)]
        trained = [f"run {number}" for number in range(len(models))]
        answers = frozenset().union(*(one.answers for one in models))
        ranges = number_ranges(facts)
        every, count = [*trained, *names], len(models)
        weights = fit_weights(every, members, fitting, answers, 0, ranges, count, questions=questions)
        found = judging.evaluate(combined(models, facts, weights)).to_mapping()
        for task in ("link", "relation", "number"):
            if task in found:
                marks, metric = found[task]["all"], "rmse" if task == "number" else "mrr"
                value = marks[metric] ** 2 if task == "number" else marks[metric]
                sums = totals.setdefault(f"{task} {metric}", [0.0, 0.0])
                sums[0] += value * marks["count"]
                sums[1] += marks["count"]
    means = {name: total / count for name, (total, count) in totals.items()}
    return {name: round(math.sqrt(mean) if name.endswith("rmse") else mean, 5) for name, mean in means.items()}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder, trained on the training split alone")
    parser.add_argument("--without", nargs="+", choices=[*STATISTICS, *FORMER], default=list(STATISTICS))
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of each kind, by which weights are fitted")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    loaded = load_run(given.run)
    rows: dict[str, Any] = {"all": worth(loaded, (), given.questions)}
    print("all:", json.dumps(rows["all"]), flush=True)
    for name in given.without:
        rows[name] = worth(loaded, {name}, given.questions)
        print(f"without {name}:", json.dumps(rows[name]), flush=True)
    made = loaded.graph.name or given.run.name
    write_measured(given.out, rows, str(__doc__), graph=made, fingerprint=graph_fingerprint(loaded.graph))


if __name__ == "__main__":
    main()
