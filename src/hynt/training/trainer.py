"""The training loop, one for all models: phases of epochs of steps, validated, saved and stoppable.

What is random in a step follows from (seed, phase, epoch, step), and so does what it trains on. So a run that goes on
from a checkpoint does what the uninterrupted one would have done. The loop never waits for the device inside an
epoch; losses are read back when they are ready, at the latest before a validation or a checkpoint.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from hynt.batches.epoch_plan import derived_seed
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import UsageError
from hynt.evaluation.metrics import LOWER_IS_BETTER
from hynt.interruption import Stopper
from hynt.objectives.streams import EpochItems, ItemStream, Phase
from hynt.runs.checkpoint import BestValidation, EpochRecord, Interrupted, NotFinite, TrainingState, ValidationRecord
from hynt.runs.settings import TrainingSettings, furthest_above
from hynt.training.optimisation import MOVING, Optimisation, learning_rate, training_seconds
from hynt.training.step import StepRunner


class _Closed(NamedTuple):
    epoch: int
    rate: float
    share: float  # of the epoch's steps, run since the clock was last read
    time_left: float | None
    until: int | None
    tally: Tensor  # (2, parts) on the host, once `done`
    done: torch.cuda.Event | None
    closed_at: float


class EpochLedger:
    """Closes epochs: takes down the tally of losses, clears it for the next epoch, and hands it out once it is here."""

    def __init__(self, phase: Phase, tally: Tensor, clock: Callable[[], float]) -> None:
        self._phase, self._tally, self._clock = phase, tally, clock
        self._waiting: deque[_Closed] = deque()
        self._last = clock()

    def close(
        self, epoch: int, rate: float, share: float = 1.0, time_left: float | None = None, until: int | None = None
    ) -> None:
        """Ends an epoch, counted from 1. `share`: how much of it was run here and now, since it may have been cut short
        by the clock, or begun before a pause; `time_left`, `until`: see `EpochRecord`.
        """
        done: torch.cuda.Event | None = None
        if self._tally.is_cuda:
            here = torch.empty(self._tally.shape, dtype=self._tally.dtype, pin_memory=True)
            here.copy_(self._tally, non_blocking=True)
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record()
        else:
            here = self._tally.clone()
        self._tally.zero_()
        self._waiting.append(_Closed(epoch, rate, share, time_left, until, here, done, self._clock()))

    def pass_over_time(self) -> None:
        """Says that what has passed since the last epoch was not training. Every epoch must have been handed out."""
        self._last = self._clock()

    def ready(self, *, wait: bool) -> Iterator[EpochRecord]:
        """Epochs whose losses have arrived, in order; with `wait`, all of them."""
        while self._waiting:
            closed = self._waiting[0]
            if closed.done is not None and not closed.done.query():  # type: ignore[no-untyped-call]
                if not wait:
                    return
                closed.done.synchronize()
            self._waiting.popleft()
            yield self._record(closed)

    def _record(self, closed: _Closed) -> EpochRecord:
        # On a GPU closing an epoch only queues it; it is done when its losses are here.
        now = closed.closed_at if closed.done is None else self._clock()
        seconds, self._last = now - self._last, now
        stream = self._phase.stream
        sums, counts = closed.tally.tolist()
        asked = [(name, total, count) for name, total, count in zip(stream.parts, sums, counts, strict=True) if count]
        return EpochRecord(
            self._phase.name,
            closed.epoch,
            self._phase.epochs,
            closed.rate,
            {name: total / count for name, total, count in asked},
            {name: round(count) for name, _, count in asked},
            round(closed.share * stream.item_count),
            seconds,
            closed.time_left,
            closed.until,
        )


# The items of each epoch, made while the one before still trains.
#
# On a GPU the plan of the next epoch is made on a second stream, so the steps of this one need not wait for it. Plans
# are kept until their epoch is over on the device: the copies out of them may still be queued when Python is done with
# them.


class EpochSource:
    """Makes epochs in order, from `first` up to `last` (not included)."""

    def __init__(self, stream: ItemStream, seed: int, last: int, device: torch.device) -> None:
        self._stream, self._seed, self._last = stream, seed, last
        self._device = device
        self._side: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._ready: dict[int, EpochItems] = {}
        self._ends: dict[int, torch.cuda.Event] = {}
        if self._side is not None:
            self._side.wait_stream(torch.cuda.current_stream(device))

    def epoch(self, epoch: int) -> EpochItems:
        """The items of an epoch, ready for the current stream."""
        if epoch not in self._ready:
            self._make(epoch)
        if self._side is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._side)
        return self._ready[epoch]

    def queued(self, epoch: int) -> None:
        """Says that all steps of an epoch are queued: the next one is made now, while they run."""
        if self._side is None:
            del self._ready[epoch]
            return
        end = torch.cuda.Event()  # type: ignore[no-untyped-call]
        end.record(torch.cuda.current_stream(self._device))
        self._ends[epoch] = end
        for done in [other for other in self._ends if other < epoch]:
            self._ends.pop(done).synchronize()  # the host stays at most one epoch ahead of the device
            self._ready.pop(done, None)
        if epoch + 1 < self._last:
            self._make(epoch + 1)

    def _make(self, epoch: int) -> None:
        on: AbstractContextManager[object] = nullcontext() if self._side is None else torch.cuda.stream(self._side)
        with on:
            self._ready[epoch] = self._stream.epoch(self._seed, epoch)


class Keeper(Protocol):
    """Who keeps what training makes: a run folder, or a test."""

    def epoch_done(self, record: EpochRecord) -> None:
        """An epoch's losses are known."""

    def validated(self, record: ValidationRecord) -> None:
        """The validation split was tried."""

    def save(self, progress: TrainingState, optimisation: Optimisation, *, best: bool) -> None:
        """Keep weights, optimiser state and progress; `best` says that these weights are the best so far."""

    def take_best(self, progress: TrainingState) -> None:
        """Give the model the best weights so far: a later phase builds on them."""


