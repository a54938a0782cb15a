"""`hynt data split`: entities kept out of training, to ask about them afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import GraphArgument
from hynt.cli.output import JsonFlag, deliver
from hynt.files import check_new_folder
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


def split(
    graph: GraphArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the two graphs are written.")],
    inductive: Annotated[
        float, typer.Option("--inductive", metavar="SHARE", help="The share of entities that training never meets.")
    ] = 0.1,
    observed: Annotated[
        float, typer.Option("--observed", metavar="SHARE", help="Of their facts, the share that is read, not asked.")
    ] = 0.7,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Draw other entities.")] = 0,
    json: JsonFlag = False,
) -> None:
    """Hold out entities of GRAPH: DIR/training is to be trained on, DIR/asked is for `hynt evaluate RUN --asked`."""
    from hynt.files import new_folder
    from hynt.graph.storage import load_graph

    check_new_folder(out, "--out")
    held = load_graph(graph).hold_out(inductive, seed=seed, observed=observed)
    with new_folder(out) as staging:
        for name, made in (("training", held.training), ("asked", held.asked)):
            made.save(staging / name)
    sizes = {
        name: {split: len(table) for split, table in made.splits.items()}
        for name, made in (("training", held.training), ("asked", held.asked))
    }
    result: dict[str, Any] = {"graph": graph, "out": str(out), "held_out": len(held.entities), "seed": seed, **sizes}
    deliver(result, as_json=json, save=None, text=lambda console: _tell(console, result))


def _tell(console: Console, result: dict[str, Any]) -> None:
    console.print(f"{result['held_out']:,} entities held out.")
    for name in ("training", "asked"):
        sizes = ", ".join(f"{split} {count:,}" for split, count in result[name].items())
        console.print(f"{visible(result['out'])}/{name}: {sizes}", soft_wrap=True)
