"""Whoever answers jobs: the inference process in a service, the same code in a thread where one process is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hynt.service.inference.answering import Answering, Reply

if TYPE_CHECKING:
    from hynt.asking.predictor import Predictor


@dataclass
class EngineState:
    """Whether jobs can be done, told in /ready, /metrics and the log."""

    ready: bool = False
    reason: str = "the model is being loaded"  # why not, where it is not
    restarts: int = 0
    described: dict[str, Any] = field(default_factory=dict)  # the run's model, graph, epoch, …


class EngineDown(Exception):
    """The jobs at hand will get no answer: the process died, or was stopped because it took too long."""


class Engine(Protocol):
    """Does jobs of one kind, in order."""

    state: EngineState

    async def start(self) -> None:
        """Begins to load the model; `state` says when it is there."""

    async def exchange(self, kind: str, jobs: Sequence[Mapping[str, Any]]) -> list[Reply]:
        """A reply to each job; `EngineDown` where there will be none."""

    async def stop(self) -> None:
        """Ends it, at once."""


class ThreadEngine:
    """A predictor in a thread of this process: for tests, for notebooks, and to measure what the process costs."""

    def __init__(self, predictor: Predictor) -> None:
        self.state = EngineState()
        self._answering = Answering(predictor)
        self._thread = ThreadPoolExecutor(1, "inference")

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._answering.warm_up)
        predictor = self._answering.predictor
        self.state.described = {**predictor.described(), **predictor.loaded.described()}
        self.state.ready, self.state.reason = True, ""

    async def exchange(self, kind: str, jobs: Sequence[Mapping[str, Any]]) -> list[Reply]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._answering.replies, kind, jobs)

    async def stop(self) -> None:
        self.state.ready, self.state.reason = False, "the service is stopping"
        self._thread.shutdown(wait=False, cancel_futures=True)
