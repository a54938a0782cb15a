"""Runs a service until it is told to stop: SIGTERM and Ctrl-C answer or refuse what was accepted, then leave."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn

from hynt.runs.run_graph import run_graph
from hynt.service.front import Front
from hynt.service.http.application import create_application
from hynt.service.http.connections import GuardedConnection, protocol_for, stopping
from hynt.service.http.listening import listening_socket, turn_newcomers_away, waiting_connections
from hynt.service.inference.process import InferenceProcess
from hynt.service.settings import HEADER_BYTES, ServiceSettings

LOG = logging.getLogger("hynt.service")

_LAST_ARRIVALS = 0.25
"""Seconds in which handshakes and requests already under way are still heard after a signal."""

_TELLING = 1.0
"""Of the grace, the seconds kept for telling those who will get no answer."""


def serve(settings: ServiceSettings, listening: Callable[[str], None] = lambda url: None) -> None:
    """Serves until a signal comes. `listening` hears the address once requests are taken."""
    with contextlib.closing(listening_socket(settings)) as listener:
        graph = run_graph(settings.run)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        asyncio.run(_serve(settings, graph, listener, lambda: listening(f"http://{shown}:{port}")))


async def _serve(settings: ServiceSettings, graph: Any, listener: socket.socket, listening: Callable[[], None]) -> None:
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


async def _announce(service: Service, listening: Callable[[], None]) -> None:
    while not service.started:
        await asyncio.sleep(0.02)
    listening()


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
