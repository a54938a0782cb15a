"""`hynt sweep`: look for good settings on the validation split, and keep the best as a preset."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from hynt.cli.options import Device, GraphArgument, TrainingDevice
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, visible
from hynt.cli.progress import StatusLine
from hynt.errors import DataError
from hynt.files import check_new_folder

if TYPE_CHECKING:
    from rich.console import Console


class Pruner(StrEnum):
    HYPERBAND = "hyperband"
    NONE = "none"


class Sampler(StrEnum):
    TPE = "tpe"
    RANDOM = "random"
    GRID = "grid"


def sweep(
    graph: GraphArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the sweep.")],
    trials: Annotated[int, typer.Option("--trials", min=1, help="How many settings to try, in all.")],
    model: Annotated[str, typer.Option("--model", metavar="M", help="Which model: see `hynt models`.")] = "hynt",
    space: Annotated[
        str | None,
        typer.Option("--space", metavar="S", help="A TOML file, or the name of a space of hynt's; else the model's."),
    ] = None,
    metric: Annotated[str, typer.Option("--metric", help="What to judge by, on valid.")] = "link.all.mrr",
    preset: Annotated[str | None, typer.Option("--preset", metavar="P", help="Settings to start from.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="How many epochs a trial has.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Hold a setting at a value.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            metavar="WHERE",
            envvar="HYNT_SWEEP_STORAGE",
            help="A SQLite file or a postgresql:// URL; else a SQLite file in DIR.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The sweep's name in its storage.")] = "sweep",
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes on this machine.")] = 1,
    pruner: Annotated[Pruner, typer.Option("--pruner", help="Whether to end poor trials early.")] = Pruner.HYPERBAND,
    sampler: Annotated[Sampler, typer.Option("--sampler", help="How to choose what to try.")] = Sampler.TPE,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Decides what is tried, and seeds each run.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the sweep of this name, or join it.")] = False,
    device: TrainingDevice = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Try settings of MODEL on GRAPH, judged on its validation split. The test split is never read."""
    from hynt.sweeping.space import load_space
    from hynt.sweeping.study import GRAPH, Plan, settled
    from hynt.sweeping.study_storage import StudyStorage, load_optuna
    from hynt.sweeping.sweep import blind_copy, database, prepare
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings
    from hynt.training.run import chosen_device

    check_save(save)
    load_optuna()
    target = chosen_device(device.value).type
    wanted, place = load_space(space or model), StudyStorage.of(storage, database(out))
    said = [*(changes or ()), *([f"schedule.epochs={epochs}"] if epochs else ())]

    def base(space: Any) -> Any:
        request = SettingsRequest(model, preset, epochs, seed, changes=(*space.fixed, *said))
        return resolve_settings(request, loaded, on_gpu=target == "cuda")

    check_new_folder(out / GRAPH, "--out")
    with _not_left_if_refused(out):
        prepare(out, resume=resume)
        loaded = blind_copy(graph, out / GRAPH)
        wanted, moved = wanted.for_epochs(base(wanted).schedule.epochs)
        settings, wanted = settled(base(wanted), metric, wanted, loaded)
    plan = Plan(
        out,
        name,
        model,
        _plain(settings),
        wanted,
        _possible(trials, sampler, wanted),
        place,
        pruner.value,
        sampler.value,
        seed,
        target,
        max(1, (os.cpu_count() or 1) // workers) if target == "cpu" else None,
    )
    spoken = {one.partition("=")[0] for one in said}
    result = _swept(plan, graph, workers, resume, {path: to for path, to in moved.items() if path not in spoken})
    if result["best"] is None:
        reasons = "; ".join(result["problems"])
        raise DataError(
            f"no trial came to an end, so there is no best one: {reasons or 'all were pruned'}.", where=name
        )
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, result, graph))


@contextmanager
def _not_left_if_refused(out: Path) -> Iterator[None]:
    """A folder that was made for a sweep which cannot begin would be in the way of a better command."""
    from hynt.sweeping.study import GRAPH, TRIALS

    was_there = out.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            shutil.rmtree(out / GRAPH, ignore_errors=True)
            with suppress(OSError):  # not empty: somebody else has joined the sweep
                (out / TRIALS).rmdir()
                out.rmdir()
        raise


def _plain(settings: Any) -> dict[str, Any]:
    from hynt.config import to_mapping

    return to_mapping(settings)


def _possible(trials: int, sampler: Sampler, space: Any) -> int:
    """A grid has an end: no point is tried twice."""
    return min(trials, math.prod(map(len, space.grid().values()))) if sampler is Sampler.GRID else trials


