"""A run for others: over HTTP for programs, browsers and agents, and over standard input and output for one agent."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError, not_installed

if TYPE_CHECKING:
    from types import TracebackType

    from hynt.front.run import Run
    from hynt.service.http.server import Service
    from hynt.service.settings import ServiceSettings


class RunningService:
    """A served run: its address, and a way to stop it. `with` stops it at the end."""

    def __init__(self) -> None:
        self.url = ""
        self._service: Service | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._heard = threading.Event()

    def stop(self) -> None:
        """Answers what was asked, takes no more, and waits for the end."""
        if self._service is not None:
            self._service.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> RunningService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        alive = self._thread is not None and self._thread.is_alive()
        return f"<service at {self.url}>" if alive else "<service, stopped>"

    def _start(self, settings: ServiceSettings) -> None:
        self._thread = threading.Thread(target=self._work, args=(settings,), name="hynt serve", daemon=True)
        self._thread.start()
        self._heard.wait()
        while self._service is not None and not self._service.served.engine.state.ready and self._thread.is_alive():
            time.sleep(0.02)
        if self._failure is not None:
            raise self._failure

    def _work(self, settings: ServiceSettings) -> None:
        from hynt.service.http.server import serve as serve_run

        try:
            serve_run(settings, self._hear)
        except BaseException as problem:  # noqa: BLE001 - told by whoever started the thread
            self._failure = problem
        finally:
            self._heard.set()

    def _hear(self, url: str, service: Service) -> None:
        self.url, self._service = url, service
        self._heard.set()


def serve(
    run: Run | str | os.PathLike[str],
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    wait: bool = True,
    token_file: str | os.PathLike[str] | None = None,
    allowed_hosts: Sequence[str] = (),
    audit: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    started: Callable[[str], None] | None = None,
    **settings: Any,
) -> RunningService:
    """Serves a run over HTTP: pages for people, JSON under /v1 for programs, tools for agents at /mcp.

    With `wait` it serves until Ctrl-C or SIGTERM and calls `started` with its address; without, it serves in the
    background and returns once the model is loaded. Other machines need the `token_file`. `port` 0 takes any free port.
    `settings` are those of `hynt.service.settings.ServiceSettings`, such as `queue=64`; with `version=2` the run is
    served as it was after two updates of its graph.

    >>> with hynt.serve(run, port=0, wait=False) as service:
    ...     answers = hynt.Client(service.url).predict("Japan", "capital", "?", top=2)
    >>> len(answers)
    2
    """
    _check_installed("serve", ("fastapi", "jinja2", "prometheus_client", "uvicorn"))
    from hynt.service.http.server import serve as serve_run

    wanted = _settings(run, token_file, audit, host=host, port=port, allowed_hosts=tuple(allowed_hosts), device=device)
    wanted = _with(wanted, settings)
    running = RunningService()
    if not wait:
        running._start(wanted)
        return running

    def hear(url: str, service: Service) -> None:
        running._hear(url, service)
        (started or _announce)(url)

    serve_run(wanted, hear)
    return running


def serve_agent(
    run: Run | str | os.PathLike[str],
    *,
    audit: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    version: int | None = None,
) -> None:
    """Serves a run, as it is or as it was at a version, to one agent over standard input and output, until the agent
    hangs up.
    """
    _check_installed("mcp", ("mcp", "fastapi", "jinja2", "prometheus_client"))
    import asyncio

    from hynt.service.agents import agent_server, speak
    from hynt.service.inference.process import InferenceProcess
    from hynt.service.served_run import ServedRun, opened_graph

    settings = _settings(run, None, audit, device=device, version=version)
    graph = opened_graph(settings)

    async def work() -> None:
        engine = InferenceProcess(settings.run, settings.device, 2 * settings.answer_within, settings.version)
        served = ServedRun(graph, engine, settings)
        await served.start()
        try:
            await speak(agent_server(served, settings))
        finally:
            await served.stop()
        if engine.failure is not None and not engine.state.described:
            raise engine.failure

    asyncio.run(work())


def _settings(
    run: Run | str | os.PathLike[str],
    token_file: str | os.PathLike[str] | None,
    audit: str | os.PathLike[str] | None,
    **given: Any,
) -> ServiceSettings:
    from hynt.runs.place import run_place
    from hynt.service.http.guards import read_token
    from hynt.service.pages.doubtful import check_audit
    from hynt.service.settings import ServiceSettings

    token = None if token_file is None else read_token(Path(token_file))
    if audit is not None:
        check_audit(Path(audit))
    folder = run_place(run) if isinstance(run, str | os.PathLike) else run.path
    return ServiceSettings(folder, token=token, audit=None if audit is None else Path(audit), **given)


def _with(settings: ServiceSettings, more: dict[str, Any]) -> ServiceSettings:
    from dataclasses import fields, replace

    from hynt.names import advice_on

    names = [one.name for one in fields(settings) if one.name not in ("run", "token")]
    for name in more:
        if name not in names:
            raise UsageError(f"a service has no setting {name!r}.", where="serve", advice=advice_on(name, names))
    return replace(settings, **more)


def _check_installed(extra: str, packages: Sequence[str]) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise not_installed(package, extra)


def _announce(url: str) -> None:
    sys.stderr.write(f"Serving at {url} (Ctrl-C to stop)\n")
    sys.stderr.flush()
