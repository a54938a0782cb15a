"""Asking in several processes: each takes every so many-th tile of questions, and what they found is added up.

Tiles keep their shapes, so a question gets the same bits whoever asks it, and ranks are those of one process.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Team(Protocol):
    """The processes that evaluate together; training's team is one."""

    @property
    def rank(self) -> int: ...

    @property
    def world(self) -> int: ...

    def gathered(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, the same for all of them."""
        ...


class OneProcess:
    """Nobody to share with."""

    rank, world = 0, 1

    def gathered(self, tensor: Tensor) -> Tensor:
        """What this process has."""
        return tensor
