"""The inference process and the messages to it: one that hangs is replaced, and nothing it says can be mistaken."""

from __future__ import annotations

import asyncio
import io
import os
import signal

import pytest

from hynt.service.inference.answering import EngineDown
from hynt.service.inference.process import Frame, InferenceProcess, read_frame, receive_frame
from tests.service.loop_apart import run_apart

QUESTION = {"head": "p0", "relation": "born in", "tail": "?"}


async def ready(process: InferenceProcess) -> None:
    async with asyncio.timeout(150):
        while not process.state.ready:
            await asyncio.sleep(0.02)


def test_a_process_that_hangs_is_replaced(run):
    async def work():
        process = InferenceProcess(run, longest=1.0)
        with pytest.raises(EngineDown, match="the model is being loaded"):
            await process.exchange("predict", [QUESTION])
        await process.start()
        try:
            await ready(process)
            (reply,) = await process.exchange("predict", [QUESTION])
            first = process.pid
            os.kill(first, signal.SIGSTOP)
            with pytest.raises(EngineDown, match="the model took too long and is being loaded again"):
                await process.exchange("predict", [QUESTION])
            await ready(process)
            assert process.pid != first
            assert process.state.restarts == 1
            assert (await process.exchange("predict", [QUESTION])) == [reply]
        finally:
            await process.stop()
        assert process.state.reason == "the service is stopping"

    run_apart(work())


def test_frames_survive_the_way():
    sent = [Frame({"id": 1, "text": "Curaçao"}, b"\x00\xff"), Frame({}), Frame({"number": 0.1 + 0.2}, b"x" * 70_000)]
    stream = io.BytesIO(b"".join(frame.encoded() for frame in sent))
    assert [read_frame(stream) for _ in sent] == sent
    assert read_frame(stream) is None

    async def received(content):
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        found = []
        while (frame := await receive_frame(reader)) is not None:
            found.append(frame)
        return found

    content = stream.getvalue()
    assert run_apart(received(content)) == sent
    assert run_apart(received(content[:-1])) == sent[:2]
    assert read_frame(io.BytesIO(content[:10])) is None
    assert run_apart(received(b"a library printed this between messages")) == []
