"""Where training stands: what a checkpoint remembers besides tensors, and what a person is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hynt.config import from_mapping, to_mapping
from hynt.errors import DataError, HyntError, UsageError
from hynt.progress import SILENT, Progress


@dataclass(frozen=True)
class BestValidation:
    """The best validation so far."""

    phase: int
    epoch: int
    value: float


@dataclass(frozen=True)
class TrainingState:
    """The next step to run, and what must be carried over to it."""

    phase: int = 0
    epoch: int = 0  # epochs of this phase that are done
    step: int = 0  # steps of the epoch at hand that are done
    sums: tuple[float, ...] = ()  # of the epoch at hand: each part of the loss
    counts: tuple[float, ...] = ()
    best: BestValidation | None = None
    best_of_tasks: dict[str, BestValidation] = field(default_factory=dict)  # where each task keeps weights of its own
    misses: int = 0  # validations since the best one, of any task
    seconds: float = 0.0  # spent training, before and after interruptions
    metrics_bytes: int = 0  # how much of metrics.jsonl belongs to this state
    finished: bool = False

    def kept(self) -> list[BestValidation]:
        """The validations whose weights a run answers with."""
        return [*([] if self.best is None else [self.best]), *self.best_of_tasks.values()]

    def to_mapping(self) -> dict[str, Any]:
        """For JSON. Python writes floats in JSON so that they read back bit for bit."""
        return to_mapping(self)

    @classmethod
    def from_mapping(cls, mapping: Any, where: str) -> TrainingState:
        """What `to_mapping` wrote; anything else is a `DataError`."""
        try:
            return from_mapping(cls, mapping)
        except (UsageError, TypeError, AttributeError) as problem:
            raise DataError(f"the progress is damaged: {problem}.", where=where) from None


@dataclass(frozen=True)
class EpochRecord:
    """One epoch that is done, for the bar and for metrics.jsonl."""

    phase: str
    epoch: int  # from 1
    epochs: int  # of the phase
    rate: float
    losses: dict[str, float]  # mean of each part of the loss over its questions
    counts: dict[str, int]
    items: int  # facts or questions trained on within `seconds`: fewer than the epoch has where only a part was run
    seconds: float  # since the epoch before it was done, validations left out
    time_left: float | None = None  # seconds until `schedule.seconds` are up; None: the clock does not end this phase
    until: int | None = None  # the epoch of the next validation, where it may end training; None: it does not

    @property
    def loss_text(self) -> str:
        """`loss link 5.1, relation 1.2, number 0.03`."""
        return "loss " + ", ".join(f"{name} {value:.4g}" for name, value in self.losses.items())

    def to_mapping(self) -> dict[str, Any]:
        """The record as one line of metrics.jsonl."""
        return {
            "phase": self.phase,
            "epoch": self.epoch,
            "learning_rate": self.rate,
            "loss": self.losses,
            "questions": self.counts,
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True)
class ValidationRecord:
    """One validation, for the bar and for metrics.jsonl."""

    phase: str
    epoch: int
    metric: str
    value: float
    is_best: bool
    seconds: float  # it took
    trained_seconds: float  # training time so far, validations left out
    results: dict[str, Any] = field(default_factory=dict)

    def to_mapping(self) -> dict[str, Any]:
        """The record as one line of metrics.jsonl."""
        return {
            "phase": self.phase,
            "epoch": self.epoch,
            "validation": self.results,
            "metric": self.metric,
            "value": self.value,
            "best": self.is_best,
            "seconds": round(self.seconds, 6),
            "trained_seconds": round(self.trained_seconds, 6),
        }


class Watcher:
    """Who is told how training goes; this one keeps quiet."""

    def epoch_done(self, record: EpochRecord) -> None: ...

    def validated(self, record: ValidationRecord) -> None: ...

    def note(self, text: str) -> None:
        """Something that a person should know, once."""


class TrainingProgress(Watcher):
    """Says in words what it hears of epochs and validations."""

    def __init__(self, progress: Progress = SILENT) -> None:
        self.progress = progress
        self.seconds, self.epochs = 0.0, 0

    def epoch_done(self, record: EpochRecord) -> None:
        """Losses, speed and the time that is left."""
        self.seconds += record.seconds
        self.epochs += 1
        last = record.until or record.epochs
        left, share = (last - record.epoch) * self.seconds / self.epochs, record.epoch / last
        total: int | None = last
        if record.time_left is not None and record.time_left < left:  # the clock ends it before the epochs do
            left, total = max(record.time_left, 0.0), None
            share = self.seconds / (self.seconds + left) if self.seconds else share
        is_last = record.epoch == last or (record.time_left is not None and record.time_left <= 0)
        speed = record.items / record.seconds if record.seconds > 0 else 0.0
        self.progress.update(
            "epoch",
            record.epoch,
            total,
            share=share,
            note=f"{record.loss_text}, {speed:,.0f} facts/s{'; on while validation improves' if record.until else ''}",
            seconds_left=left,
            always=self.epochs == 1 or is_last,
        )

    def validated(self, record: ValidationRecord) -> None:
        """The metric, and whether it is the best so far."""
        best = " (best so far)" if record.is_best else ""
        words = f"validation {record.metric} {record.value:.4f}{best}, {record.seconds:.1f} s"
        self.progress.say(f"epoch {record.epoch}: {words}")

    def note(self, text: str) -> None:
        self.progress.note(text)


class NotFinite(HyntError):
    """The loss, or a gradient, stopped being a finite number."""


class Interrupted(HyntError):
    """Someone asked training to stop; it was saved."""

    exit_code = 130
