"""The model queue: bounded, first come first served, and answered many at a time.

The model scores a whole tile of questions in about the time of one. So the first question waits a moment for others,
and whatever arrives while the model is busy goes with the next batch. Those who have just been answered often ask again
at once; the queue gives them a moment to come back, so that clients end up in one batch instead of taking turns.
Throughput grows with load; a question that is alone pays the window and no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hynt.service.http.metrics import ServiceMetrics
from hynt.service.http.problems import Fault, HttpProblem, invalid, unavailable
from hynt.service.inference.answering import EngineDown, InferenceEngine, Reply

_RELEASED = 16
"""Answers that are sent on at a time."""

_PATIENCE = 0.1
"""The part of the last batch's time that is spent at most on waiting for the next one to fill."""

TOGETHER = frozenset({"predict"})
"""The kinds of jobs that the model does many at a time."""


def cost(question: Mapping[str, Any]) -> int:
    """About how many plain questions it takes as long as, so that a few long ones do not hold up everybody else."""
    pairs = question.get("qualifiers", ())
    sides = [(question.get("relation"), question.get("tail")), *((pair["relation"], pair["value"]) for pair in pairs)]
    tried = any(relation == "?" and _may_be_number(value) for relation, value in sides)
    return max(1, (len(pairs) // 8) ** 2) * (_TRIED if tried else 1)


_TRIED = 8
"""A hidden relation beside a number is asked once for each relation that the number may belong to."""


def _may_be_number(value: Any) -> bool:
    return not isinstance(value, str) or any(letter.isdigit() for letter in value)


@dataclass(eq=False)
class _Job:
    kind: str
    content: Mapping[str, Any]
    reply: asyncio.Future[Reply]
    came: float


class QuestionQueue:
    """Jobs on their way to an engine and back."""

    def __init__(
        self,
        engine: InferenceEngine,
        *,
        limit: int,
        together: int,
        window: float,
        metrics: ServiceMetrics | None = None,
    ) -> None:
        """`together` 1 turns batching off: every question goes alone, as it came."""
        self.engine, self.limit, self.together, self.window = engine, limit, together, window
        self.metrics = metrics or ServiceMetrics()
        self._waiting: deque[_Job] = deque()
        self._under_way: Sequence[_Job] = ()
        self._arrived = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._pace = 0.01  # seconds a job, lately
        self._took = 0.0  # seconds of the last batch
        self._free_since = 0.0  # when it ended
        self._around = 0  # jobs of that batch, and those that waited when it ended

    def __len__(self) -> int:
        """Jobs that wait or are being done."""
        return len(self._waiting) + len(self._under_way)

    async def start(self) -> None:
        self._sender = asyncio.create_task(self._send())

    async def stop(self) -> None:
        """Refuses whatever is left, and ends."""
        self._refuse(self._under_way, "the service is stopping")
        self._refuse_waiting("the service is stopping")
        if self._sender is not None:
            self._sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sender

    async def ask(self, kind: str, contents: Sequence[Mapping[str, Any]], within: float) -> list[Reply]:
        """A reply to each; a `HttpProblem` where the queue is full, the engine is down or time is up."""
        if not self.engine.state.ready:
            raise unavailable(f"the model is not there: {self.engine.state.reason}.", 2)
        if len(contents) > self.limit:  # to come back later would not help
            detail = f"{len(contents)} questions are more than the {self.limit} that this service takes at once."
            raise invalid([Fault(detail, "#/questions")])
        if len(self) + len(contents) > self.limit:
            self.metrics.refused.inc()
            raise self._full(len(contents))
        loop, now = asyncio.get_running_loop(), time.perf_counter()
        jobs = [_Job(kind, content, loop.create_future(), now) for content in contents]
        self._waiting.extend(jobs)
        self._arrived.set()
        try:
            async with asyncio.timeout(within):
                return list(await asyncio.gather(*(job.reply for job in jobs)))
        except TimeoutError:
            raise unavailable(f"there was no answer within {within:g} s.", self._seconds()) from None
        finally:
            for job in jobs:  # the client is gone or time is up: those that still wait need no answer any more
                job.reply.cancel()

    def _full(self, count: int) -> HttpProblem:
        seconds = self._seconds()
        return HttpProblem(
            429,
            f"{len(self)} questions are waiting, and {count} more would pass the limit of {self.limit}.",
            headers={"Retry-After": str(seconds)},
        )

    def _seconds(self) -> int:
        """How long what waits now will take, roughly."""
        return max(1, min(60, math.ceil(len(self) * self._pace)))

    # ------------------------------------------------------------------ sending

    async def _send(self) -> None:
        while True:
            await self._arrived.wait()
            await self._gather()
            jobs = self._next()
            if not jobs:
                self._arrived.clear()
                continue
            self._under_way = jobs
            began = time.perf_counter()
            try:
                replies = await self.engine.exchange(jobs[0].kind, [job.content for job in jobs])
            except EngineDown as problem:
                self._refuse(jobs, str(problem))
                self._refuse_waiting(str(problem))
            else:
                self._free_since = time.perf_counter()
                self._took = seconds = self._free_since - began
                self._around = len(jobs) + len(self._waiting)
                self._pace += 0.1 * (seconds / len(jobs) - self._pace)
                self.metrics.batch(len(jobs), seconds)
                for number, (job, reply) in enumerate(zip(jobs, replies, strict=True), 1):
                    if not job.reply.done():
                        job.reply.set_result(reply)
                    self.metrics.waited.observe(began - job.came)
                    if number % _RELEASED == 0:  # others, /health among them, get their turn in between
                        await asyncio.sleep(0)
            finally:
                self._under_way = ()

    async def _gather(self) -> None:
        """Waits a moment for others, where that can help: at least the window, and until those are back who were here
        when the last batch ended, but for no more than a small part of what that batch took.
        """
        if self.together == 1 or not self.window or not self._waiting or self._waiting[0].kind not in TOGETHER:
            return
        start = max(self._waiting[0].came, self._free_since)
        patience = max(self.window, _PATIENCE * self._took)
        while len(self._waiting) < self.together:
            waited = time.perf_counter() - start
            if waited >= patience or (waited >= self.window and len(self._waiting) >= self._around):
                return
            await asyncio.sleep(min(self.window, patience - waited))

    def _next(self) -> list[_Job]:
        """The jobs that go together; those whose client has gone are dropped."""
        jobs: list[_Job] = []
        room = self.together
        while self._waiting:
            job = self._waiting[0]
            if jobs and (job.kind != jobs[0].kind or job.kind not in TOGETHER or room < cost(job.content)):
                break
            self._waiting.popleft()
            if not job.reply.done():
                jobs.append(job)
                room -= cost(job.content)
        return jobs

    def _refuse(self, jobs: Sequence[_Job], reason: str) -> None:
        for job in jobs:
            if not job.reply.done():
                job.reply.set_exception(unavailable(f"{reason}.", 2))

    def _refuse_waiting(self, reason: str) -> None:
        self._refuse(self._waiting, reason)
        self._waiting.clear()
