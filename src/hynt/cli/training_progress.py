"""How training goes, on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from hynt.cli.status_line import StatusLine

if TYPE_CHECKING:
    from hynt.runs.progress import EpochRecord, ValidationRecord


class TrainingProgress:
    """Hears of epochs and validations. A context manager: the bar is gone when training is done or has failed."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._line = StatusLine(stream, clock)
        self._seconds, self._epochs = 0.0, 0

    def __enter__(self) -> TrainingProgress:
        self._line.start("training")
        return self

    def __exit__(self, *failure: object) -> None:
        self._line.stop()

    def epoch_done(self, record: EpochRecord) -> None:
        """Losses, speed and the time that is left."""
        self._seconds += record.seconds
        self._epochs += 1
        left, share = (record.epochs - record.epoch) * self._seconds / self._epochs, record.epoch / record.epochs
        if record.time_left is not None and record.time_left < left:  # the clock ends it before the epochs do
            left = max(record.time_left, 0.0)
            share = self._seconds / (self._seconds + left) if self._seconds else share
        words = f"epoch {record.epoch} of {record.epochs}: {news(record, left)}"
        is_last = record.epoch == record.epochs or (record.time_left is not None and record.time_left <= 0)
        self._line.show(lambda _: words, share, always=self._epochs == 1 or is_last)

    def validated(self, record: ValidationRecord) -> None:
        """The metric, and whether it is the best so far."""
        best = " (best so far)" if record.is_best else ""
        words = f"validation {record.metric} {record.value:.4f}{best}, {record.seconds:.1f} s"
        self._line.say(f"epoch {record.epoch}: {words}")

    def note(self, text: str) -> None:
        """Something to know, once."""
        self._line.say(f"note: {text}")


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
