"""Where a long job stands: a bar on a terminal, a line that rewrites itself in a notebook, seldom lines elsewhere."""

from __future__ import annotations

import io
import sys
import time
import unicodedata
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


_BAR = 20  # columns
LEAST = 0.5
"""Seconds that are worth telling: what is done, or nearly, is not about to take 0 s more."""


class Progress:
    """Hears how a job goes. This one stays silent; `ShownProgress` shows it to a person."""

    def update(
        self,
        stage: str,
        done: int,
        total: int | None = None,
        unit: str = "",
        *,
        share: float | None = None,
        note: str = "",
        seconds_left: float | None = None,
        always: bool = False,
    ) -> None:
        """How much is done, of how much in all.

        `share` of the stage, where it is not `done / total`; `seconds_left`, where the job knows better than its pace
        so far; `always`: say it even where something was said a moment ago.
        """

    def say(self, text: str) -> None:
        """Says a line that stays when the job goes on."""

    def note(self, text: str) -> None:
        """Something that a person should know, once."""
        self.say(f"note: {text}")

    def counting(self, stage: str) -> Callable[[int, int], None]:
        """For work that counts only how many questions are done, of how many."""
        return lambda done, total: self.update(stage, done, total, "questions")


SILENT = Progress()


class ShownProgress(Progress):
    """Shows a job to a person. A context manager: no bar is left when the job is done or has failed."""

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic, pause: float = 5.0
    ) -> None:
        """`pause`: at least so many seconds between two plain lines. Without a `stream`, standard error; in a notebook,
        the cell's output.
        """
        self._rewrites = stream is None and in_notebook()
        self._stream = stream or (sys.stdout if self._rewrites else sys.stderr)
        self._clock, self._pause = clock, 0.1 if self._rewrites else pause
        self._bar: Bar | None = None
        self._stage, self._begun, self._done = "", (0.0, 0, 0.0), 0
        self._shown = 0  # characters of the line that will be rewritten

    def __enter__(self) -> ShownProgress:
        self._told = self._clock()
        if self._stream.isatty() and not self._rewrites:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            words = TextColumn("{task.description}", markup=False)
            self._bar = Progress(BarColumn(_BAR), words, console=Console(file=self._stream), transient=True)
            self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._shown:
            self._rewrite("")

    def update(
        self,
        stage: str,
        done: int,
        total: int | None = None,
        unit: str = "",
        *,
        share: float | None = None,
        note: str = "",
        seconds_left: float | None = None,
        always: bool = False,
    ) -> None:
        now = self._clock()
        if share is None and total:
            share = done / total
        if stage != self._stage or done < self._done:  # what came before its first word is not this stage's work
            self._stage, self._begun = stage, (now, done, share or 0.0)
        self._done = done
        if self._bar is None and not always and now - self._told < self._pause:
            return
        self._told = now
        pace, left = self._pace(now, done, share)
        left = left if seconds_left is None else seconds_left
        counted = f"{done:,} of {total:,}" if total else f"{done:,}"
        words = note.split(", ") if note else []
        if unit:
            percent = "" if share is None else f" ({share:.0%})"
            speed = [f"{pace:,.0f} {unit}/s"] if pace >= 1 else []
            one = unit.removesuffix("s") if (total or done) == 1 and " " not in unit else unit
            words = [f"{counted} {one}{percent}", *speed, *words]
        head = stage if unit else f"{stage} {counted}"
        last = [] if left is None or left < LEAST else [f"about {duration(left)} left"]
        line = visible(f"{head}: {', '.join([*words, *last])}".removesuffix(": "))
        if self._bar is not None:
            room = self._bar.console.width - _BAR - 2
            while len(line) > room and len(words) > bool(unit):  # what is left to wait for is never cut off
                words.pop()
                line = visible(f"{head}: {', '.join([*words, *last])}".removesuffix(": "))
            task = self._bar.task_ids[0]
            self._bar.update(task, description=line, total=None if share is None else 1.0, completed=share or 0.0)
        elif self._rewrites:
            self._rewrite(line)
        else:
            self._write(f"{line}\n")

    def say(self, text: str) -> None:
        text = visible(text)
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
            return
        if self._shown:
            self._rewrite("")
        self._write(f"{text}\n")

    def _pace(self, now: float, done: int, share: float | None) -> tuple[float, float | None]:
        """How much of the stage is done per second, and how many seconds are left of it, if that can be told."""
        began, before, share_before = self._begun
        if now <= began:
            return 0.0, None
        left = None if not share or share <= share_before else (now - began) * (1 - share) / (share - share_before)
        return (done - before) / (now - began), left

    def _rewrite(self, line: str) -> None:
        self._write(f"\r{line.ljust(self._shown)}" + ("" if line else "\r"))
        self._shown = len(line)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Notes(io.StringIO):
    """A stream whose lines somebody is told one by one."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self._note = note

    def write(self, text: str) -> int:
        self._note(text.rstrip("\n"))
        return len(text)


def noted(note: Callable[[str], None]) -> ShownProgress:
    """For a job of which only notes are told."""
    return ShownProgress(_Notes(note), pause=PAUSE_OF_NOTES)


PAUSE_OF_NOTES = 10.0
"""Seconds from one note on a job to the next."""


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this, whose output understands a carriage return but is no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def visible(text: str) -> str:
    """Text from data, with control and direction-changing characters written as escapes."""
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in _UNSAFE else character
        for character in text
    )


_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
