"""How a sweep goes, on standard error: a line for each trial that ends, and on a terminal a bar."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from hynt.cli.output import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class SweepProgress:
    """Hears of trials. A context manager: the bar is gone when the sweep is over or has failed."""

    def __init__(self, metric: str, trials: int, lower_is_better: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._metric, self._trials = metric, trials
        self._sign = -1.0 if lower_is_better else 1.0
        self._best: float | None = None
        self._values: dict[int, dict[str, Any]] = {}
        self._ended = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> SweepProgress:
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("trials"), BarColumn(bar_width=20), MofNCompleteColumn(),
                TextColumn("{task.fields[news]}", markup=False), console=Console(file=self._stream), transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task("trials", total=self._trials, news="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begun(self, number: int, values: dict[str, Any]) -> None:
        """Keeps what the trial tries, to say it at its end."""
        self._values[number] = values

    def validated(self, number: int, epoch: int, value: float) -> None:
        """News for the bar; plain lines would be too many."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, news=f"trial {number}, epoch {epoch}: {self._metric} {value:.4f}")

    def ended(self, number: int, outcome: str, value: float | None, problem: str) -> None:
        """One line: what was tried and what came of it."""
        self._ended += 1
        line = f"trial {number} {outcome}"
        if value is not None:
            line += f": {self._metric} {value:.4f}"
        if outcome == "complete" and value is not None and self._is_better(value):
            self._best = value
            line += " (best so far)"
        line += f": {problem}" if problem else ""
        tried = ", ".join(f"{path}={_short(value)}" for path, value in self._values.pop(number, {}).items())
        self._say(f"{line}; {tried}" if tried else line)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._ended)

    def _is_better(self, value: float) -> bool:
        return self._best is None or self._sign * value > self._sign * self._best

    def waiting(self, trials: int, seconds: float) -> None:
        """Why nothing seems to happen."""
        what = "a trial" if trials == 1 else f"{trials} trials"
        self.note(f"waiting for {what} of other workers; one that is silent for {seconds:.0f} s is tried again.")

    def note(self, text: str) -> None:
        """Something to know, once."""
        self._say(f"note: {text}")

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(visible(line), markup=False, highlight=False)
        else:
            print(visible(line), file=self._stream, flush=True)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
