"""How a sweep goes, on standard error: a line for each trial that ends, and where it stands in between, in a bar on a
terminal and as a plain line now and then elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TextIO

from hynt.cli.output import visible
from hynt.cli.status_line import StatusLine

SECONDS_BETWEEN_LINES = 10.0
"""Where there is no bar."""


class SweepProgress:
    """Hears of trials. A context manager: the bar is gone when the sweep is over or has failed."""

    def __init__(
        self,
        metric: str,
        trials: int,
        lower_is_better: bool,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = StatusLine(stream, clock, pause=SECONDS_BETWEEN_LINES)
        self._metric, self._trials = metric, trials
        self._sign = -1.0 if lower_is_better else 1.0
        self._best: float | None = None
        self._values: dict[int, dict[str, Any]] = {}
        self._at: dict[int, tuple[int, int]] = {}  # of trials that run: the epoch, and how many there are
        self._last: dict[int, float] = {}  # their last validations
        self._ended = 0

    def __enter__(self) -> SweepProgress:
        self._line.start("trials")
        return self

    def __exit__(self, *failure: object) -> None:
        self._line.stop()

    def begun(self, number: int, values: dict[str, Any]) -> None:
        """Keeps what the trial tries, to say it at its end."""
        self._values[number] = values

    def trained(self, number: int, epoch: int, epochs: int) -> None:
        """A trial goes on."""
        self._at[number] = (epoch, epochs)
        self._show()

    def validated(self, number: int, epoch: int, value: float) -> None:  # noqa: ARG002 - the listener's signature
        """What a trial has come to; shown with its next epoch."""
        self._last[number] = value

    def ended(self, number: int, outcome: str, value: float | None, problem: str) -> None:
        """One line: what was tried and what came of it."""
        self._ended += 1
        self._at.pop(number, None)
        self._last.pop(number, None)
        line = f"trial {number} {outcome}"
        if value is not None:
            line += f": {self._metric} {value:.4f}"
        if outcome == "complete" and value is not None and self._is_better(value):
            self._best = value
            line += " (best so far)"
        line += f": {problem}" if problem else ""
        tried = ", ".join(f"{path}={_short(value)}" for path, value in self._values.pop(number, {}).items())
        self._line.say(visible(f"{line}; {tried}" if tried else line))

    def _show(self) -> None:
        news = "; ".join(self._news(number) for number in sorted(self._at))
        share = (self._ended + sum(epoch / epochs for epoch, epochs in self._at.values())) / self._trials
        self._line.show(lambda _: f"{self._ended} of {self._trials} trials are done; {news}", min(1.0, share))

    def _news(self, number: int) -> str:
        epoch, epochs = self._at[number]
        value = f" with {self._metric} {self._last[number]:.4f}" if number in self._last else ""
        return f"trial {number} is at epoch {epoch} of {epochs}{value}"

    def _is_better(self, value: float) -> bool:
        return self._best is None or self._sign * value > self._sign * self._best

    def waiting(self, trials: int, seconds: float) -> None:
        """Why nothing seems to happen."""
        what = "a trial" if trials == 1 else f"{trials} trials"
        self.note(f"waiting for {what} of other workers; one that is silent for {seconds:.0f} s is tried again.")

    def note(self, text: str) -> None:
        """Something to know, once."""
        self._line.say(visible(f"note: {text}"))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
