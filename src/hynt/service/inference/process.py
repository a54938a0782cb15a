"""The inference process seen from the HTTP process: started, spoken to, replaced when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from hynt.errors import UsageError
from hynt.service.http.problems import Fault
from hynt.service.inference.answering import EngineDown, EngineState, Reply

LOG = logging.getLogger("hynt.service")

FOLLOW = "follow"
"""The kind of message that has no reply: the run's graph has a new version."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
_STEADY = 60.0
"""A process that lived for this many seconds died of something new: the next one starts without a pause."""


class InferenceProcess:
    """An `Engine` in a process of its own. One message is under way at a time: the queue sees to that."""

    def __init__(self, run: Path, device: str = "cpu", longest: float = 60.0, version: int | None = None) -> None:
        """`longest`: seconds that a reply may take. `version` of the run's graph, where it is not the newest."""
        self.state = EngineState()
        self.failure: UsageError | None = None  # why the run cannot be loaded at all
        self.failed = asyncio.Event()
        self._command = [sys.executable, "-m", "hynt.service.inference", str(run), device]
        self._command += [] if version is None else [str(version)]
        self._longest = longest
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._replies: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._number = 0

    @property
    def pid(self) -> int | None:
        """Of the process that is there now."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        self._keeper = asyncio.create_task(self._keep())

    async def exchange(self, kind: str, jobs: Sequence[Mapping[str, Any]]) -> list[Reply]:
        process = self._process
        if not self.state.ready or process is None or process.stdin is None:
            raise EngineDown(self.state.reason)
        self._number += 1
        try:
            process.stdin.write(Frame({"id": self._number, "kind": kind, "jobs": list(jobs)}).encoded())
            await process.stdin.drain()
            frame = await asyncio.wait_for(self._reply_to(self._number), self._longest)
        except TimeoutError:
            LOG.error("inference gave no reply within %g s and is replaced", self._longest)
            self.state.ready, self.state.reason = False, "the model took too long and is being loaded again"
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise EngineDown(self.state.reason) from None
        except OSError:
            raise EngineDown("the inference process ended") from None
        return list(_replies(frame))

    async def follow(self) -> None:
        process = self._process
        if self.state.ready and process is not None and process.stdin is not None:  # one that starts reads the newest
            with contextlib.suppress(OSError):
                process.stdin.write(Frame({"kind": FOLLOW}).encoded())
                await process.stdin.drain()

    async def stop(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        self.state.ready, self.state.reason = False, "the service is stopping"
        process = self._process
        if process is not None and process.returncode is None:
            process.kill()  # it holds nothing that could be lost
            await process.wait()

    # ------------------------------------------------------------------ keeping one alive

    async def _keep(self) -> None:
        pause = 0.0
        while True:
            began = asyncio.get_running_loop().time()
            await self._run_once()
            if self.failure is not None and not self.state.described:  # it never could be loaded
                self.failed.set()
                return
            self.state.restarts += 1
            lived = asyncio.get_running_loop().time() - began
            pause = 0.0 if lived > _STEADY else min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, 2 * pause))
            LOG.error("inference process ended; restart %d in %g s", self.state.restarts, pause)
            await asyncio.sleep(pause)

    async def _run_once(self) -> None:
        """Starts a process and passes its messages on until it ends."""
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**20,
            # Threads that wait without spinning leave the other core to the HTTP process.
            env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ},
        )
        assert process.stdout is not None
        try:
            while (frame := await receive_frame(process.stdout)) is not None:
                self._hear(frame)
        finally:
            self.state.ready = False
            self.state.reason = "the inference process ended and is being started again"
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await process.wait()
            self._replies.put_nowait(None)

    def _hear(self, frame: Frame) -> None:
        header = frame.header
        if "note" in header:
            self.state.reason = header["note"]
            LOG.info("inference: %s", header["note"])
        elif "version" in header:
            LOG.info("inference counts version %d of the graph", header["version"])
        elif "failed" in header:
            failed = header["failed"]
            self.failure = UsageError(failed["what"], where=failed["where"], advice=failed["advice"])
            LOG.error("inference: %s", self.failure)
        elif "ready" in header:
            while not self._replies.empty():
                self._replies.get_nowait()
            self.state.described, self.state.follows = header["ready"], header["follows"]
            self.state.examples = [(row, position) for row, position in header["examples"]]
            self.state.ready, self.state.reason = True, ""
            LOG.info("inference process %s is ready", self.pid)
        else:
            self._replies.put_nowait(frame)

    async def _reply_to(self, number: int) -> Frame:
        while True:
            frame = await self._replies.get()
            if frame is None:
                raise EngineDown("the inference process ended")
            if frame.header["id"] == number:
                return frame


def _replies(frame: Frame) -> Sequence[Reply]:
    found, at = [], 0
    for part in frame.header["parts"]:
        faults = tuple(Fault.from_dict(fault) for fault in part["faults"])
        body = frame.body[at : at + part["bytes"]]
        found.append(Reply(body, faults, part["broken"], part["bug"], part["version"]))
        at += part["bytes"]
    return found


# Messages between the HTTP process and the inference process: two lengths, a JSON header, raw bytes.
#
# Plain data over a pipe, so that neither side can make the other run anything; answers travel as the bytes that the
# client will get, so that the HTTP process need not read them.

_LENGTHS = struct.Struct(">II")
_LONGEST = 1 << 30


class Frame(NamedTuple):
    """One message between the two processes: a JSON header, and bytes that may follow."""

    header: dict[str, Any]
    body: bytes = b""

    def encoded(self) -> bytes:
        header = json.dumps(self.header, ensure_ascii=False, allow_nan=False).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header + self.body


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next message; None where the other side has closed the pipe."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header, body = _LENGTHS.unpack(lengths)
    content = stream.read(header + body)
    return _frame(content, header) if len(content) == header + body else None


async def receive_frame(stream: asyncio.StreamReader) -> Frame | None:
    """The same, without waiting on the thread."""
    try:
        header, body = _LENGTHS.unpack(await stream.readexactly(_LENGTHS.size))
        if header + body > _LONGEST:
            return None  # something else wrote to the pipe: treated as an end, and the process is replaced
        return _frame(await stream.readexactly(header + body), header)
    except asyncio.IncompleteReadError:
        return None


def _frame(content: bytes, header: int) -> Frame:
    return Frame(json.loads(content[:header]), content[header:])
