"""A watcher that passes training's news on to trackers. Training never waits on one that fails: it goes on without."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeGuard

from hynt.errors import UsageError
from hynt.names import advice_on
from hynt.runs.progress import EpochRecord, Interrupted, ValidationRecord
from hynt.tracking.to_mlflow import ToMlflow
from hynt.tracking.to_tensorboard import ToTensorBoard
from hynt.tracking.to_wandb import ToWandb
from hynt.tracking.tracker import Ending, Tracked, Tracker, flat
from hynt.training.run import Watcher

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
class TrackingWatcher:
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
