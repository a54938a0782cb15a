"""How far a read or a round of questions has come. The bar is gone when the work is done or has failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from hynt.cli.status_line import StatusLine

if TYPE_CHECKING:
    from hynt.formats.importing import ImportProgress


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
