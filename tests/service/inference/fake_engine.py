"""An engine without a model: as slow, dead or forgetful as a test wants it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hynt.service.inference.answering import EngineDown, EngineState, Reply


class FakeEngine:
    """Answers each job with its own content."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.state = EngineState(ready=True, reason="")
        self.seconds = seconds
        self.batches: list[list[Mapping[str, Any]]] = []
        self.dead = False
        self.size = 0  # bytes of padding in each answer

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        self.state.ready = False

    async def exchange(self, kind: str, jobs: Sequence[Mapping[str, Any]]) -> list[Reply]:
        self.batches.append(list(jobs))
        await asyncio.sleep(self.seconds)
        if self.dead:
            raise EngineDown("the inference process ended")
        return [Reply(json.dumps({"asked": job, "padding": "x" * self.size}).encode()) for job in jobs]
