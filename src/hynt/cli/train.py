"""`hynt train`: from a graph to a run folder, or on with one that was stopped; `hynt ensemble`: several runs as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.cli.options import GraphArgument, ScoringDevice, TrainingDevice, argument, done_in_processes, option, said
from hynt.cli.output import Output, note_to_person
from hynt.errors import UsageError
from hynt.names import plural
from hynt.progress import duration
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.training.estimate import Estimate


@dataclass(frozen=True)
class TrainingOptions:
    """What is trained, on what, and for how long."""

    model: str | None = option(
        None, "Which model: see `hynt models`.", metavar="M", show_default="hynt, or as --minutes suit"
    )
    preset: str | None = option(None, "Named settings, such as world or wd50k-link.", metavar="P")
    epochs: int | None = option(None, "How many epochs.", min=1)
    minutes: float | None = option(
        None, "How long all of it may take; by default it trains until validation stops improving.", min=0.01, max=1e6
    )
    seed: int | None = option(None, "The seed of everything random.", min=0, max=LARGEST_SEED)
    device: TrainingDevice = "auto"
    changes: list[str] | None = option(None, "Change a setting. Repeatable.", "--set", metavar="KEY=VALUE")
    train_on: Literal["train", "train+valid"] | None = option(None, "Which splits to learn from.")
    scale_on: Literal["train", "all-splits"] | None = option(None, "Which splits number scales are fitted on.")


def train(
    graph: GraphArgument,
    out: Path | None = option(None, "The run folder to make.", metavar="RUN"),
    *,
    options: TrainingOptions,
    resume: bool = option(False, "Resume the run in RUN."),
    start_from: Path | None = option(
        None, "Start from the settings and weights of this run, and train on.", "--from", metavar="RUN"
    ),
    estimate: bool = option(False, "Print parameters, memory and expected time, and train nothing."),
    track: list[str] | None = option(None, "Also log to tensorboard, mlflow or wandb.", metavar="T"),
    track_to: Path | None = option(None, "Where trackers write; by default beside RUN.", metavar="DIR"),
    processes: int = option(1, "Train in N processes, one per GPU with --device cuda.", min=1, metavar="N"),
    output: Output,
) -> None:
    """Train a model on GRAPH and keep it in RUN. Ctrl-C saves; --resume continues."""
    lost = "training stopped; the last checkpoint is kept."
    if not estimate and done_in_processes(processes, lost, _how_to_go_on(graph, out, processes)):
        return
    from hynt.distributed.launch import is_watched
    from hynt.front import training
    from hynt.runs.checkpoint import Interrupted

    if estimate:
        from hynt.kernels.device import chosen_device

        found = training.estimate(graph, **said(options))
        _print_estimate(found, chosen_device(options.device).type, output)
        return
    if out is None:
        raise UsageError("no run folder was given.", where="--out", advice="Say where to keep the run: --out RUN.")
    try:
        run = training.train(
            graph,
            out=out,
            **said(options),
            resume=resume,
            start_from=start_from,
            track=track or (),
            track_to=track_to,
            progress=True,
            note=note_to_person,
        )
    except Interrupted as stopped:
        together = int(os.environ["WORLD_SIZE"]) if is_watched() else 1
        raise Interrupted(stopped.what, advice=_how_to_go_on(graph, out, together)) from None
    if training.is_first_process():
        summary = {"run": str(out), **run.described(), **run.manifest["training"]}
        splits = tuple(run.graph.splits)
        output.deliver(summary, lambda console: _print_summary(console, summary, splits))


def _how_to_go_on(graph: str, out: Path | None, processes: int) -> str:
    together = f" --processes {processes}" if processes > 1 else ""
    return f"Go on with: hynt train {graph} --out {out} --resume{together}"


def _print_summary(console: Console, summary: dict[str, Any], splits: Sequence[str]) -> None:
    console.print(f"{summary['model']} trained in {duration(summary['seconds'])}, kept in {summary['run']}")
    of_tasks = summary.get("best_of_tasks", {})
    bests = [one for one in of_tasks.values() or (summary.get("best"),) if one and "value" in one]
    if chosen := {task: one["epoch"] for task, one in of_tasks.items() if "value" not in one}:
        console.print("weights of " + ", ".join(f"epoch {epoch} for {task}s" for task, epoch in chosen.items()))
    if bests:
        told = "; ".join(f"{best['metric']} {best['value']:.4f} at epoch {best['epoch']}" for best in bests)
        console.print(f"best on validation: {told}")
    explore = f"hynt serve {summary['run']} to explore it"
    held_out = next((split for split in ("test", "valid") if split in splits), None)
    asked = "" if held_out == "test" else f" --split {held_out}"
    console.print(
        f"next: {explore}" if held_out is None else f"next: hynt evaluate {summary['run']}{asked}, or {explore}"
    )


def _print_estimate(found: Estimate, device: str, output: Output) -> None:
    from hynt.front.training import time_text

    def text(console: Console) -> None:
        console.print(f"parameters     {found.parameters:,}")
        whole = "on the GPU" if found.on_device else "for the whole process, libraries and graph included"
        console.print(
            f"memory         about {_megabytes(found.memory)} {whole}: "
            f"weights and optimiser {_megabytes(found.training_state)}, "
            f"activations {_megabytes(found.activations)}, facts {_megabytes(found.facts)}"
            + (f"; weighing statistics at the end {_megabytes(found.weighing)}" if found.weighing else "")
        )
        each = f"{plural(found.steps_per_epoch, 'step')} at {1000 * found.seconds_per_step:.1f} ms"
        console.print(f"epochs         {found.first_epochs:,} of {each} on {device}")
        console.print(f"time           {time_text(found)}")

    output.deliver(found.to_mapping(), text)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def ensemble(
    runs: list[Path] = argument(..., "Runs that were trained on one graph.", metavar="RUN RUN…"),
    out: Path = option(..., "The folder of the new run.", metavar="DIR"),
    device: ScoringDevice = "auto",
    *,
    output: Output,
) -> None:
    """Make one run of several: how much each of them counts is fitted on the validation split."""
    from hynt.front.training import ensemble as joined

    made = joined(runs, out, device=device, note=note_to_person)
    summary = {"run": str(out), **made.described(), "members": made.manifest["training"]["members"]}

    def text(console: Console) -> None:
        console.print(f"{' and '.join(summary['members'])} as one run, kept in {out}")
        console.print(f"next: hynt evaluate {out}")

    output.deliver(summary, text)
