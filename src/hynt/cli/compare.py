"""`hynt compare`: models trained on one graph for the same time, in one table and one picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import Device, TrainingDevice, said_with
from hynt.cli.output import JsonFlag, deliver, visible
from hynt.cli.progress import CompareProgress
from hynt.errors import DataError, UsageError
from hynt.files import check_new_folder, write_whole

if TYPE_CHECKING:
    from rich.console import Console

MINUTES_WORTH_COMPILING = 5.0
"""On a GPU, compiling a model's steps takes half a minute or more."""


def compare(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for rows, runs, table and picture.")],
    graph: Annotated[
        str | None, typer.Argument(metavar="GRAPH", help="A graph folder, or world, which is taken if none is given.")
    ] = None,
    graph_option: Annotated[
        str | None, typer.Option("--graph", metavar="GRAPH", help="The same, said as an option.")
    ] = None,
    models: Annotated[str, typer.Option("--models", metavar="M,M…", help="Names from `hynt models`, or all.")] = "all",
    minutes: Annotated[
        float, typer.Option("--minutes-per-model", min=0.001, max=1e6, help="Of training alone; testing comes on top.")
    ] = 2.0,
    seeds: Annotated[str, typer.Option("--seeds", metavar="S,S…", help="Each model is trained once a seed.")] = "0",
    task: Annotated[
        str, typer.Option("--task", metavar="T", help="Some of link, relation, number, with commas between.")
    ] = "link,relation,number",
    device: TrainingDevice = Device.AUTO,
    by_processor: Annotated[
        bool, typer.Option("--processor-time", help="Count the time of processors: for a machine that others use too.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Train models on GRAPH for the same time, test them, and set them beside each other and beside trivial ones.

    The same command goes on with what was stopped; rows that are there are not made again.
    """
    from hynt.cli.number_hint import hint_at_numbers
    from hynt.comparison.comparing import Comparison, model_names, trial_for
    from hynt.comparison.trial import TrialPlace, training_clock
    from hynt.evaluation.questions import checked_tasks
    from hynt.graph.storage import BUILT_IN, graph_folder, load_graph
    from hynt.interruption import stopping_on_signals
    from hynt.runs.progress import Interrupted
    from hynt.runs.run_folder import describe_environment
    from hynt.training.run import chosen_device

    if graph is not None and graph_option not in (None, graph):
        raise UsageError(
            f"two graphs were given: {graph} and {graph_option}.", where="--graph", advice="Leave one out."
        )
    graph = graph or graph_option or "world"
    with said_with("--models"):
        names = model_names(models)
    numbers, tasks = _seeds(seeds), checked_tasks(task.split(","))
    target, loaded = chosen_device(device.value), load_graph(graph)
    _check_splits(loaded)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file.", where="--out", advice="Give a folder.")
    check_new_folder(out / "rows", "--out")
    hint_at_numbers(loaded)
    clock = time.process_time if by_processor else training_clock
    place = TrialPlace(
        loaded,
        target,
        None if graph in BUILT_IN else graph_folder(graph),
        tasks,
        compiled=minutes >= MINUTES_WORTH_COMPILING,
        clock=clock,
    )
    trials = [trial_for(name, loaded, target, seed, 60 * minutes) for name in names for seed in numbers]
    with CompareProgress() as progress, stopping_on_signals() as stopper:
        try:
            found = Comparison(out, place, trials).run(progress, stopper)
        except Interrupted as stopped:
            raise Interrupted(stopped.what, advice="Go on with the same command.") from None
    result = {
        "graph": loaded.name,
        "minutes_per_model": minutes,
        "clock": "processor" if by_processor else "wall",
        "environment": describe_environment(target),
        **found,
    }
    files = _write(out, result)
    told = result | {"files": files}
    deliver(told, as_json=as_json, save=None, text=lambda console: _print(console, told))
    if found["failed"]:
        raise DataError(
            f"{', '.join(found['failed'])} failed; the others are in the table.",
            where=str(out),
            advice="The same command tries them again.",
        )


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise UsageError(f"{text!r} is no list of seeds.", where="--seeds", advice="Say, for example, --seeds 0,1,2.")
    return list(dict.fromkeys(int(part) for part in parts))


def _check_splits(graph: Any) -> None:
    for split in ("train", "valid", "test"):
        if not len(graph.splits.get(split, ())):
            raise UsageError(
                f"the graph has no {split} split, and a comparison needs train, valid and test.",
                where="GRAPH",
                advice="Import it with --split 8:1:1, or with files for all three.",
            )


def _write(out: Path, result: dict[str, Any]) -> list[str]:
    """The whole comparison, its tables as a page, and the picture where it can be drawn."""
    import json
    from importlib.util import find_spec

    from hynt.comparison.table import cost_table, markdown, quality_table

    write_whole(out / "comparison.json", (json.dumps(result, ensure_ascii=False, indent=1) + "\n").encode())
    page = f"{markdown(quality_table(result))}\n{markdown(cost_table(result))}"
    write_whole(out / "comparison.md", page.encode())
    files = ["comparison.json", "comparison.md"]
    if find_spec("matplotlib") is not None and result["rows"]:
        from hynt.comparison.table import compare_figure, minutes_text
        from hynt.reporting.chart_style import picture

        time_of = "processor time" if result["clock"] == "processor" else "training"
        title = f"{result['graph'] or 'the graph'}: {minutes_text(result['minutes_per_model'])} of {time_of} each"
        for suffix in (".png", ".svg"):
            write_whole(out / f"comparison{suffix}", picture(compare_figure(result, title), suffix))
            files.append(f"comparison{suffix}")
    return [str(out / name) for name in files]


def _print(console: Console, result: dict[str, Any]) -> None:
    from rich.table import Table

    from hynt.comparison.table import cost_table, minutes_text, quality_table

    console.print(
        f"{visible(result['graph']) or 'the graph'}, test split; {minutes_text(result['minutes_per_model'])} of "
        f"{'processor' if result['clock'] == 'processor' else 'training'} time a model; ties realistic"
    )
    for cells in (quality_table(result), cost_table(result)):
        table = Table(*cells.titles)
        for row in cells.rows:
            table.add_row(*row)
        console.print(table)
    if not any(file.endswith(".png") for file in result["files"]):
        console.print("no picture: install matplotlib with pip install 'hynt[plot]'")
    console.print(f"kept in {', '.join(result['files'])}")
