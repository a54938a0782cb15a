"""The items of each epoch, made while the one before still trains.

On a GPU the plan of the next epoch is made on a second stream, so the steps of this one need not wait for it. Plans
are kept until their epoch is over on the device: the copies out of them may still be queued when Python is done with
them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from hynt.objectives.streams import EpochItems, ItemStream


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
