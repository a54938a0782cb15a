"""How training goes, on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hynt.training.progress import EpochRecord, ValidationRecord

SECONDS_BETWEEN_LINES = 5.0


class TrainingProgress:
    """Hears of epochs and validations. A context manager: the bar is gone when training is done or has failed."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._told = float("-inf")
        self._seconds = 0.0
        self._epochs = 0

    def __enter__(self) -> TrainingProgress:
        if self._stream.isatty():
            self._bar = _bar(self._stream)
            self._task = self._bar.add_task("training", total=None, news="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def epoch_done(self, record: EpochRecord) -> None:
        """Losses, speed and the time that is left."""
        self._seconds += record.seconds
        self._epochs += 1
        left = (record.epochs - record.epoch) * self._seconds / self._epochs
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=record.epoch, total=record.epochs, news=news(record, left))
            return
        now = self._clock()
        if now - self._told >= SECONDS_BETWEEN_LINES or record.epoch == record.epochs:
            self._told = now
            self._say(f"epoch {record.epoch} of {record.epochs}: {news(record, left)}")

    def validated(self, record: ValidationRecord) -> None:
        """The metric, and whether it is the best so far."""
        best = " (best so far)" if record.is_best else ""
        self._say(f"epoch {record.epoch}: validation {record.metric} {record.value:.4f}{best}, {record.seconds:.1f} s")

    def note(self, text: str) -> None:
        """Something to know, once."""
        self._say(f"note: {text}")

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=self._stream, flush=True)


def news(record: EpochRecord, left: float) -> str:
    """`loss link 5.1, relation 1.2, number 0.03; 52,000 facts/s; about 3 s left`."""
    losses = ", ".join(f"{name} {value:.4g}" for name, value in record.losses.items())
    speed = record.items / record.seconds if record.seconds > 0 else 0.0
    return f"loss {losses}; {speed:,.0f} facts/s; about {duration(left)} left"


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bar(stream: TextIO) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(),
        TextColumn("{task.fields[news]}", markup=False), console=Console(file=stream), transient=True,
    )  # fmt: skip
