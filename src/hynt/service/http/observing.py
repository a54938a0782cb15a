"""Counts and logs every request: method, path pattern, status, time. What was asked stays out of the log."""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hynt.service.front import Front
from hynt.service.http.guards import HEADERS
from hynt.service.http.problems import Problem, code_place
from hynt.service.http.refusals import tell

LOG = logging.getLogger("hynt.service")


class Observing:
    """ASGI middleware, the outermost: it also turns what nobody foresaw into a problem."""

    def __init__(self, app: ASGIApp, front: Front) -> None:
        self.app, self.front, self.log_questions = app, front, front.settings.log_questions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"]
        if method == "HEAD":  # answered like GET; the connection leaves the body out
            scope = {**scope, "method": "GET"}
        began, status = time.perf_counter(), 0
        asked = bytearray()

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self.front.draining:  # so that a client with more to ask opens a connection elsewhere
                    message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        async def receive_seen() -> Message:
            message = await receive()
            if self.log_questions:
                asked.extend(message.get("body", b""))
            return message

        try:
            await self.app(scope, receive_seen, send_seen)
        except Exception as error:
            LOG.error("%s %s met a bug in hynt: %s", method, _pattern(scope), code_place(error))
            if status:
                raise
            bug = Problem(500, "this is a bug in hynt; its log says more.")
            await tell(bug, scope, send_seen, close=True, more=HEADERS)
        finally:
            seconds = time.perf_counter() - began
            path = _pattern(scope)
            self.front.metrics.requests.add(path, str(status or 499))
            self.front.metrics.seconds.observe(seconds)
            question = f" {bytes(asked[:2000])!r} ?{scope['query_string']!r}" if self.log_questions else ""
            LOG.info("%s %s %d %.1f ms%s", method[:10], path, status or 499, 1000 * seconds, question)


def _pattern(scope: Scope) -> str:
    """The path as the application wrote it, so that neither labels nor logs hold what a client made up."""
    route = scope.get("route")
    path: str = getattr(route, "path", "").replace(":path}", "}")
    return path or ("/static" if scope["path"].startswith("/static/") else "other")
