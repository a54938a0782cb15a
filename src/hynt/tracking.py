"""Trackers: each hears what a run is, every number as it comes, and how training ended.

`metrics.jsonl` in the run folder is always written and needs none of this.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeGuard

from hynt.config import flat, to_mapping
from hynt.errors import UsageError, needing
from hynt.names import advice_on
from hynt.runs import CONFIG
from hynt.runs.checkpoint import EpochRecord, Interrupted, ValidationRecord, Watcher
from hynt.runs.run_folder import RunFolder

Ending = Literal["finished", "stopped", "failed"]


@dataclass(frozen=True)
class Tracked:
    """A run, as a tracker needs to know it."""

    name: str
    key: str  # letters, digits and dashes; the same when the run is resumed, so that it stays one run there
    folder: Path  # where trackers that write files do so: beside runs, not in them, since runs are given away
    settings: dict[str, Any]  # by path: {"optimiser.learning_rate": 0.001, …}
    tags: dict[str, str]

    @classmethod
    def of(cls, run: RunFolder, folder: Path) -> Tracked:
        """The run in this folder, as trackers will see it."""
        manifest, name = run.manifest, run.path.resolve().name
        tags = {"model": manifest["model_name"], "graph": manifest["graph"]["name"], "hynt": manifest["hynt"]}
        key = re.sub(r"[^A-Za-z0-9_-]", "-", f"{name}-{manifest['files'][CONFIG][:12]}")
        return cls(name, key, folder, flat(to_mapping(run.settings()), "."), tags)


class Tracker(Protocol):
    """One place where metrics go."""

    def begin(self, run: Tracked) -> None:
        """Training begins, or goes on."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers of one epoch, by names such as `loss/link` and `valid/link/all/mrr`."""

    def end(self, how: Ending) -> None:
        """Training has ended, and `how`; no more numbers come."""


# Parameters and metrics to MLflow: the server that MLFLOW_TRACKING_URI names, or a SQLite file beside the runs.

EXPERIMENT = "hynt"
_KEY = "hynt.run"
_STATUS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
_LONGEST_VALUE = 500  # characters that MLflow takes of a parameter
_AT_ONCE = 100  # parameters that it takes in one call


