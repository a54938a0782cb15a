"""`hynt sweep`: look for good settings on the validation split, and keep the best as a preset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hynt.cli.options import GraphArgument, TrainingDevice
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.progress import visible
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console


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
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Hold a setting at a value.")
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
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Try settings of MODEL on GRAPH, judged on its validation split. The test split is never read."""
    from hynt.front.sweeping import sweep as swept

    check_save(save)
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
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, result, graph))


def _print(console: Console, result: dict[str, Any], graph: str) -> None:
    trials, best = result["trials"], result["best"]
    told = ", ".join(f"{count} {word}" for word, count in trials.items() if count)
    console.print(f"sweep {result['sweep']!r} of {result['model']}: {told or 'no trials'}")
    for problem in result["problems"]:
        console.print(f"failed: {visible(problem)}")
    console.print(f"best on validation: {result['metric']} {best['value']:.4f}, trial {best['trial']}")
    for path, value in best["settings"].items():
        console.print(f"  {path} = {value}")
    console.print(f"next: hynt train {graph} --model {result['model']} --preset {result['preset']} --out RUN")
