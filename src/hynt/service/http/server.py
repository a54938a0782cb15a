"""Runs a service until it is told to stop: SIGTERM and Ctrl-C answer or refuse what was accepted, then leave.

The first line and headers of a connection must come in time, it must take its answer in time, and what is no HTTP at
all is refused with a problem too.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from types import FrameType
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from hynt.errors import UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import handling
from hynt.runs.place import refuse_packaged
from hynt.service.http.application import create_application
from hynt.service.http.guards import HEADERS
from hynt.service.http.problems import MEDIA_TYPE, HttpProblem, unavailable
from hynt.service.inference.process import InferenceProcess
from hynt.service.served_run import ServedRun, opened_graph
from hynt.service.settings import HEADER_BYTES, ServiceSettings

LOG = logging.getLogger("hynt.service")

_LAST_ARRIVALS = 0.25
"""Seconds in which handshakes and requests already under way are still heard after a signal."""

_TELLING = 1.0
"""Of the grace, the seconds kept for telling those who will get no answer."""


def serve(settings: ServiceSettings, listening: Callable[[str, Service], None] = lambda url, service: None) -> None:
    """Serves until a signal comes. `listening` gets the address and the service itself once it accepts requests."""
    if settings.accept_updates:
        if settings.token is None:
            what, advice = "whoever may change the graph has to show a token.", "Say --token-file FILE."
            raise UsageError(what, where="--accept-updates", advice=advice)
        if settings.version is not None:
            what = "the graph is served as it was, and what has been cannot change."
            raise UsageError(what, where="--accept-updates", advice="Leave it out, or --as-of.")
        refuse_packaged(settings.run)
    with contextlib.closing(listening_socket(settings)) as listener:
        graph = opened_graph(settings)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{port}"
        asyncio.run(_serve(settings, graph, listener, lambda service: listening(url, service)))


async def _serve(
    settings: ServiceSettings, graph: KnowledgeGraph, listener: socket.socket, listening: Callable[[Service], None]
) -> None:
    engine = InferenceProcess(settings.run, settings.device, 2 * settings.answer_within, settings.version)
    served = ServedRun(graph, engine, settings)
    service = Service(served, settings)
    watch = asyncio.create_task(_stop_on_failure(engine, service))
    announce = asyncio.create_task(_announce(service, listening))
    try:
        await service.serve(sockets=[listener])
    finally:
        watch.cancel()
        announce.cancel()
    if engine.failure is not None and not engine.state.described:
        raise engine.failure


async def _stop_on_failure(engine: InferenceProcess, service: Service) -> None:
    """A run that cannot be loaded at all ends the service, and the failure is raised where it was started."""
    await engine.failed.wait()
    service.should_exit = True


async def _announce(service: Service, listening: Callable[[Service], None]) -> None:
    while not service.started:
        await asyncio.sleep(0.02)
    listening(service)


class Service(uvicorn.Server):
    """uvicorn's server, whose shutdown answers or refuses every request."""

    def __init__(self, served: ServedRun, settings: ServiceSettings) -> None:
        config = uvicorn.Config(
            create_application(served, settings),
            http=protocol_for(settings),
            ws="none",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(settings.idle),
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        super().__init__(config)
        self.served, self.settings = served, settings

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but the signal is not raised again: a service that was stopped has done its work."""
        with handling(self.handle_exit, "SIGINT", "SIGTERM"):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        self.force_exit = self.should_exit  # a second signal does not wait
        self.should_exit = self.served.draining = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Takes no more connections, hears requests that are on their way, waits for answers, refuses the rest."""
        self.served.draining = True
        LOG.info("stopping: %d questions are waiting", len(self.served.queue))
        listeners = sockets or []
        for listener in listeners:
            turn_newcomers_away(listener)
        await self._hear_last_arrivals()
        last = [connection for listener in listeners for connection in waiting_connections(listener)]
        for server in self.servers:
            server.close()
        for listener in listeners:
            listener.close()
        for connection in last:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        if last:
            await self._hear_last_arrivals()
        for open_one in self._connections():
            open_one.shutdown()
        await self._emptied(max(0.0, self.settings.grace - _TELLING))
        await self.served.queue.stop()  # those who wait for the model are told
        await self._emptied(_TELLING / 2)
        for open_one in self._connections():  # and those whose request is not whole yet
            open_one.refuse(stopping())
        await self._emptied(_TELLING / 2)
        for open_one in self._connections():
            open_one.transport.abort()
        await self._emptied(_TELLING)
        await self.lifespan.shutdown()
        LOG.info("stopped")

    async def _hear_last_arrivals(self) -> None:
        await asyncio.sleep(0 if self.force_exit else _LAST_ARRIVALS)

    def _connections(self) -> list[GuardedConnection]:
        return [one for one in self.server_state.connections if isinstance(one, GuardedConnection)]

    def _protocol(self) -> asyncio.Protocol:
        """As uvicorn makes one for each connection."""
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    async def _emptied(self, seconds: float) -> None:
        """Until no connection is left, or time is up."""
        until = asyncio.get_running_loop().time() + seconds
        while self.server_state.connections or self.server_state.tasks:
            if self.force_exit or asyncio.get_running_loop().time() > until:
                return
            await asyncio.sleep(0.02)


# The socket that connections come to: opened where it may be, and closed without cutting anyone off.
#
# The system finishes handshakes by itself and keeps the connections until they are accepted. Closing the socket resets
# those that wait, and one more can always come between the last look and the close. So newcomers are turned away first
# (their SYN is dropped, and its repetition a second later meets a closed port), and what is left is taken in.

_ATTACH_FILTER = 26
"""Linux's SO_ATTACH_FILTER, which Python has no name for."""

_NO_SYN = (
    (0x30, 0, 0, 13),  # load the byte of the TCP header that holds its flags
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone is how a connection begins
    (0x06, 0, 0, 0),  # drop it
    (0x06, 0, 0, 0xFFFFFFFF),  # let everything else through
)
"""A classic BPF program: (code, jump if true, jump if false, operand)."""


def listening_socket(settings: ServiceSettings) -> socket.socket:
    """The bound socket; refused where the address is taken, or open to others without a token."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        if not ipaddress.ip_address(address[0]).is_loopback and settings.token is None:
            raise UsageError(
                f"{settings.host} can be reached from other machines, and no token is asked for.",
                where="--host",
                advice="Say --token-file FILE, or leave --host out.",
            )
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(2048)
            found.setblocking(False)
        except OSError:
            found.close()
            raise
    except OSError as problem:
        raise UsageError(
            f"cannot listen at {settings.host} port {settings.port}: {problem.strerror or problem}.",
            where="--port",
            advice="Choose another --port, or 0 for any that is free.",
        ) from None
    return found


def turn_newcomers_away(listener: socket.socket) -> bool:
    """From now on no connection begins; handshakes under way are still finished. False where the system cannot."""
    if sys.platform != "linux":
        return False
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _NO_SYN))
    try:
        listener.setsockopt(
            socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", len(_NO_SYN), ctypes.addressof(program))
        )
    except OSError:
        return False
    return True


def waiting_connections(listener: socket.socket) -> list[socket.socket]:
    """Connections that the system has accepted and we have not."""
    found: list[socket.socket] = []
    with contextlib.suppress(OSError):  # among them the one that says there are no more
        while True:
            connection, _ = listener.accept()
            connection.setblocking(False)
            found.append(connection)
    return found


def protocol_for(settings: ServiceSettings) -> type[H11Protocol]:
    """The class that the server makes for each connection."""

    class Connection(GuardedConnection):
        """With the settings of this service."""

    Connection.settings = settings
    return Connection


def stopping() -> HttpProblem:
    """The refusal of what a shutdown leaves unanswered."""
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
            self.refuse(HttpProblem(400, "this is not an HTTP request that can be read."))

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
        try:
            self._transport.write_eof()
        except OSError:  # the other side is gone and hears nothing any more
            self._transport.close()
            return
        self._timer = asyncio.get_running_loop().call_later(LINGER, self._transport.close)

    def finish(self) -> None:
        """The other side has hung up."""
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()
