"""The paper's two ablation tables: one row a switch of HyNT or of its masking, one schedule for all rows.

    PYTHONPATH=src python3 -m benchmarks.ablations --graph graphs/HN-YG --preset hn-yg-link --epochs 150 --jobs 3 \
        --set scale_on=all-splits --out ablations-hn-yg.json
    python -m benchmarks.ablations --table docs/results/raw/ablations-hn-yg.json

Each row is a process of `benchmarks/device.py`, several at once; the JSON is written after every row, and called again
with the same `--out` only what is missing is run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.result_file import ResultFile, Row, read_results, this_command

ROWS: dict[str, tuple[str, ...]] = {
    "without masking numbers, relations, qualifiers": (
        "masking.numbers=false",
        "masking.relations=false",
        "masking.qualifiers=false",
    ),
    "without masking relations, qualifiers": ("masking.relations=false", "masking.qualifiers=false"),
    "without masking numbers": ("masking.numbers=false",),
    "without masking relations": ("masking.relations=false",),
    "without masking qualifiers": ("masking.qualifiers=false",),
    "without prediction transformer": ("model.prediction=linear",),
    "with Hadamard encoding": ("model.encoding=hadamard",),
    "numbers as discrete entities": ("model.numbers=discrete",),
    "HyNT": (),
}
COLUMNS = (
    "link.triplet.mrr",
    "link.all.mrr",
    "relation.triplet.mrr",
    "relation.all.mrr",
    "number.triplet.rmse",
    "number.all.rmse",
)
HEADER = "| | link MRR, triplet | all | relation MRR, triplet | all | RMSE, triplet | all |"


def job(given: argparse.Namespace, name: str) -> str:
    """The words of a row for `benchmarks/device.py`."""
    changes = " ".join(f"set={change}" for change in (*given.set, *ROWS[name]))
    preset = f" preset={given.preset}" if given.preset else ""
    return (
        f'"name={name}" graph={given.graph}{preset} measure=train seeds={given.seed} epochs={given.epochs} '
        f"every={given.epochs} split={given.split} {changes}"
    )


def run_row(given: argparse.Namespace, name: str) -> Row:
    """Trains and asks one row in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "row.json"
        command = [sys.executable, str(Path(__file__).with_name("device.py")), "--out", str(out)]
        command += ["--device", given.device, *(["--plain"] if given.plain else []), job(given, name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not out.exists():
            last = (done.stderr or done.stdout).splitlines()[-15:]
            return Row(name, [this_command()], given.device, measured={"failed": last or ["no word"]})
        (row,) = read_results(out).rows
        return row


def table(file: Path) -> str:
    """Markdown, in the paper's order."""
    whole = read_results(file)
    lines = [HEADER, "|---" * (1 + len(COLUMNS)) + "|"]
    for name in ROWS:
        row = whole.row(name)
        if row is None or not row.runs:
            continue
        cells = []
        for column in COLUMNS:
            found = row.figure(*column.split("."))
            value = None if found is None else found.mean
            cells.append("–" if value is None else f"{value:.4f}".removeprefix("0") if value < 1 else f"{value:.3f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Runs the rows that are missing, or prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="print this file's table and do nothing else")
    parser.add_argument("--graph", help="a saved graph's folder")
    parser.add_argument("--preset")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", default="test")
    parser.add_argument("--rows", help="some of the rows by number, from 1, with commas between (default: all)")
    parser.add_argument("--jobs", type=int, default=3, help="rows at once")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--plain", action="store_true", help="capture steps without compiling them")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no row after this")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.table is not None:
        print(table(given.table))
        return
    if given.graph is None or given.out is None:
        parser.error("--graph and --out are needed")
    names = list(ROWS) if given.rows is None else [list(ROWS)[int(number) - 1] for number in given.rows.split(",")]
    whole = read_results(given.out) if given.out.exists() else ResultFile("The paper's ablations of HyNT.")
    have = {row.name for row in whole.rows if row.runs}
    missing = [name for name in names if name not in have]
    began = time.perf_counter()

    def one(name: str) -> Row:
        if time.perf_counter() - began > given.limit_seconds:
            return Row(name, [this_command()], given.device, measured={"failed": ["the time limit was reached"]})
        return run_row(given, name)

    with ThreadPoolExecutor(given.jobs) as pool:
        for row in pool.map(one, missing):
            whole = whole.with_row(row)
            whole.write(given.out)
            print(f"{row.name}: {'done' if row.runs else 'failed: ' + row.measured['failed'][-1]}", flush=True)


if __name__ == "__main__":
    main()
