"""Where a long job of questions stands, on standard error, with its speed and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from hynt.cli.status_line import StatusLine


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
