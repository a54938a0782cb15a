"""Where a long job stands, on standard error: beside a bar on a terminal, as a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


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
