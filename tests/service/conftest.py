"""One run on a small graph, a real service over it, and services without a model for all that needs none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.service.asking_http import Site
from tests.service.inference.fake_engine import FakeEngine
from tests.service.served_graph import served_graph


@pytest.fixture(scope="session")
def graph():
    return served_graph()


@pytest.fixture(scope="session")
def run(graph, tmp_path_factory) -> Path:
    """A finished run; nobody writes to it but its own calibration."""
    import torch

    from hynt.training.run import start, train
    from tests.training.small_graph import tiny_settings

    torch.set_num_threads(1)
    device = torch.device("cpu")
    settings = tiny_settings(schedule={"epochs": 5, "period": 5})
    return train(start(graph, settings, tmp_path_factory.mktemp("served") / "run", device), device).path


@pytest.fixture(scope="session")
def predictor(run, tmp_path_factory):
    """The same run, loaded by the library."""
    from hynt.front.run import load

    return load(shutil.copytree(run, tmp_path_factory.mktemp("loaded") / "run"), "cpu")


class Process(Site):
    """A service in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], run: Path, log: Path, url: str) -> None:
        super().__init__(url)
        self.process, self.run, self._log = process, run, log

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def wait_until_ready(self, seconds: float = 150.0) -> None:
        until = time.monotonic() + seconds
        while self.get("/ready").status != 200:
            assert time.monotonic() < until, self.log
            time.sleep(0.05)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextlib.contextmanager
def serving(run: Path, log: Path, *options: str, ready: bool = True) -> Iterator[Process]:
    """`hynt serve` as a person starts it."""
    command = [sys.executable, "-m", "hynt", "serve", str(run), "--port", "0", "--json", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        found = Process(process, run, log, json.loads(line)["url"])
        if ready:
            found.wait_until_ready()
        yield found
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="session")
def service(run, tmp_path_factory) -> Iterator[Process]:
    """One real service for all tests that only ask."""
    with serving(run, tmp_path_factory.mktemp("log") / "service.log") as found:
        yield found


TOKEN = "a-token-for-tests-only"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def accepting_updates(run: Path, folder: Path) -> tuple[Path, tuple[str, ...]]:
    """A copy of a run, and the options by which a service of it accepts updates from whoever has the token."""
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    return shutil.copytree(run, folder / "run"), ("--token-file", str(folder / "token"), "--accept-updates")


@pytest.fixture(scope="module")
def updating(inductive_run, tmp_path_factory) -> Iterator[Process]:
    """A real service that accepts updates."""
    folder = tmp_path_factory.mktemp("updated")
    run, options = accepting_updates(inductive_run, folder)
    with serving(run, folder / "log", *options) as found:
        yield found


@pytest.fixture
def site(graph) -> Iterator[Callable[..., Site]]:
    """Makes a service with an engine of the test's own, in a thread; `site(engine, queue=3)` changes settings."""
    running = contextlib.ExitStack()

    def make(engine=None, **changes) -> Site:
        return running.enter_context(in_thread(graph, engine or FakeEngine(), **changes))

    with running:
        yield make


@pytest.fixture(scope="module")
def plain_site(graph) -> Iterator[Site]:
    """One such service as it is when nothing is said, for tests that leave it as they found it."""
    with in_thread(graph, FakeEngine()) as found:
        yield found


@contextlib.contextmanager
def in_thread(graph, engine, **changes) -> Iterator[Site]:
    from hynt.service.http.server import Service, listening_socket
    from hynt.service.served_run import ServedRun
    from hynt.service.settings import ServiceSettings

    settings = replace(ServiceSettings(Path("unused"), port=0, grace=2.0), **changes)
    listener = listening_socket(settings)
    started: list[Service] = []

    async def serve() -> None:
        service = Service(ServedRun(graph, engine, settings), settings)
        started.append(service)
        await service.serve(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not (started and started[0].started):
        assert time.monotonic() < until
        time.sleep(0.01)
    found = Site(f"http://127.0.0.1:{listener.getsockname()[1]}")
    found.service = started[0]
    try:
        yield found
    finally:
        started[0].should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def hynt_serve() -> Callable[..., subprocess.CompletedProcess[str]]:
    """A service that is expected to end by itself."""

    def start(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hynt", "serve", *map(str, arguments), "--port", "0"]
        return subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)

    return start