LATER = 0.25
"""Of the time that training may last: what the phases after the first may take besides."""


@dataclass
class Trainer:
    """Trains a model through its phases."""

    phases: Sequence[Phase]
    settings: TrainingSettings
    runner_for: Callable[[Phase, Optimisation], StepRunner]
    validate: Callable[[], Mapping[str, Any]] | None  # metrics by task and scope; None: there is nothing to validate on
    keeper: Keeper
    device: torch.device
    stopper: Stopper
    clock: Callable[[], float] = time.monotonic
    workers: SingleProcess = field(default_factory=SingleProcess)  # who trains together with this process
    prepare: Callable[[Optimisation], None] = lambda optimisation: None  # what an update moves besides parameters

    def train(self, progress: TrainingState, restore: Callable[[Optimisation], None] | None = None) -> TrainingState:
        """Goes on from `progress` to the end; `restore` fills the optimiser state of the phase at hand."""
        while progress.phase < len(self.phases) and not progress.finished:
            phase = self.phases[progress.phase]
            if progress.phase and not progress.epoch and not progress.step:
                self.keeper.take_best(progress)
            optimisation = Optimisation(
                phase.parameters, self.settings.optimiser, self.device, phase.second, matrices=phase.matrices
            )
            optimisation.exchange = self.workers.exchange
            self.prepare(optimisation)
            if restore is not None:
                with optimisation.answering():
                    restore(optimisation)
                restore = None
            progress = _PhaseLoop(self, phase, optimisation, progress).run()
        return replace(progress, finished=True)