class ToMlflow:
    """One run in the experiment `hynt`."""

    def __init__(self) -> None:
        with needing("MLflow", "mlflow", where="--track"):
            from mlflow import entities
            from mlflow.tracking import MlflowClient
        logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of the tables it makes
        self._client_of, self._entities = MlflowClient, entities

    def begin(self, run: Tracked) -> None:
        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(run.folder / 'mlflow.db').resolve()}"
        if uri.startswith("sqlite"):
            run.folder.mkdir(parents=True, exist_ok=True)
        self._client: Any = self._client_of(tracking_uri=uri)
        known = self._client.get_experiment_by_name(EXPERIMENT)
        experiment = known.experiment_id if known else self._client.create_experiment(EXPERIMENT)
        found = self._client.search_runs([experiment], f"tags.`{_KEY}` = '{run.key}'", max_results=1)
        if found:
            self._run = found[0].info.run_id
            self._client.update_run(self._run, status="RUNNING")
            return
        self._run = self._client.create_run(experiment, run_name=run.name, tags={**run.tags, _KEY: run.key}).info.run_id
        texts = [(path, str(value)[:_LONGEST_VALUE]) for path, value in run.settings.items()]
        for first in range(0, len(texts), _AT_ONCE):
            parameters = [self._entities.Param(*text) for text in texts[first : first + _AT_ONCE]]
            self._client.log_batch(self._run, params=parameters)

    def log(self, values: Mapping[str, float], step: int) -> None:
        now = int(1000 * time.time())
        # It takes no @ in a name: hits@10 becomes hits_at_10.
        named = {name.replace("@", "_at_"): value for name, value in values.items()}
        metrics = [self._entities.Metric(name, value, now, step) for name, value in named.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def end(self, how: Ending) -> None:
        self._client.set_terminated(self._run, status=_STATUS[how])


# Scalars as TensorBoard's event files: `tensorboard --logdir FOLDER/tensorboard`.


class ToTensorBoard:
    """A folder of event files per run."""

    def __init__(self) -> None:
        with needing("TensorBoard", "tensorboard", where="--track"):
            from torch.utils.tensorboard import SummaryWriter
        self._make: Any = SummaryWriter

    def begin(self, run: Tracked) -> None:
        self._writer = self._make(str(run.folder / "tensorboard" / run.key))
        rows = "\n".join(f"| {path} | {value} |" for path, value in {**run.tags, **run.settings}.items())
        self._writer.add_text("settings", f"| setting | value |\n|---|---|\n{rows}")

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def end(self, how: Ending) -> None:  # noqa: ARG002 - an event file has no ending
        self._writer.close()


# Settings and metrics to Weights & Biases: offline unless WANDB_MODE says otherwise; `wandb sync` sends them later.

PROJECT = "hynt"
_EXIT_CODE = {"finished": 0, "stopped": 130, "failed": 1}


class ToWandb:
    """One run in the project `hynt`. Neither source code nor the output of the terminal is sent."""

    def __init__(self) -> None:
        with needing("Weights & Biases", "wandb", where="--track"):
            import wandb
        self._wandb: Any = wandb

    def begin(self, run: Tracked) -> None:
        folder = run.folder / "wandb"
        folder.mkdir(parents=True, exist_ok=True)
        self._run = self._wandb.init(
            project=PROJECT,
            id=run.key,
            name=run.name,
            dir=str(folder),
            resume="allow",
            mode=os.environ.get("WANDB_MODE", "offline"),
            config={**run.tags, **run.settings},
            settings=self._wandb.Settings(
                silent=True, console="off", save_code=False, disable_git=True, disable_code=True, x_disable_stats=True
            ),
        )

    def log(self, values: Mapping[str, float], step: int) -> None:
        # Validation comes after the epoch's losses, with the same step: both belong to one row.
        self._run.log(dict(values), step=step)

    def end(self, how: Ending) -> None:
        self._run.finish(exit_code=_EXIT_CODE[how])


# A watcher that passes training's news on to trackers. Training never waits on one that fails: it goes on without.

TRACKERS: dict[str, Callable[[], Tracker]] = {"tensorboard": ToTensorBoard, "mlflow": ToMlflow, "wandb": ToWandb}
"""Every tracker by the name that `--track` takes."""


def trackers_named(names: Iterable[str]) -> dict[str, Tracker]:
    """The trackers; an unknown name or a library that is not installed is refused before training begins."""
    found: dict[str, Tracker] = {}
    for name in names:
        if name not in TRACKERS:
            raise UsageError(f"unknown tracker {name!r}.", where="--track", advice=advice_on(name, TRACKERS))
        found[name] = TRACKERS[name]()
    return found


@dataclass
class TrackingWatcher(Watcher):
    """Tells `inner` everything, and the trackers every number."""

    inner: Watcher
    trackers: dict[str, Tracker]
    _first_phase: str = field(default="", init=False)

    def epoch_done(self, record: EpochRecord) -> None:
        self.inner.epoch_done(record)
        self._first_phase = self._first_phase or record.phase
        losses = {f"loss/{name}": value for name, value in record.losses.items()}
        self._log(record.phase, {**losses, "learning_rate": record.rate, "epoch_seconds": record.seconds}, record.epoch)

    def validated(self, record: ValidationRecord) -> None:
        self.inner.validated(record)
        self._first_phase = self._first_phase or record.phase
        values = {f"valid/{name}": value for name, value in flat(record.results, "/").items()}
        self._log(record.phase, values, record.epoch)

    def weighing(self, done: int, total: int) -> None:
        self.inner.weighing(done, total)

    def note(self, text: str) -> None:
        self.inner.note(text)

    def begin(self, run: Tracked) -> None:
        self._each(lambda tracker: tracker.begin(run))

    def end(self, how: Ending) -> None:
        self._each(lambda tracker: tracker.end(how))

    def _log(self, phase: str, values: Mapping[str, object], step: int) -> None:
        """A later phase counts its epochs anew, so its numbers get names of their own."""
        prefix = "" if phase == self._first_phase else f"{phase}/"
        numbers = {f"{prefix}{name}": value for name, value in values.items() if _is_number(value)}
        self._each(lambda tracker: tracker.log(numbers, step))

    def _each(self, tell: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self.trackers.items()):
            try:
                tell(tracker)
            except Exception as problem:  # noqa: BLE001 - whatever a tracker fails of, hours of training must not
                del self.trackers[name]
                words = (str(problem) or type(problem).__name__).splitlines()[0]
                self.inner.note(f"{name} failed, and training goes on without it: {words}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@contextmanager
def tracking(inner: Watcher, trackers: dict[str, Tracker], run: Callable[[], Tracked]) -> Iterator[Watcher]:
    """`inner` itself where nothing is tracked; else a watcher whose trackers are told of the beginning and the end."""
    if not trackers:
        yield inner
        return
    watcher = TrackingWatcher(inner, trackers)
    watcher.begin(run())
    try:
        yield watcher
    except (Interrupted, KeyboardInterrupt):
        watcher.end("stopped")
        raise
    except BaseException:
        watcher.end("failed")
        raise
    watcher.end("finished")
