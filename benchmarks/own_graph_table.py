"""The table of `benchmarks.own_graph`: HyNT's settings by size before and now, beside a baseline and trivial models.

python -m benchmarks.own_graph_table docs/results/raw/own-graph.json
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.result_file import ResultFile, Run, read_results

OURS = ("preset world", "before", "now")
"""HyNT as `hynt compare` trained it, by the settings for a size as they were, and as they are."""
TASKS = {
    "link MRR": ("link", "triplet", "mrr", "frequency"),
    "relation MRR": ("relation", "triplet", "mrr", "frequency"),
    "number MAE": ("number", "triplet", "mae", "neighbour-mean"),
}
"""Title to task, scope, metric and trivial model."""
FAR_OFF = 1.0
"""A mean error that is larger than the range of the training numbers comes from a few that lie far outside it."""


def markdown(found: ResultFile) -> str:
    """Some lines for each graph that has a row of today's settings."""
    graphs = {str(row.graph): row.measured["graph"] for row in found.rows if "graph" in row.measured}
    titles = ("graph", "facts, entities", "", "trivial", "TransEA", *OURS)
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for name, graph in sorted(graphs.items(), key=lambda item: item[1]["splits"]["train"]):
        rows = {
            row.measured["wanted"].get("label"): row.runs[0] for row in found.rows if row.graph == name and row.runs
        }
        if "now" in rows:
            sizes = f"{graph['splits']['train']:,}, {graph['entities']:,}"
            lines += [f"| {' | '.join(cells)} |" for cells in _lines(name, sizes, rows)]
    return "\n".join(lines) + "\n"


def _lines(name: str, sizes: str, rows: Mapping[Any, Run]) -> list[list[str]]:
    found = []
    for title, (task, scope, metric, trivial) in TASKS.items():
        values = [
            rows[label].metric("valid", task, scope, metric) if label in rows else None
            for label in (trivial, "transea", *OURS)
        ]
        if values[0] is not None and not (metric == "mae" and values[0] > FAR_OFF):
            found.append([title, *("–" if value is None else f"{value:.3f}" for value in values)])
    seconds = [f"{rows[label].seconds['train']:.0f}" if label in rows else "–" for label in ("transea", *OURS)]
    found.append(["seconds", "–", *seconds])
    heads = [[name, sizes]] + [["", ""]] * (len(found) - 1)
    return [head + cells for head, cells in zip(heads, found, strict=True)]


if __name__ == "__main__":
    print(markdown(read_results(Path(sys.argv[1]))), end="")
