"""The rows of any raw files of `docs/results`, as tables.

    python -m benchmarks.results_table docs/results/raw/hn-yg-link.json [FILE …]

Mean ± standard deviation over the seeds of a row, on its split, with realistic ties.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.result_file import Figure, read_results

COLUMNS = {
    "link": ("triplet.mrr", "triplet.hits@1", "triplet.hits@3", "triplet.hits@10", "all.mrr"),
    "relation": ("triplet.mrr", "all.mrr"),
    "number": ("triplet.rmse", "all.rmse"),
}


def rows(files: list[Path], task: str) -> Iterator[list[str]]:
    """Cells of the table of one task; rows that did not answer it are left out."""
    for file in files:
        for row in read_results(file).rows:
            found = [row.figure(task, *column.split(".")) for column in COLUMNS[task]]
            if found[0] is not None:
                yield [f"{file.stem}: {row.name}", str(found[0].seeds), *map(_cell, found)]


def _cell(found: Figure | None) -> str:
    if found is None:
        return "–"
    return f"{found.mean:.4f}" + ("" if found.deviation is None else f" ± {found.deviation:.4f}")


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
