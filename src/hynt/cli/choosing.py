"""`hynt models`, `hynt compare` and `hynt sweep`: which model to train, and with which settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hynt.cli.options import GraphArgument, TrainingDevice
from hynt.cli.output import Output, SavedOutput, note_to_person, print_table
from hynt.errors import DataError, UsageError
from hynt.progress import visible
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console


def models(output: Output) -> None:
    """List the models: what each reads, what it is trained on, and what it can be asked."""
    from hynt.front.graphs import models_and_problems

    found, problems = models_and_problems()
    for problem in problems.values():
        note_to_person(problem)
    result = {"models": found, "problems": problems}
    output.deliver(result, lambda console: _print_models(console, found))


def _print_models(console: Console, found: dict[str, Any]) -> None:
    for name, model in found.items():
        console.print(f"{name}: {model['summary']}")
        console.print(f"  reads    {', '.join(model['reads'])}")
        answers = [f"{task} ({', '.join(positions)})" for task, positions in model["answers"].items() if positions]
        console.print(f"  answers  {'; '.join(answers)}")
        console.print(f"  trained  {model['trained_on']}")


def compare(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for rows, runs, table and picture.")],
    graph: Annotated[
        str | None, typer.Argument(metavar="GRAPH", help="A graph folder, or a built-in name; world if none is given.")
    ] = None,
    graph_option: Annotated[
        str | None, typer.Option("--graph", metavar="GRAPH", help="The same, as an option.")
    ] = None,
    models: Annotated[str, typer.Option("--models", metavar="M,M…", help="Names from `hynt models`, or all.")] = "all",
    minutes: Annotated[
        float, typer.Option("--minutes-per-model", min=0.001, max=1e6, help="Of training; testing is extra.")
    ] = 2.0,
    seeds: Annotated[str, typer.Option("--seeds", metavar="S,S…", help="Each model is trained once per seed.")] = "0",
    task: Annotated[
        str, typer.Option("--task", metavar="TASKS", help="Some of link, relation, number, separated by commas.")
    ] = "link,relation,number",
    device: TrainingDevice = "auto",
    by_processor: Annotated[
        bool, typer.Option("--processor-time", help="Count processor time, for a machine that is shared.")
    ] = False,
    *,
    output: Output,
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
    output.deliver(result, lambda console: _print_comparison(console, result))
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


def _print_comparison(console: Console, result: dict[str, Any]) -> None:
    from hynt.comparison.table import SHORT_IN_WORDS, cost_table, minutes_text, quality_table

    console.print(
        f"{visible(result['graph']) or 'the graph'}, test split; {minutes_text(result['minutes_per_model'])} of "
        f"{'processor' if result['clock'] == 'processor' else 'training'} time per model; ties realistic"
    )
    for cells in (quality_table(result), cost_table(result)):
        print_table(console, cells.columns, cells.rows)
    console.print(SHORT_IN_WORDS)
    if not any(file.endswith(".png") for file in result["files"]):
        console.print("no picture: install matplotlib with pip install 'hynt[plot]'")
    console.print(f"kept in {', '.join(result['files'])}")
    if result["recommended"] is not None:
        command = result["recommended"]["command"]  # on a line of its own, to be copied
        console.print(result["recommended"]["sentence"].removesuffix(command).rstrip(), soft_wrap=True)
        console.print(f"  {command}", soft_wrap=True)


def sweep(
    graph: GraphArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the sweep.")],
    trials: Annotated[int, typer.Option("--trials", min=1, help="How many settings to try, in all.")],
    model: Annotated[str, typer.Option("--model", metavar="M", help="Which model: see `hynt models`.")] = "hynt",
    space: Annotated[
        str | None,
        typer.Option("--space", metavar="S", help="A TOML file, or a space that hynt has; by default the model's."),
    ] = None,
    metric: Annotated[str, typer.Option("--metric", help="What to judge by, on valid.")] = "link.all.mrr",
    preset: Annotated[str | None, typer.Option("--preset", metavar="P", help="Settings to start from.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="How many epochs per trial.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Fix a setting at a value. Repeatable.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            metavar="WHERE",
            envvar="HYNT_SWEEP_STORAGE",
            help="A SQLite file or a postgresql:// URL; by default a file in DIR.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The sweep's name in its storage.")] = "sweep",
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes on this machine.")] = 1,
    pruner: Annotated[
        Literal["hyperband", "none"], typer.Option("--pruner", help="Whether to end poor trials early.")
    ] = "hyperband",
    sampler: Annotated[
        Literal["tpe", "random", "grid"], typer.Option("--sampler", help="How to choose what to try.")
    ] = "tpe",
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Decides what is tried, and seeds each run.")
    ] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the sweep of this name, or join it.")] = False,
    device: TrainingDevice = "auto",
    *,
    output: SavedOutput,
) -> None:
    """Try settings of MODEL on GRAPH, judged on its validation split. The test split is never read."""
    from hynt.front.sweeping import sweep as swept

    result = swept(
        graph,
        model,
        trials=trials,
        out=out,
        space=space,
        metric=metric,
        preset=preset,
        epochs=epochs,
        changes=changes or (),
        storage=storage,
        name=name,
        workers=workers,
        pruner=pruner,
        sampler=sampler,
        seed=seed,
        resume=resume,
        device=device,
        progress=True,
    ).to_dict()
    output.deliver(result, lambda console: _print_sweep(console, result, graph))


def _print_sweep(console: Console, result: dict[str, Any], graph: str) -> None:
    trials, best = result["trials"], result["best"]
    told = ", ".join(f"{count} {word}" for word, count in trials.items() if count)
    console.print(f"sweep {result['sweep']!r} of {result['model']}: {told or 'no trials'}")
    for problem in result["problems"]:
        console.print(f"failed: {visible(problem)}")
    console.print(f"best on validation: {result['metric']} {best['value']:.4f}, trial {best['trial']}")
    for path, value in best["settings"].items():
        console.print(f"  {path} = {value}")
    console.print(f"next: hynt train {graph} --model {result['model']} --preset {result['preset']} --out RUN")
