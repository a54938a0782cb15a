"""What is heard of the trials of a sweep, and how it is said to a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hynt.progress import Progress
from hynt.sweeping.study import Plan

Outcome: TypeAlias = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class TrialNews:
    """One thing that happened to a trial: plain values, since workers send it to the process that asked."""

    number: int
    what: Literal["begun", "trained", "validated", "ended"]
    values: dict[str, Any] = field(default_factory=dict)  # begun: what the trial tries
    epoch: int = 0  # trained, validated
    epochs: int = 0  # trained: of the phase
    value: float | None = None  # validated, ended: of the metric
    outcome: Outcome = "complete"
    problem: str = ""


@dataclass(frozen=True)
class Waiting:
    """Nothing is left to begin, but other workers are at so many trials; silent for `seconds`, they are lost."""

    trials: int
    seconds: float


TrialListener: TypeAlias = Callable[[TrialNews | Waiting], None]


class SweepProgress:
    """Says a line for each trial that ends, and where the others stand in between."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self.plan, self.progress = plan, progress
        self._best: float | None = None
        self._values: dict[int, dict[str, Any]] = {}
        self._at: dict[int, tuple[int, int]] = {}  # of trials that run: the epoch, and how many there are
        self._last: dict[int, float] = {}  # their last validations
        self._ended = 0

    def __call__(self, news: TrialNews | Waiting) -> None:
        if isinstance(news, Waiting):
            what = "a trial" if news.trials == 1 else f"{news.trials} trials"
            silent = f"one that is silent for {news.seconds:.0f} s is tried again"
            self.progress.note(f"waiting for {what} of other workers; {silent}.")
        elif news.what == "begun":
            self._values[news.number] = news.values
        elif news.what == "trained":
            self._at[news.number] = (news.epoch, news.epochs)
            self._update()
        elif news.what == "validated" and news.value is not None:
            self._last[news.number] = news.value
        elif news.what == "ended":
            self._end(news)

    def _end(self, news: TrialNews) -> None:
        self._ended += 1
        self._at.pop(news.number, None)
        self._last.pop(news.number, None)
        line = f"trial {news.number} {news.outcome}"
        if news.value is not None:
            line += f": {self.plan.metric} {news.value:.4f}"
            if news.outcome == "complete" and self._is_better(news.value):
                self._best = news.value
                line += " (best so far)"
        line += f": {news.problem}" if news.problem else ""
        tried = ", ".join(f"{path}={_short(value)}" for path, value in self._values.pop(news.number, {}).items())
        self.progress.say(f"{line}; {tried}" if tried else line)

    def _update(self) -> None:
        share = (self._ended + sum(epoch / epochs for epoch, epochs in self._at.values())) / self.plan.trials
        note = ", ".join(self._where(number) for number in sorted(self._at))
        self.progress.update("sweeping", self._ended, self.plan.trials, "trials", share=min(1.0, share), note=note)

    def _where(self, number: int) -> str:
        epoch, epochs = self._at[number]
        value = f" with {self.plan.metric} {self._last[number]:.4f}" if number in self._last else ""
        return f"trial {number} at epoch {epoch} of {epochs}{value}"

    def _is_better(self, value: float) -> bool:
        sign = -1.0 if self.plan.lower_is_better else 1.0
        return self._best is None or sign * value > sign * self._best


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
