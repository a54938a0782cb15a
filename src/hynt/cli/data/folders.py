"""`hynt data split` keeps entities out of training, to ask about them afterwards; `hynt data clean` removes what killed
processes left.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.cli.options import GraphArgument, argument, option
from hynt.cli.output import Output
from hynt.files import check_new_folder
from hynt.progress import visible
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console


def split(
    graph: GraphArgument,
    out: Path = option(..., "Where the two graphs are written.", "--out", "-o", metavar="DIR"),
    inductive: float = option(0.1, "The share of entities that training never meets.", metavar="SHARE"),
    observed: float = option(0.7, "Of their facts, the share that is read, not asked.", metavar="SHARE"),
    seed: int = option(0, "Draw other entities.", min=0, max=LARGEST_SEED),
    *,
    output: Output,
) -> None:
    """Hold out entities of GRAPH: DIR/training is to be trained on, DIR/asked is for `hynt evaluate RUN --asked`."""
    from hynt.front.graphs import read_graph

    check_new_folder(out, "--out")
    held = read_graph(graph).hold_out(inductive, seed=seed, observed=observed)
    held.save(out)
    sizes = {
        name: {split: len(table) for split, table in made.splits.items()}
        for name, made in (("training", held.training), ("asked", held.asked))
    }
    result: dict[str, Any] = {"graph": graph, "out": str(out), "held_out": len(held.entities), "seed": seed, **sizes}
    output.deliver(result, lambda console: _tell_split(console, result))


def _tell_split(console: Console, result: dict[str, Any]) -> None:
    console.print(f"{result['held_out']:,} entities held out.")
    for name in ("training", "asked"):
        sizes = ", ".join(f"{split} {count:,}" for split, count in result[name].items())
        console.print(f"{visible(result['out'])}/{name}: {sizes}")


def clean(
    folder: Path = argument(Path(), "Where to look; by default the current folder.", metavar="[FOLDER]"),
    *,
    output: Output,
) -> None:
    """Remove hidden files and folders that killed commands left half-written in FOLDER and its graphs and runs.

    What another process is writing is left alone.
    """
    from hynt.files import clean_all

    names = [path.relative_to(folder).as_posix() for path in clean_all(folder)]
    found: dict[str, Any] = {"folder": str(folder), "removed": names}

    def text(console: Console) -> None:
        for name in found["removed"]:
            console.print(f"removed {name}")
        console.print(f"{len(found['removed'])} left-overs removed from {folder}")

    output.deliver(found, text)
