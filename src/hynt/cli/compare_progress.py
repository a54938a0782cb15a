"""How a comparison goes, on standard error: a bar of training time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from hynt.cli.status_line import StatusLine
from hynt.cli.training_progress import duration

if TYPE_CHECKING:
    from hynt.comparison.trial import Trial
    from hynt.runs.progress import EpochRecord, ValidationRecord


class CompareProgress:
    """Hears of models, epochs, validations and tests. A context manager: the bar is gone at the end."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._line = StatusLine(stream, clock, pause=10.0)
        self._name, self._limit, self._trained = "", 0.0, 0.0

    def __enter__(self) -> CompareProgress:
        self._line.start("comparing")
        return self

    def __exit__(self, *failure: object) -> None:
        self._line.stop()

    def begins(self, trial: Trial, index: int, count: int) -> None:
        """A model's turn."""
        self._name = f"{trial.model} ({index} of {count})"
        self._limit, self._trained = trial.seconds or 0.0, 0.0
        self._show(0.0, "begins", always=True)

    def epoch_done(self, record: EpochRecord) -> None:
        """Training time so far, and the losses."""
        self._trained += record.seconds
        losses = ", ".join(f"{name} {value:.4g}" for name, value in record.losses.items())
        time_of = f"{self._trained:.0f} of {duration(self._limit)}"
        self._show(self._trained, f"epoch {record.epoch}, {time_of}, loss {losses}")

    def validated(self, record: ValidationRecord) -> None:
        """The metric."""
        self._show(self._trained, f"epoch {record.epoch}, validation {record.metric} {record.value:.4f}", always=True)

    def asked(self, done: int, total: int) -> None:
        """The test."""
        self._show(self._limit, f"testing: {done:,} of {total:,} questions", always=done == total)

    def ends(self, row: Mapping[str, Any]) -> None:
        """The row is there."""
        count = row["epochs"]
        epochs = f"{count:,} epoch{'' if count == 1 else 's'} ({row['schedule_epochs']:,} in its own schedule)"
        self._show(self._limit, f"done: {epochs} in {row['train_seconds']:.0f} s", always=True)

    def note(self, text: str) -> None:
        """Something to know, once."""
        self._line.say(f"note: {text}")

    def _show(self, trained: float, news: str, *, always: bool = False) -> None:
        share = min(trained / self._limit, 1.0) if self._limit else None
        self._line.show(lambda _: f"{self._name}: {news}", share, always=always)
