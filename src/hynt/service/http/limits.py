"""Limits that hold before anything is parsed: the length of an address, the size and pace of a body.

A body is read to its end here, with its bytes counted, whether its length was announced or not. While the answer is
being made the connection is watched: a client that hangs up takes its question out of the queue.
"""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hynt.service.http.problems import Problem
from hynt.service.http.refusals import tell
from hynt.service.settings import BODY_BYTES, HEADER_BYTES, TARGET_BYTES, ServiceSettings


class Limits:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            _check_head(scope)
            body = await self._body(scope, receive)
        except Problem as problem:
            await tell(problem, scope, send, close=True)
            return
        if body is not None:
            await self._answered(scope, receive, send, body)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None where the client hung up."""
        announced = _announced(scope)
        if announced > BODY_BYTES:
            raise _too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(self.settings.body_within):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > BODY_BYTES:
                        raise _too_large()
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise Problem(408, f"the body did not arrive within {self.settings.body_within:g} s.") from None

    async def _answered(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
        given, gone = False, asyncio.Event()

        async def receive_again() -> Message:
            nonlocal given
            if given:
                await gone.wait()
                return {"type": "http.disconnect"}
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def hung_up() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        work, watch = asyncio.ensure_future(self.app(scope, receive_again, send)), asyncio.ensure_future(hung_up())
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()  # a failure goes on to whoever tells it
        finally:
            for task in (work, watch):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Exception):
                        await task


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 19 else BODY_BYTES + 1
    return 0


def _check_head(scope: Scope) -> None:
    if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > TARGET_BYTES:
        raise Problem(414, f"the address is longer than {TARGET_BYTES:,} bytes.")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
        raise Problem(431, f"the headers are longer than {HEADER_BYTES:,} bytes.")


def _too_large() -> Problem:
    return Problem(413, f"the body is larger than {BODY_BYTES:,} bytes.")