class _PhaseLoop:
    """One phase. Holds what changes while it runs."""

    def __init__(self, trainer: Trainer, phase: Phase, optimisation: Optimisation, progress: TrainingState) -> None:
        self.trainer, self.phase, self.progress = trainer, phase, progress
        self.settings, self.keeper = trainer.settings, trainer.keeper
        self.runner = trainer.runner_for(phase, optimisation)
        self.optimisation = optimisation
        self.ledger = EpochLedger(phase, self.runner.tally, trainer.clock)
        self.saved_at = self.counted_from = trainer.clock()
        self.validated_at = progress.seconds  # of training
        if progress.sums and trainer.workers.rank == 0:  # they are those of all processes
            values = torch.tensor([progress.sums, progress.counts], dtype=torch.float64)
            self.runner.tally.copy_(values)

    def run(self) -> TrainingState:
        source = EpochSource(self.phase.stream, self.settings.seed, self.phase.epochs, self.trainer.device)
        over = self._gave_up() or self._is_out_of_time()  # a run that is resumed after its last validation
        while self.progress.epoch < self.phase.epochs and not over:
            self._epoch(source)
            over = self._settle()
        following = replace(self.progress, phase=self.progress.phase + 1, epoch=0, step=0, misses=0)
        following = replace(following, finished=following.phase == len(self.trainer.phases))
        self.progress = following
        return following

    def _epoch(self, source: EpochSource) -> None:
        phase_index, epoch, workers = self.progress.phase, self.progress.epoch, self.trainer.workers
        own = (workers.rank,) if workers.rank else ()  # other processes drop out other things
        highest = self.settings.optimiser.learning_rate
        rate = self._scheduled_rate(epoch) if self.phase.rate is None else self.phase.rate
        self.optimisation.set_rate(rate)
        items = source.epoch(epoch)
        moves = self.settings.schedule.shape in MOVING and self.phase.rate is None  # from step to step
        first = self.progress.step
        for index in range(first, len(items)):
            if moves:
                share = max(index / len(items), self._share_by_time() - epoch)
                self.optimisation.set_rate(learning_rate(self.settings.schedule, highest, epoch, share))
            seed = derived_seed(self.settings.seed, phase_index, epoch, index, "step", *own)
            self.runner.run(items.items(index), seed)
            workers.sync()
            if self.runner.has_failed():
                raise self._not_finite(epoch, index)
            self.progress = replace(self.progress, step=index + 1)
            if self.trainer.stopper.asked:
                self._stop()
            if self._is_out_of_time():
                break  # the epoch ends here
            if index + 1 < len(items) and self._save_is_due():
                self._save()
        share = (self.progress.step - first) / len(items) if len(items) else 1.0
        self.progress = replace(self.progress, epoch=epoch + 1, step=0, sums=(), counts=())
        self.runner.tally.copy_(workers.gathered(self.runner.tally))
        self.ledger.close(epoch + 1, rate, share, self._time_left(), self._next_check(epoch + 1))
        source.queued(epoch)
        self._report(wait=False)

    def _scheduled_rate(self, epoch: int) -> float:
        """The rate at an epoch's start. Where seconds are counted, a rate that falls to an end reaches it with them;
        where validation ends it, they only cut it off: its checks stand at the ends of falls.
        """
        schedule, by_time = self.settings.schedule, self._share_by_time()
        if schedule.shape == "cosine" and self.settings.validation.patience is None:
            epoch = min(max(epoch, int(by_time)), max(epoch, self.phase.epochs - 1))
        ahead = max(0.0, by_time - epoch) if schedule.shape in MOVING else 0.0
        return learning_rate(schedule, self.settings.optimiser.learning_rate, epoch, ahead)

    def _settle(self) -> bool:
        """Validates and saves after an epoch, where that is due, and says whether training stops here.

        The clock is asked once: time that runs out while an epoch is saved leaves room for one more step, so that what
        was trained last is always validated.
        """
        epoch = self.progress.epoch
        self.trainer.workers.sync(now=True)
        out_of_time = self._is_out_of_time()
        over = epoch == self.phase.epochs or out_of_time
        if self.trainer.validate is not None and (over or epoch in self._validation_epochs() or self._validation_due()):
            self._validate()
        elif self._keeps_for_tasks() or over or self._save_is_due():
            self._save()
        return out_of_time or self._gave_up()

    def _gave_up(self) -> bool:
        patience = self.settings.validation.patience
        return patience is not None and self.progress.misses >= patience

    @property
    def _limit(self) -> float | None:
        """Seconds of training that there are for the first phase."""
        return training_seconds(self.settings.schedule, self.progress.reserved)

    def _is_out_of_time(self) -> bool:
        """What follows the first phase builds on it, and has time of its own. One step there always is."""
        left, begun = self._time_left(), self.progress.epoch or self.progress.step
        return left is not None and bool(begun) and left <= 0

    def _time_left(self) -> float | None:
        limit = self._limit
        return None if limit is None else (1 + LATER * bool(self.progress.phase)) * limit - self._trained_seconds()

    def _validation_due(self) -> bool:
        after, limit, planned = self.settings.validation.seconds, self._limit, self.settings.schedule.seconds
        if after is None or self.progress.phase:
            return False
        share = 1.0 if limit is None or planned is None else limit / planned  # as often in less time
        return self._trained_seconds() - self.validated_at >= share * after

    def _share_by_time(self) -> float:
        """How many epochs a schedule that lasts all the seconds there are would have behind it by now."""
        limit = self._limit
        return 0.0 if limit is None else self.phase.epochs * self._trained_seconds() / limit

    def _trained_seconds(self) -> float:
        return self.progress.seconds + self.trainer.clock() - self.counted_from

    def _next_check(self, epoch: int) -> int | None:
        """The epoch of the validation that may end training; None where none does."""
        if self.settings.validation.patience is None or self.trainer.validate is None:
            return None
        return next((one for one in self._validation_epochs() if one >= epoch), None)

    def _validation_epochs(self) -> tuple[int, ...]:
        if self.progress.phase == 0:
            return self.settings.validation_epochs()
        return (self.phase.epochs,)

    def _validate(self) -> None:
        assert self.trainer.validate is not None
        self._report(wait=True)
        self._count_time()
        started = self.trainer.clock()
        with self.optimisation.answering():
            results = self.trainer.validate()
        self.trainer.workers.sync(now=True)
        metric = self.settings.validation.metric
        value, progress = chosen_metric(results, metric), self.progress
        is_best = self._is_best(progress.best, metric, value)
        best = BestValidation(progress.phase, progress.epoch, value) if is_best else progress.best
        of_tasks = self._better_tasks(results)
        better = is_best or bool(of_tasks)
        self.progress = replace(
            progress,
            best=best,
            best_of_tasks=progress.best_of_tasks | of_tasks,
            misses=0 if better else progress.misses + 1,
        )
        took = self.trainer.clock() - started
        self.keeper.validated(
            ValidationRecord(
                self.phase.name, progress.epoch, metric, value, is_best, took, progress.seconds, dict(results)
            )
        )
        self.counted_from, self.validated_at = self.trainer.clock(), progress.seconds
        self.ledger.pass_over_time()
        self._save(best=better)

    def _is_best(self, before: BestValidation | None, metric: str, value: float) -> bool:
        """A later phase began with the best weights: what it added is kept, even where the metric does not see it."""
        is_first = before is None or before.phase < self.progress.phase
        if math.isnan(value) or before is None or before.value is None or is_first:
            return not math.isnan(value)
        return _is_better(metric, value, before.value)

    def _better_tasks(self, results: Mapping[str, Any]) -> dict[str, BestValidation]:
        """The tasks that were answered better than before, where each keeps weights of its own."""
        found: dict[str, BestValidation] = {}
        for task, metric in self.settings.validation.metrics_of_tasks().items():
            value = chosen_metric(results, metric) if task in results else math.nan
            if self._is_best(self.progress.best_of_tasks.get(task), metric, value):
                found[task] = BestValidation(self.progress.phase, self.progress.epoch, value)
        return found

    def _keeps_for_tasks(self) -> bool:
        """Where nothing validates: whether this epoch's weights are to answer some task."""
        progress = self.progress
        tasks = [] if progress.phase else self.settings.validation.chosen.of(progress.epoch)
        chosen = {task: BestValidation(progress.phase, progress.epoch) for task in tasks}
        self.progress = replace(progress, best_of_tasks=progress.best_of_tasks | chosen)
        return bool(chosen)

    def _report(self, *, wait: bool) -> None:
        for record in self.ledger.ready(wait=wait):
            if any(math.isnan(loss) or math.isinf(loss) for loss in record.losses.values()):
                raise self._not_finite(record.epoch - 1, None)
            self.keeper.epoch_done(record)

    def _save_is_due(self) -> bool:
        return self.trainer.clock() - self.saved_at >= 60 * self.settings.saving.minutes

    def _save(self, *, best: bool = False) -> None:
        self._report(wait=True)
        if bool(self.optimisation.failed):
            raise self._not_finite(self.progress.epoch, self.progress.step)
        self._count_time()
        if self.progress.step:
            sums, counts = self.trainer.workers.gathered(self.runner.tally).tolist()
            self.progress = replace(self.progress, sums=tuple(sums), counts=tuple(counts))
        with self.optimisation.answering():
            self.keeper.save(self.progress, self.optimisation, best=best)
        self.saved_at = self.trainer.clock()

    def _stop(self) -> None:
        self._save()
        where = f"epoch {self.progress.epoch + 1}, step {self.progress.step}"
        answers = "" if self.progress.best is None else " It answers with its best weights so far."
        raise Interrupted(f"training was stopped in {where}, and saved.{answers}", advice="Go on with --resume.")

    def _count_time(self) -> None:
        now = self.trainer.clock()
        self.progress = replace(self.progress, seconds=self.progress.seconds + now - self.counted_from)
        self.counted_from = now

    def _not_finite(self, epoch: int, index: int | None) -> NotFinite:
        place = f"epoch {epoch + 1}" + ("" if index is None else f", near step {index + 1}")
        factor = furthest_above(self.settings, float, ("losses.", "model.", "optimiser.", "schedule.lowest_rate"))
        lower = "a lower optimiser.learning_rate"
        if factor is not None:
            lower = f"a lower {factor[0]} than {factor[1]:g}, of which {factor[2]:g} is usual"
        return NotFinite(
            f"the loss or its gradient is no longer a finite number in {place}; the last good checkpoint is kept.",
            advice=f"Start again with {lower}, or with --set precision=fp32.",
        )


def chosen_metric(results: Mapping[str, Any], path: str) -> float:
    """One number by its path, `link.all.mrr`; NaN where no question gives it."""
    found: Any = results
    for part in path.split("."):
        if not isinstance(found, Mapping) or part not in found:
            known = ", ".join(found) if isinstance(found, Mapping) else "nothing"
            raise UsageError(
                f"validation has no metric {path!r}.",
                where="validation.metric",
                advice=f"At {part!r} there is {known}.",
            )
        found = found[part]
    return float("nan") if found is None else float(found)


def _is_better(metric: str, value: float, than: float) -> bool:
    return value < than if metric.rpartition(".")[2] in LOWER_IS_BETTER else value > than
