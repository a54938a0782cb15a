"""`hynt train`: from a graph to a run folder, or on with one that was stopped."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import Device, GraphArgument, TrainingDevice
from hynt.cli.output import JsonFlag, deliver
from hynt.cli.progress import TrainingProgress, duration
from hynt.errors import UsageError
from hynt.files import check_new_folder

if TYPE_CHECKING:
    from rich.console import Console


class TrainOnChoice(StrEnum):
    TRAIN = "train"
    TRAIN_AND_VALID = "train+valid"


class ScaleOnChoice(StrEnum):
    TRAIN = "train"
    ALL_SPLITS = "all-splits"


def train(
    graph: GraphArgument,
    out: Annotated[Path | None, typer.Option("--out", metavar="RUN", help="The run folder to make.")] = None,
    model: Annotated[str, typer.Option("--model", metavar="M", help="Which model: see `hynt models`.")] = "hynt",
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="P", help="Settings with a name, such as world or wd50k-link.")
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="How many epochs.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Decides all that is random.")] = None,
    device: TrainingDevice = Device.AUTO,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be said again.")
    ] = None,
    train_on: Annotated[TrainOnChoice | None, typer.Option("--train-on", help="Which splits to learn from.")] = None,
    scale_on: Annotated[
        ScaleOnChoice | None, typer.Option("--scale-on", help="Which splits number scales are fitted on.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in RUN.")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print parameters, memory and expected time, and train nothing.")
    ] = False,
    track: Annotated[
        list[str] | None, typer.Option("--track", metavar="T", help="Tell tensorboard, mlflow or wandb as well.")
    ] = None,
    track_to: Annotated[
        Path | None, typer.Option("--track-to", metavar="DIR", help="Where trackers write; else beside RUN.")
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", min=1, metavar="N", help="Train in N processes, one a GPU with --device cuda.")
    ] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Train a model on GRAPH and keep it in RUN. Ctrl-C saves; --resume goes on."""
    from hynt.distributed.launch import is_launched, launch, restarts

    if processes > 1 and not is_launched() and not estimate:
        advice = _how_to_go_on(graph, out, processes)
        code = launch(sys.argv[1:], processes, "training stopped; the last checkpoint is kept.", advice)
        if code:
            raise typer.Exit(code)
        return
    from hynt.cli.number_hint import hint_at_numbers
    from hynt.distributed.worker_group import current_workers
    from hynt.graph.storage import BUILT_IN, graph_folder, load_graph
    from hynt.interruption import stopping_on_signals
    from hynt.training.checks import check_shareable
    from hynt.training.process import follow
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings
    from hynt.training.run import chosen_device, start

    target = chosen_device(device.value)
    loaded = load_graph(graph)
    request = SettingsRequest(model, preset, epochs, seed, train_on, scale_on, tuple(changes or ()))
    if estimate:
        _estimate(loaded, resolve_settings(request, loaded, on_gpu=target.type == "cuda"), target, as_json)
        return
    if out is None:
        raise UsageError("no run folder was given.", where="--out", advice="Say where to keep the run: --out RUN.")
    if not resume:
        check_new_folder(out, "--out")
    trackers = _trackers(track)

    def made() -> Any:
        """The run: a new one, or the one that is there; a job that torchrun starts again goes on."""
        if resume or (restarts() and out.exists()):
            return _reopened(out, request, loaded, on_gpu=target.type == "cuda")
        settings = resolve_settings(request, loaded, on_gpu=target.type == "cuda")
        if is_launched():
            check_shareable(settings)
        return start(loaded, settings, out, target, None if graph in BUILT_IN else graph_folder(graph))

    with current_workers(target) as workers, stopping_on_signals() as stopper:
        workers.watch(stopper)
        if workers.rank:
            follow(workers, loaded, target)
            return
        if not resume:
            hint_at_numbers(loaded)
        summary = _trained(
            made(), target, graph, out, trackers, track_to or out.absolute().parent / "tracking", workers
        )
    deliver(summary, as_json=as_json, save=None, text=lambda console: _print_summary(console, summary))


def _reopened(out: Path, request: Any, graph: Any, *, on_gpu: bool) -> Any:
    from hynt.runs.checkpoint import WEIGHTS
    from hynt.runs.place import whole_run
    from hynt.runs.run_folder import RunFolder, refuse_changes
    from hynt.training.resolve_settings import resumed_settings

    with whole_run():
        run = RunFolder.open(out)
        if run.is_finished:
            run.checked(WEIGHTS)
        settings = run.settings()
    refuse_changes(run, resumed_settings(request, settings, graph, on_gpu=on_gpu), graph)
    return run


def _trackers(names: list[str] | None) -> dict[str, Any]:
    """What `--track` names, or a clear word about what is missing, before any work is done."""
    if not names:
        return {}
    from hynt.tracking.trackers import trackers_named

    return trackers_named(names)


def _trained(
    run: Any, device: Any, graph: str, out: Path, trackers: dict[str, Any], track_to: Path, workers: Any
) -> dict[str, Any]:
    from hynt.distributed.launch import is_watched
    from hynt.runs.progress import Interrupted
    from hynt.tracking.trackers import Tracked, tracking
    from hynt.training.run import train as train_run

    with TrainingProgress() as progress:
        if run.is_finished:
            progress.note("this run is finished already; nothing is left to train.")
        try:
            with tracking(progress, trackers, lambda: Tracked.of(run, track_to)) as watcher:
                run = train_run(run, device, watcher, workers.stopper, clock=workers.clock, workers=workers)
        except Interrupted as stopped:
            advice = _how_to_go_on(graph, out, workers.world if is_watched() else 1)
            raise Interrupted(stopped.what, advice=advice) from None
    manifest = run.manifest
    return {
        "run": str(out),
        "model": manifest["model_name"],
        "graph": manifest["graph"]["name"],
        **manifest["training"],
    }


def _how_to_go_on(graph: str, out: Path | None, processes: int) -> str:
    together = f" --processes {processes}" if processes > 1 else ""
    return f"Go on with: hynt train {graph} --out {out} --resume{together}"


def _print_summary(console: Console, summary: dict[str, Any]) -> None:
    console.print(f"{summary['model']} trained in {duration(summary['seconds'])}, kept in {summary['run']}")
    best = summary.get("best")
    if best:
        console.print(f"best on validation: {best['metric']} {best['value']:.4f} at epoch {best['epoch']}")
    console.print(f"next: hynt evaluate {summary['run']}")


def _estimate(graph: Any, settings: Any, device: Any, as_json: bool) -> None:
    from hynt.training.estimate import estimate

    found = estimate(graph, settings, device)

    def text(console: Console) -> None:
        console.print(f"parameters     {found.parameters:,}")
        console.print(
            f"memory         about {_megabytes(found.memory)}: "
            f"weights and optimiser {_megabytes(found.training_state)}, "
            f"activations {_megabytes(found.activations)}, facts {_megabytes(found.facts)}"
        )
        steps = f"{found.epochs} epochs of {found.steps_per_epoch} steps at {1000 * found.seconds_per_step:.1f} ms"
        console.print(f"time           about {duration(found.seconds)} on {device.type}: {steps}; validation on top")

    deliver(found.to_mapping(), as_json=as_json, save=None, text=text)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
