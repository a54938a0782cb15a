"""One connection: its first line and headers must come in time, it must take its answer in time, and what is no HTTP
at all is refused with a problem too.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from hynt.service.http.guards import HEADERS
from hynt.service.http.problems import MEDIA_TYPE, HttpProblem, unavailable
from hynt.service.settings import HEADER_BYTES, ServiceSettings


def protocol_for(settings: ServiceSettings) -> type[H11Protocol]:
    """The class that the server makes for each connection."""

    class Connection(GuardedConnection):
        """With the settings of this service."""

    Connection.settings = settings
    return Connection


def stopping() -> HttpProblem:
    """What everybody hears who gets no answer because the service ends."""
    return unavailable("the service is stopping.", 2)


class GuardedConnection(H11Protocol):
    """uvicorn's connection with time limits for sending headers and for taking an answer."""

    settings: ServiceSettings
    _waiting: asyncio.TimerHandle | None = None  # for a request's headers
    _leaving: asyncio.TimerHandle | None = None  # for the client to take an answer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._lingering = LingeringTransport(transport, self._is_sending)
        super().connection_made(cast(asyncio.Transport, self._lingering))
        if len(self.connections) > self.settings.connections:
            self.refuse(unavailable("too many connections are open.", 1))
            return
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._waiting, self._leaving):
            if timer is not None:
                timer.cancel()
        self._lingering.finish()
        super().connection_lost(exc)

    def eof_received(self) -> None:
        if self._lingering.is_closing():
            self._lingering.finish()

    def data_received(self, data: bytes) -> None:
        if self._lingering.is_closing():
            return  # the answer is given, or refused: the rest is not wanted
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._headers_came()
        elif self._waiting is None and not self.transport.is_closing():
            self._expect_headers()  # the beginning of another request

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._leaving = self.loop.call_later(self.settings.read_within, self._left_lying)

    def shutdown(self) -> None:
        """Told by the server that it is stopping. What was asked is answered. Whoever has asked nothing hears that this
        is the end, so that a request that crosses the word on its way is refused and not lost.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        elif not self.transport.is_closing():
            self.refuse(stopping())

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        """Called while uvicorn handles h11's refusal, which knows the status that fits."""
        error = sys.exc_info()[1]
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        if status == 431:
            self.refuse(HttpProblem(431, f"the headers are longer than {HEADER_BYTES:,} bytes."))
        else:
            self.refuse(HttpProblem(400, "this is no HTTP request that can be read."))

    def refuse(self, problem: HttpProblem) -> None:
        """Answers in place of the application, and hangs up."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = problem.body()
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            (b"cache-control", b"no-store"),
            *HEADERS,
            *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
        ]
        reason = HTTPStatus(problem.status).phrase.encode()
        events: list[Any] = [
            h11.Response(status_code=problem.status, headers=headers, reason=reason),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        try:
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # an answer had begun already: there is nothing left but to hang up
        self.transport.close()

    def _is_sending(self) -> bool:
        """Whether the client may have more to say than was heard."""
        silent = self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)
        return not silent or bool(self.conn.trailing_data[0])  # the latter: a request behind the one that was answered

    # ------------------------------------------------------------------ clocks

    def _expect_headers(self) -> None:
        self._waiting = self.loop.call_later(self.settings.head_within, self._headers_late)

    def _headers_came(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _headers_late(self) -> None:
        self._waiting = None
        if self.transport.is_closing():
            return
        if self.conn.our_state is h11.IDLE:
            self.refuse(HttpProblem(408, f"no whole request came within {self.settings.head_within:g} s."))
        else:
            self.transport.abort()

    def _left_lying(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # the client does not read, and its answer takes up memory


# Hanging up so that the other side hears the last word.
#
# A socket that is closed with unread bytes resets the connection, and the answer that explains it is lost on its way.
# So where a client is still sending, the writing half is closed, what comes is thrown away, and the rest follows when
# the client has hung up too, or after a moment.

LINGER = 1.0
"""Seconds."""


class LingeringTransport:
    """A transport whose `close` is patient where there may be more to come."""

    def __init__(self, transport: asyncio.Transport, has_more: Callable[[], bool]) -> None:
        self._transport, self._has_more = transport, has_more
        self._is_closing = False
        self._timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._is_closing or self._transport.is_closing()

    def close(self) -> None:
        if self._is_closing or self._transport.is_closing():
            return
        if not self._has_more() or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._is_closing = True
        self._transport.resume_reading()
        self._transport.write_eof()
        self._timer = asyncio.get_running_loop().call_later(LINGER, self._transport.close)

    def finish(self) -> None:
        """The other side has hung up."""
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()
