"""`hynt compare`: models trained on one graph for the same time, in one table and one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import TrainingDevice
from hynt.cli.output import JsonFlag, deliver, note_to_person, print_table
from hynt.errors import DataError, UsageError
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


def compare(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for rows, runs, table and picture.")],
    graph: Annotated[
        str | None, typer.Argument(metavar="GRAPH", help="A graph folder, or world, which is taken if none is given.")
    ] = None,
    graph_option: Annotated[
        str | None, typer.Option("--graph", metavar="GRAPH", help="The same, as an option.")
    ] = None,
    models: Annotated[str, typer.Option("--models", metavar="M,M…", help="Names from `hynt models`, or all.")] = "all",
    minutes: Annotated[
        float, typer.Option("--minutes-per-model", min=0.001, max=1e6, help="Of training; testing comes on top.")
    ] = 2.0,
    seeds: Annotated[str, typer.Option("--seeds", metavar="S,S…", help="Each model is trained once per seed.")] = "0",
    task: Annotated[
        str, typer.Option("--task", metavar="TASKS", help="Some of link, relation, number, separated by commas.")
    ] = "link,relation,number",
    device: TrainingDevice = "auto",
    by_processor: Annotated[
        bool, typer.Option("--processor-time", help="Count processor time: for a machine that others use too.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Train models on GRAPH for the same time, test them, and set them beside each other and beside trivial ones.

    The same command resumes what was stopped; finished rows are kept.
    """
    from hynt.front.comparing import compare as compared

    if graph is not None and graph_option not in (None, graph):
        raise UsageError(
            f"two graphs were given: {graph} and {graph_option}.", where="--graph", advice="Leave one out."
        )
    found = compared(
        graph or graph_option or "world",
        models,
        out,
        minutes_per_model=minutes,
        seeds=_seeds(seeds),
        tasks=task,
        device=device,
        processor_time=by_processor,
        progress=True,
        note=note_to_person,
    )
    result = found.to_dict()
    deliver(result, as_json=as_json, save=None, text=lambda console: _print(console, result))
    if found.failed:
        raise DataError(
            f"{', '.join(found.failed)} failed; the others are in the table.",
            where=str(out),
            advice="The same command tries them again.",
        )


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise UsageError(
            f"{text!r} is not a list of seeds.", where="--seeds", advice="Say, for example, --seeds 0,1,2."
        )
    return list(dict.fromkeys(int(part) for part in parts))


def _print(console: Console, result: dict[str, Any]) -> None:
    from hynt.comparison.table import cost_table, minutes_text, quality_table

    console.print(
        f"{visible(result['graph']) or 'the graph'}, test split; {minutes_text(result['minutes_per_model'])} of "
        f"{'processor' if result['clock'] == 'processor' else 'training'} time per model; ties realistic"
    )
    for cells in (quality_table(result), cost_table(result)):
        print_table(console, cells.columns, cells.rows)
    if not any(file.endswith(".png") for file in result["files"]):
        console.print("no picture: install matplotlib with pip install 'hynt[plot]'")
    console.print(f"kept in {', '.join(result['files'])}")
    if result["recommended"] is not None:
        command = result["recommended"]["command"]  # on a line of its own, to be copied
        console.print(result["recommended"]["sentence"].removesuffix(command).rstrip(), soft_wrap=True)
        console.print(f"  {command}", soft_wrap=True)
