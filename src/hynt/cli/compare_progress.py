"""How a comparison goes, on standard error: a bar of training time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from hynt.cli.training_progress import duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hynt.reporting.compare_trial import Trial
    from hynt.training.progress import EpochRecord, ValidationRecord

SECONDS_BETWEEN_LINES = 10.0


class CompareProgress:
    """Hears of models, epochs, validations and tests. A context manager: the bar is gone at the end."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream or sys.stderr, clock
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._name, self._limit, self._trained, self._told = "", 0.0, 0.0, float("-inf")

    def __enter__(self) -> CompareProgress:
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.fields[news]}"),
                console=Console(file=self._stream), transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task("comparing", total=None, news="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begins(self, trial: Trial, index: int, count: int) -> None:
        """A model's turn."""
        self._name = f"{trial.model} ({index} of {count})"
        self._limit, self._trained = trial.seconds or 0.0, 0.0
        self._show(0.0, "begins", always=True)

    def epoch_done(self, record: EpochRecord) -> None:
        """Training time so far, and the losses."""
        self._trained += record.seconds
        losses = ", ".join(f"{name} {value:.4g}" for name, value in record.losses.items())
        time_of = f"{self._trained:.0f} of at most {duration(self._limit)}"
        self._show(self._trained, f"epoch {record.epoch}, {time_of}, loss {losses}")

    def validated(self, record: ValidationRecord) -> None:
        """The metric."""
        self._show(self._trained, f"epoch {record.epoch}, validation {record.metric} {record.value:.4f}", always=True)

    def asked(self, done: int, total: int) -> None:
        """The test."""
        self._show(self._limit, f"testing: {done:,} of {total:,} questions", always=done == total)

    def ends(self, row: Mapping[str, Any]) -> None:
        """The row is there."""
        self._show(self._limit, f"done: {row['epochs']} epochs in {row['train_seconds']:.0f} s", always=True)

    def note(self, text: str) -> None:
        """Something to know, once."""
        self._say(f"note: {text}")

    def _show(self, trained: float, news: str, *, always: bool = False) -> None:
        if self._bar is not None and self._task is not None:
            total = self._limit or None
            completed = min(trained, self._limit)
            self._bar.update(self._task, description=self._name, total=total, completed=completed, news=news)
            return
        now = self._clock()
        if always or now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            self._say(f"{self._name}: {news}")

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=self._stream, flush=True)
