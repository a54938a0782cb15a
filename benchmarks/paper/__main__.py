"""Prints a table of the paper with ours beside it, or one that the paper lacks, from raw files; `--run` makes them.

    python -m benchmarks.paper                       # what there is
    python -m benchmarks.paper 2                     # or by name: links
    python -m benchmarks.paper 2 --run --graphs graphs --rows transea,kbln --seeds 0,1
    python -m benchmarks.paper 2 --run --graphs graphs --dry-run

`--run` trains what is missing, one model at a time, whole schedules with the presets of the paper, on whatever device
there is, and writes after each row into `paper-GRAPH.json` of the folder of raw files, which is read before all others.
Graphs are saved ones, called as in the tables, in the folder `--graphs`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

from benchmarks.paper.beyond import BEYOND, SHUFFLED
from benchmarks.paper.grids import Grid, markdown, plain
from benchmarks.paper.printed import PAPER
from benchmarks.paper.running import commands, measure_graphs, rows_of
from benchmarks.paper.tables import SUMMED, RawFiles, paper_grids
from benchmarks.result_file import RAW

UNNUMBERED = SUMMED | BEYOND


def grids_of(name: str, raw: RawFiles) -> list[Grid]:
    """The parts of a table by its number or name."""
    return UNNUMBERED[name][1](raw) if name in UNNUMBERED else paper_grids(numbered(name), raw)


def numbered(name: str) -> int:
    found = [number for number, table in PAPER.items() if name in (str(number), table.name)]
    if not found:
        sys.exit(f"there is no table {name!r}; there are:\n{listed()}")
    return found[0]


def listed() -> str:
    lines = [f"{number:>3}  {table.name:<17} {table.title}" for number, table in PAPER.items()]
    return "\n".join([*lines, *(f"     {name:<17} {title}" for name, (title, _) in UNNUMBERED.items())])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", nargs="?", help="a number of the paper, or a name")
    parser.add_argument("--raw", type=Path, default=RAW, help="the folder of raw files")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--markdown", action="store_true", help="as the pages of docs/results have it")
    parser.add_argument("--run", action="store_true", help="first make the rows that are missing")
    parser.add_argument("--graphs", type=Path, default=Path("graphs"), help="with --run: the folder of saved graphs")
    parser.add_argument("--rows", help="with --run: only these, with commas between")
    parser.add_argument("--seeds", default="0", help="with --run: with commas between")
    parser.add_argument("--device", default="auto", help="with --run: cpu, cuda or auto")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="with --run: for all rows")
    parser.add_argument("--dry-run", action="store_true", help="with --run: print the commands and do nothing")
    given = parser.parse_args()
    if given.table is None:
        print(listed())
        return
    name = given.table if given.table in UNNUMBERED else PAPER[numbered(given.table)].name
    if given.run and name in SUMMED:
        sys.exit(f"{name} sums up other tables: make those, by --run with 2, 4, 5, 6 or 12")
    if given.run:
        wanted = None if given.rows is None else given.rows.split(",")
        options = [
            "--seeds",
            given.seeds,
            "--device",
            given.device,
            *(part for one in given.set for part in ("--set", one)),
        ]
        if name in ("graphs", "leakage"):
            print(f"measures {', '.join(sorted(measure_graphs(given.graphs, given.raw, given.dry_run)))}", flush=True)
        known = {one: None for _, row, _ in rows_of(name) for one in (row.removesuffix(SHUFFLED), row)}
        if strange := set(wanted or ()) - set(known):
            sys.exit(f"table {given.table} makes no row {', '.join(sorted(strange))}; it makes {', '.join(known)}")
        absent = set[str]()
        for command in commands(name, given.graphs, given.raw, wanted, options):
            graph = command[command.index("--graph") + 1]
            if not given.dry_run and graph != "world" and not Path(graph).is_dir():
                absent.add(graph)
                continue
            print(shlex.join(["python", *command[1:]]), flush=True)
            if not given.dry_run:
                subprocess.run(command, check=True)
        if absent:
            print(f"not made, since they are not there: rows of {', '.join(sorted(absent))}\n", flush=True)
        if given.dry_run:
            return
    grids = grids_of(name, RawFiles(given.raw))
    if given.json:
        print(
            json.dumps(
                {"table": name, "parts": [{"title": one.title, "figures": one.records} for one in grids]}, indent=1
            )
        )
    else:
        print(markdown(grids) if given.markdown else plain(grids), end="" if given.markdown else "\n")


if __name__ == "__main__":
    main()
