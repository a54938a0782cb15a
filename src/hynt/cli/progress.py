"""Where a long read stands, on standard error: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hynt.formats.importing import ImportProgress

SECONDS_BETWEEN_LINES = 5.0


class ReadingProgress:
    """Called with each `ImportProgress`. A context manager: the bar is gone when the work is done or has failed."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ReadingProgress:
        self._start = self._told = self._clock()
        if self._stream.isatty():
            self._bar = _bar(self._stream)
            self._task = self._bar.add_task("opening", total=None, facts="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, state: ImportProgress) -> None:
        if self._bar is not None and self._task is not None:
            done = min(state.bytes_read, state.bytes_total)
            self._bar.update(
                self._task, description=state.step, completed=done, total=state.bytes_total or None,
                facts=f"{state.facts:,} facts",
            )  # fmt: skip
            return
        now = self._clock()
        if now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            print(plain_line(state, now - self._start), file=self._stream, flush=True)


def plain_line(state: ImportProgress, seconds: float) -> str:
    """`reading: 12.0 of 48.0 MB (25%), 1,200,000 facts, 4.0 MB/s, about 9 s left`."""
    line = f"{state.step}: {state.bytes_read / 1e6:.1f} of {state.bytes_total / 1e6:.1f} MB"
    if state.bytes_total:
        line += f" ({min(state.bytes_read / state.bytes_total, 1.0):.0%})"
    line += f", {state.facts:,} facts"
    rate = state.bytes_read / seconds if seconds > 0 else 0.0
    if state.step == "reading" and rate > 0:
        left = max(state.bytes_total - state.bytes_read, 0) / rate
        line += f", {rate / 1e6:.1f} MB/s, about {left:,.0f} s left"
    return line


def _bar(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    return Progress(
        TextColumn("{task.description}"), BarColumn(bar_width=None), DownloadColumn(), TransferSpeedColumn(),
        TimeRemainingColumn(), TextColumn("{task.fields[facts]}"),
        console=Console(file=stream), transient=True,
    )  # fmt: skip


class QuestionProgress:
    """Hears how many questions are done, of how many. A context manager, like `ReadingProgress`."""

    def __init__(self, what: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._clock = clock
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> QuestionProgress:
        self._start = self._told = self._clock()
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(file=self._stream), transient=True)
            self._task = self._bar.add_task(self._what, total=None)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
            return
        now = self._clock()
        if now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            left = (now - self._start) * (total - done) / max(done, 1)
            print(
                f"{self._what}: {done:,} of {total:,} questions, about {left:,.0f} s left",
                file=self._stream, flush=True,
            )  # fmt: skip
