"""The losses of epochs, read back from the device without waiting for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.objectives.streams import EpochItems, ItemStream, Phase
from hynt.runs.checkpoint import EpochRecord


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
