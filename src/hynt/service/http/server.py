"""Runs a service until it is told to stop: SIGTERM and Ctrl-C answer or refuse what was accepted, then leave."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from hynt.errors import UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.journal import Journal
from hynt.runs.place import open_run, refuse_packaged
from hynt.service.front import Front
from hynt.service.http.application import create_application
from hynt.service.http.connections import GuardedConnection, protocol_for, stopping
from hynt.service.inference.process import InferenceProcess
from hynt.service.settings import HEADER_BYTES, ServiceSettings

LOG = logging.getLogger("hynt.service")

_LAST_ARRIVALS = 0.25
"""Seconds in which handshakes and requests already under way are still heard after a signal."""

_TELLING = 1.0
"""Of the grace, the seconds kept for telling those who will get no answer."""


def serve(settings: ServiceSettings, listening: Callable[[str, Service], None] = lambda url, service: None) -> None:
    """Serves until a signal comes. `listening` hears the address, and the service to stop, once requests are taken."""
    if settings.accept_updates and settings.token is None:
        raise UsageError(
            "whoever may change the graph has to show a token.",
            where="--accept-updates",
            advice="Say --token-file FILE.",
        )
    if settings.accept_updates:
        refuse_packaged(settings.run)
    with contextlib.closing(listening_socket(settings)) as listener:
        graph = Journal(settings.run).graph(open_run(settings.run).graph())
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{port}"
        asyncio.run(_serve(settings, graph, listener, lambda service: listening(url, service)))


async def _serve(
    settings: ServiceSettings, graph: KnowledgeGraph, listener: socket.socket, listening: Callable[[Service], None]
) -> None:
    engine = InferenceProcess(settings.run, settings.device, longest=2 * settings.answer_within)
    front = Front(graph, engine, settings)
    service = Service(front, settings)
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
    """A run that cannot be loaded at all ends the service; its failure is told by whoever started it."""
    await engine.failed.wait()
    service.should_exit = True


async def _announce(service: Service, listening: Callable[[Service], None]) -> None:
    while not service.started:
        await asyncio.sleep(0.02)
    listening(service)


class Service(uvicorn.Server):
    """uvicorn's server with an end that leaves nobody without a word."""

    def __init__(self, front: Front, settings: ServiceSettings) -> None:
        config = uvicorn.Config(
            create_application(front, settings),
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
        self.front, self.settings = front, settings

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but the signal is not raised again: a service that was stopped has done its work."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        self.force_exit = self.should_exit  # a second signal does not wait
        self.should_exit = self.front.draining = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Takes no more connections, hears requests that are on their way, waits for answers, refuses the rest."""
        self.front.draining = True
        LOG.info("stopping: %d questions are waiting", len(self.front.queue))
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
        await self.front.queue.stop()  # those who wait for the model are told
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
        """Until nobody waits any more, or time is up."""
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
    """Those that the system has taken for us and nobody has looked at yet."""
    found: list[socket.socket] = []
    with contextlib.suppress(OSError):  # among them the one that says there are no more
        while True:
            connection, _ = listener.accept()
            connection.setblocking(False)
            found.append(connection)
    return found
