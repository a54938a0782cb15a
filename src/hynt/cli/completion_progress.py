"""Where a long job of questions stands, on standard error, with its speed and the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from hynt.cli.progress import SECONDS_BETWEEN_LINES

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class CompletionProgress:
    """Hears what is done, how many questions so far, and which share of the whole that is."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream or sys.stderr, clock
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._step, self._first = "", (0, 0.0)

    def __enter__(self) -> CompletionProgress:
        self._start = self._told = self._clock()
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(file=self._stream), transient=True)
            self._task = self._bar.add_task("reading", total=1.0)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: str, done: int, share: float) -> None:
        now = self._clock()
        if step != self._step:  # the first word of a step: what came before it is not its own work
            self._step, self._start, self._first = step, now, (done, share)
        line = self._line(step, done, share, now - self._start)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=line, completed=share)
        elif now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            print(line, file=self._stream, flush=True)

    def _line(self, step: str, done: int, share: float, seconds: float) -> str:
        """`answering: 131,072 questions (13%), 11,200 a second, about 78 s left`."""
        line = f"{step}: {done:,} questions ({share:.0%})"
        before, share_before = self._first
        if seconds > 0 and done > before and share > share_before:
            left = seconds * (1 - share) / (share - share_before)
            line += f", {(done - before) / seconds:,.0f} a second, about {left:,.0f} s left"
        return line
