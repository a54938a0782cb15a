"""Tables for `docs/results` from the JSON that `benchmarks/device.py` wrote.

    python -m benchmarks.results_table docs/results/raw/hn-yg-link.json [FILE …]

One row a job: mean ± standard deviation over its seeds, or its ensemble, on the split asked, with realistic ties.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COLUMNS = {
    "link": ("triplet.mrr", "triplet.hits@1", "triplet.hits@3", "triplet.hits@10", "all.mrr"),
    "relation": ("triplet.mrr", "all.mrr"),
    "number": ("triplet.rmse", "all.rmse"),
}


def rows(files: list[Path], task: str, ties: str = "realistic") -> Iterator[list[str]]:
    """Cells of the table of one task; jobs that did not answer it have no row."""
    for file in files:
        for name, job in json.loads(file.read_text(encoding="utf-8"))["jobs"].items():
            summary: dict[str, Any] = job.get("train", {}).get("summary", {})
            found = [summary.get(f"{ties}.{task}.{column}") for column in COLUMNS[task]]
            together = job.get("ensemble", {})
            scopes = together.get(together.get("split", ""), {}).get(ties, {}).get(task)
            if scopes is not None:
                values = [scopes[scope][metric] for scope, metric in (column.split(".") for column in COLUMNS[task])]
                found = [{"mean": value, "runs": 1} for value in values]
            if all(found):
                cells = [_cell(one) for one in found if one]
                yield [f"{file.stem}: {name}", str(found[0]["runs"]) if found[0] else "", *cells]


def _cell(found: dict[str, Any]) -> str:
    spread = f" ± {found['deviation']:.4f}" if found["runs"] > 1 else ""
    return f"{found['mean']:.4f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    for task, columns in COLUMNS.items():
        print(f"\n| {task} | seeds | {' | '.join(columns)} |\n|---|---|{'---|' * len(columns)}")
        for cells in rows(arguments.files, task):
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
