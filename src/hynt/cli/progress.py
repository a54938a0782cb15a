"""How far a read or a round of questions has come. The bar is gone when the work is done or has failed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hynt.comparison.trial import Trial
    from hynt.formats.importing import ImportProgress
    from hynt.runs.progress import EpochRecord, ValidationRecord


class ReadingProgress:
    """Called with each `ImportProgress`."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._line = StatusLine(stream, clock)

    def __enter__(self) -> ReadingProgress:
        self._line.start("opening")
        return self

    def __exit__(self, *failure: object) -> None:
        self._line.stop()

    def __call__(self, state: ImportProgress) -> None:
        share = min(state.bytes_read / state.bytes_total, 1.0) if state.bytes_total else None
        self._line.show(lambda seconds: reading_words(state, share, seconds), share)


def reading_words(state: ImportProgress, share: float | None, seconds: float) -> str:
    """`reading: 12.0 of 48.0 MB (25%), 1,200,000 facts, 4.0 MB/s, about 9 s left`."""
    words = f"{state.step}: {state.bytes_read / 1e6:.1f} of {state.bytes_total / 1e6:.1f} MB"
    if share is not None:
        words += f" ({share:.0%})"
    words += f", {state.facts:,} facts"
    rate = state.bytes_read / seconds if seconds > 0 else 0.0
    if state.step == "reading" and rate > 0:
        left = max(state.bytes_total - state.bytes_read, 0) / rate
        words += f", {rate / 1e6:.1f} MB/s, about {left:,.0f} s left"
    return words


class QuestionProgress:
    """Hears how many questions are done, of how many."""

    def __init__(self, what: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._line = what, StatusLine(stream, clock)

    def __enter__(self) -> QuestionProgress:
        self._line.start(self._what)
        return self

    def __exit__(self, *failure: object) -> None:
        self._line.stop()

    def __call__(self, done: int, total: int) -> None:
        def words(seconds: float) -> str:
            left = seconds * (total - done) / max(done, 1)
            return f"{self._what}: {done:,} of {total:,} questions, about {left:,.0f} s left"

        self._line.show(words, done / total if total else None)


# Where a long job stands, on standard error: beside a bar on a terminal, as a plain line now and then elsewhere.


class StatusLine:
    """Says the same words in both places. Whoever starts it stops it, so that no bar is left behind."""

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic, pause: float = 5.0
    ) -> None:
        """`pause`: at least so many seconds between two plain lines."""
        self._stream, self._clock, self._pause = stream or sys.stderr, clock, pause
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def start(self, words: str) -> None:
        """Begin to count the time; on a terminal, show the bar."""
        self._began = self._told = self._clock()
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                BarColumn(bar_width=20),
                TextColumn("{task.description}", markup=False),
                console=Console(file=self._stream),
                transient=True,
            )
            self._task = self._bar.add_task(words, total=None)
            self._bar.start()

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def show(self, words: Callable[[float], str], share: float | None, *, always: bool = False) -> None:
        """The words, which are told how many seconds have passed, and the share that is done, if it is known.

        `always`: also where a plain line was said a moment ago.
        """
        now = self._clock()
        line = words(now - self._began)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=line, total=None if share is None else 1.0, completed=share or 0.0)
        elif always or now - self._told >= self._pause:
            self._told = now
            self.say(line)

    def say(self, line: str) -> None:
        """A line that stays."""
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=self._stream, flush=True)


# How training goes, on standard error: a bar on a terminal, plain lines elsewhere.


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


# Where a long job of questions stands, on standard error, with its speed and the time that is left.


class CompletionProgress:
    """Hears what is done, how many questions so far, and which share of the whole that is."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._line = StatusLine(stream, clock)
        self._step, self._begun = "", (0.0, 0, 0.0)

    def __enter__(self) -> CompletionProgress:
        self._line.start("reading")
        return self

    def __exit__(self, *failure: object) -> None:
        self._line.stop()

    def __call__(self, step: str, done: int, share: float) -> None:
        self._line.show(lambda seconds: self._words(step, done, share, seconds), share)

    def _words(self, step: str, done: int, share: float, now: float) -> str:
        """`answering: 131,072 questions (13%), 11,200 a second, about 78 s left`."""
        if step != self._step:  # the first word of a step: what came before it is not its own work
            self._step, self._begun = step, (now, done, share)
        words = f"{step}: {done:,} questions ({share:.0%})"
        start, before, share_before = self._begun
        if now > start and done > before and share > share_before:
            left = (now - start) * (1 - share) / (share - share_before)
            words += f", {(done - before) / (now - start):,.0f} a second, about {left:,.0f} s left"
        return words


# How an audit goes, on standard error: which fold, how its training goes, and how many questions are answered.


class AuditProgress:
    """Hears of folds, epochs and questions. A context manager: no bar is left when the audit is done or has failed."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._training: TrainingProgress | None = None
        self._questions: QuestionProgress | None = None
        self._notes = TrainingProgress(stream)

    def __enter__(self) -> AuditProgress:
        return self

    def __exit__(self, *failure: object) -> None:
        self._close()

    def stage(self, text: str) -> None:
        """A new fold, or its judging."""
        self._close()
        print(text, file=self._stream or sys.stderr, flush=True)

    def epoch_done(self, record: EpochRecord) -> None:
        """An epoch of the fold at hand."""
        if self._training is None:
            self._close()
            self._training = TrainingProgress(self._stream).__enter__()
        self._training.epoch_done(record)

    def validated(self, record: ValidationRecord) -> None:
        """Folds have no validation split: never called, but a trainer may."""
        self._notes.validated(record)

    def asked(self, done: int, total: int) -> None:
        """So many questions are answered."""
        if self._questions is None:
            self._close()
            self._questions = QuestionProgress("judging", self._stream).__enter__()
        self._questions(done, total)

    def note(self, text: str) -> None:
        """Something to know, once."""
        (self._training or self._notes).note(text)

    def _close(self) -> None:
        for one in (self._training, self._questions):
            if one is not None:
                one.__exit__(None, None, None)
        self._training = self._questions = None


# How a comparison goes, on standard error: a bar of training time on a terminal, plain lines elsewhere.


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
