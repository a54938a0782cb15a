"""One trial: a run with suggested settings, told of each validation, and ended early where it falls behind.

A trial leaves its settings and its metrics, `trials/0007.toml` and `trials/0007.jsonl`. Its weights are not kept: a run
follows from its settings and its seed, and the best one is trained again with the test split at hand.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hynt.config import from_mapping, to_toml, with_overrides
from hynt.errors import DataError, HyntError, UsageError
from hynt.files import write_whole
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.kernels.device import chosen_device
from hynt.progress import Progress
from hynt.runs import RECORD
from hynt.runs.checkpoint import EpochRecord, Interrupted, ValidationRecord, Watcher
from hynt.runs.model_choice import settings_class_for
from hynt.runs.run_folder import RunFolder
from hynt.runs.settings import RunSettings
from hynt.sweeping.study import PROBLEM, SURPLUS, TRIALS, Plan, history, is_surplus, load_optuna
from hynt.training.run import start, train

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.trial import FrozenTrial

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
    """Nothing is left to begin, but other workers still run `trials`; one that is silent for `seconds` is lost."""

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


class Surplus(Exception):
    """There were enough trials without this one."""


@dataclass
class _Judge(Watcher):
    """Hears of validations and ends a trial that is not worth going on with."""

    trial: Trial
    listener: TrialListener
    last_epoch: int
    first_phase: str = ""

    def epoch_done(self, record: EpochRecord) -> None:
        self.first_phase = self.first_phase or record.phase
        self.listener(TrialNews(self.trial.number, "trained", epoch=record.epoch, epochs=record.epochs))

    def validated(self, record: ValidationRecord) -> None:
        self.listener(TrialNews(self.trial.number, "validated", epoch=record.epoch, value=record.value))
        # A later phase (a regression on the finished model, say) counts its epochs anew: it is not compared.
        if record.phase != (self.first_phase or record.phase) or math.isnan(record.value):
            return
        self.trial.report(record.value, record.epoch)
        if record.epoch < self.last_epoch and self.trial.should_prune():  # at the end there is nothing left to save
            raise load_optuna().TrialPruned


@dataclass
class TrialRunner:
    """Runs trials of one sweep, one after another."""

    plan: Plan
    graph: KnowledgeGraph
    listener: TrialListener
    stopper: Stopper
    trials_so_far: Callable[[], Sequence[FrozenTrial]]

    def __call__(self, trial: Trial) -> float:
        """The trial's value. A `HyntError` says that its settings cannot be trained."""
        if is_surplus(self.trials_so_far(), trial.number, self.plan.trials):
            trial.set_user_attr(SURPLUS, True)
            raise Surplus
        values = self.plan.space.suggest(trial)
        self.listener(TrialNews(trial.number, "begun", values))
        pruned = load_optuna().TrialPruned
        try:
            found = self._trained(trial, self._settings(values))
        except pruned:
            last = self._stored(trial).intermediate_values
            value = last[max(last)] if last else None
            self.listener(TrialNews(trial.number, "ended", value=value, outcome="pruned"))
            raise
        except Interrupted:
            raise
        except HyntError as problem:
            trial.set_user_attr(PROBLEM, str(problem))
            self.listener(TrialNews(trial.number, "ended", outcome="failed", problem=str(problem)))
            raise
        self.listener(TrialNews(trial.number, "ended", value=found))
        return found

    def _settings(self, values: dict[str, Any]) -> RunSettings:
        base: RunSettings = from_mapping(settings_class_for(self.plan.model), self.plan.base)
        return with_overrides(base, self.plan.space.changes(values))

    def _trained(self, trial: Trial, settings: RunSettings) -> float:
        folder = self.plan.out / TRIALS / f"{trial.number:04d}"
        write_whole(folder.with_suffix(".toml"), to_toml(settings))
        device = chosen_device(self.plan.device)
        run = self._taken_over(trial, folder, settings) or start(self.graph, settings, folder, device, self.plan.graph)
        judge = _Judge(trial, self.listener, settings.schedule.epochs)
        try:
            run = train(run, device, judge, self.stopper)
        except (Interrupted, KeyboardInterrupt):
            raise  # the checkpoint stays, for whoever tries again
        except BaseException:
            self._keep_metrics(folder)
            raise
        reads = run.reads("test")
        if reads:
            what = f"the test split was read {reads} times by a trial."
            raise DataError(what, where=str(folder), advice="Please report it.")
        best = run.manifest["training"].get("best")
        self._keep_metrics(folder)
        if best is None or math.isnan(best["value"]):
            what = f"the model answers no question that gives {self.plan.metric}."
            raise UsageError(what, where="--metric", advice="Choose a metric of what it answers: see hynt models.")
        trial.set_user_attr("epoch", best["epoch"])
        return float(best["value"])

    def _taken_over(self, trial: Trial, folder: Path, settings: RunSettings) -> RunFolder | None:
        """The run of a lost worker, where it lies here and is of the same settings. Moving it is what takes it."""
        before = history(self._stored(trial))
        if not before:
            return None
        left = folder.with_name(f"{before[-1]:04d}")
        try:
            left.rename(folder)
            run = RunFolder.open(folder)
            if run.settings() == settings:
                left.with_suffix(".toml").unlink(missing_ok=True)
                return run
        except (OSError, HyntError):
            pass  # nothing to go on with: the trial begins anew
        shutil.rmtree(folder, ignore_errors=True)
        return None

    def _stored(self, trial: Trial) -> FrozenTrial:
        return next(found for found in self.trials_so_far() if found.number == trial.number)

    def _keep_metrics(self, folder: Path) -> None:
        if (folder / RECORD).exists():
            (folder / RECORD).replace(folder.with_suffix(".jsonl"))
        shutil.rmtree(folder, ignore_errors=True)