def _swept(plan: Any, graph: str, workers: int, resume: bool, moved: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    from hynt.interruption import stopping_on_signals
    from hynt.runs.progress import Interrupted
    from hynt.sweeping.sweep import sweep as run_sweep

    with SweepProgress(plan.metric, plan.trials, plan.lower_is_better) as progress, stopping_on_signals() as stopper:
        first, last = plan.epochs()
        if moved:
            told = ", ".join(f"{path} is {' or '.join(map(str, values))}" for path, values in moved.items())
            progress.note(f"the space is for another number of epochs; for {last} of them {told}.")
        if plan.pruning == "hyperband" and first >= last:
            progress.note("each trial is validated once, at its end, so none can be pruned: set validation.every.")
        try:
            return run_sweep(plan, progress, stopper, workers=workers, resume=resume)
        except Interrupted as stopped:
            advice = f"Go on with the same command and --resume (sweep {plan.name!r} of {graph} in {plan.out})."
            raise Interrupted(stopped.what, advice=advice) from None


def _print(console: Console, result: dict[str, Any], graph: str) -> None:
    from hynt.cli.output import visible

    trials, best = result["trials"], result["best"]
    told = ", ".join(f"{count} {word}" for word, count in trials.items() if count)
    console.print(f"sweep {result['sweep']!r} of {result['model']}: {told or 'no trials'}")
    for problem in result["problems"]:
        console.print(f"failed: {visible(problem)}")
    console.print(f"best on validation: {result['metric']} {best['value']:.4f}, trial {best['trial']}")
    for path, value in best["settings"].items():
        console.print(f"  {path} = {value}")
    console.print(f"next: hynt train {graph} --model {result['model']} --preset {result['preset']} --out RUN")


# How a sweep goes, on standard error: a line for each trial that ends, and where it stands in between, in a bar on a
# terminal and as a plain line now and then elsewhere.

SECONDS_BETWEEN_LINES = 10.0
"""Where there is no bar."""


class SweepProgress:
    """Hears of trials. A context manager: the bar is gone when the sweep is over or has failed."""

    def __init__(
        self,
        metric: str,
        trials: int,
        lower_is_better: bool,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = StatusLine(stream, clock, pause=SECONDS_BETWEEN_LINES)
        self._metric, self._trials = metric, trials
        self._sign = -1.0 if lower_is_better else 1.0
        self._best: float | None = None
        self._values: dict[int, dict[str, Any]] = {}
        self._at: dict[int, tuple[int, int]] = {}  # of trials that run: the epoch, and how many there are
        self._last: dict[int, float] = {}  # their last validations
        self._ended = 0

    def __enter__(self) -> SweepProgress:
        self._line.start("trials")
        return self

    def __exit__(self, *failure: object) -> None:
        self._line.stop()

    def begun(self, number: int, values: dict[str, Any]) -> None:
        """Keeps what the trial tries, to say it at its end."""
        self._values[number] = values

    def trained(self, number: int, epoch: int, epochs: int) -> None:
        """A trial goes on."""
        self._at[number] = (epoch, epochs)
        self._show()

    def validated(self, number: int, epoch: int, value: float) -> None:  # noqa: ARG002 - the listener's signature
        """What a trial has come to; shown with its next epoch."""
        self._last[number] = value

    def ended(self, number: int, outcome: str, value: float | None, problem: str) -> None:
        """One line: what was tried and what came of it."""
        self._ended += 1
        self._at.pop(number, None)
        self._last.pop(number, None)
        line = f"trial {number} {outcome}"
        if value is not None:
            line += f": {self._metric} {value:.4f}"
        if outcome == "complete" and value is not None and self._is_better(value):
            self._best = value
            line += " (best so far)"
        line += f": {problem}" if problem else ""
        tried = ", ".join(f"{path}={_short(value)}" for path, value in self._values.pop(number, {}).items())
        self._line.say(visible(f"{line}; {tried}" if tried else line))

    def _show(self) -> None:
        news = "; ".join(self._news(number) for number in sorted(self._at))
        share = (self._ended + sum(epoch / epochs for epoch, epochs in self._at.values())) / self._trials
        self._line.show(lambda _: f"{self._ended} of {self._trials} trials are done; {news}", min(1.0, share))

    def _news(self, number: int) -> str:
        epoch, epochs = self._at[number]
        value = f" with {self._metric} {self._last[number]:.4f}" if number in self._last else ""
        return f"trial {number} is at epoch {epoch} of {epochs}{value}"

    def _is_better(self, value: float) -> bool:
        return self._best is None or self._sign * value > self._sign * self._best

    def waiting(self, trials: int, seconds: float) -> None:
        """Why nothing seems to happen."""
        what = "a trial" if trials == 1 else f"{trials} trials"
        self.note(f"waiting for {what} of other workers; one that is silent for {seconds:.0f} s is tried again.")

    def note(self, text: str) -> None:
        """Something to know, once."""
        self._line.say(visible(f"note: {text}"))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
