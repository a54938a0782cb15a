"""`--processes N`: starts N processes of this very command on this machine and watches over them.

torchrun does the same for several machines, and starts a job again when asked; this is what a person on one machine
needs. No torch here: the process that watches stays small.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import IO

from hynt.errors import HyntError

GRACE_SECONDS = 10.0
"""How long the others may take to leave after one process failed."""


def is_launched() -> bool:
    """Whether torchrun, or `launch`, started this process as one of several."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def restarts() -> int:
    """How often torchrun has started this job again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def launch(arguments: Sequence[str], processes: int, lost: str, advice: str) -> int:
    """Runs `python -m hynt ARGUMENTS` in so many processes and returns the exit code of all of them.

    The first one speaks for all; the others' words are shown where one of them fails on its own. `lost` says what a
    killed one means for the job, `advice` what to do then.
    """
    port = _free_port()
    with ExitStack() as stack:
        said = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(processes)]
        started = [_start(arguments, rank, processes, port, said[rank]) for rank in range(processes)]
        stack.enter_context(_passing_signals_on(started))
        try:
            failed = _wait(started)
        finally:
            _end(started)
        if failed is None:
            return 0
        code = started[failed].returncode
        if code > 0:
            if failed:
                _tell(said[failed])
            return code
        name = signal.Signals(-code).name
        raise HyntError(
            f"process {failed + 1} of {processes} was ended by {name}, so {lost}", advice=advice,
        )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(arguments: Sequence[str], rank: int, processes: int, port: int, said: IO[bytes]) -> subprocess.Popen[bytes]:
    place = {
        "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes,
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
    }  # fmt: skip
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    usual = {"OMP_NUM_THREADS": str(max(1, cores // processes)), "GLOO_SOCKET_IFNAME": _loopback()}
    environment = usual | dict(os.environ) | {name: str(value) for name, value in place.items()}
    quiet = rank > 0
    return subprocess.Popen(
        [sys.executable, "-m", "hynt", *arguments], env=environment,
        stdout=subprocess.DEVNULL if quiet else None, stderr=said if quiet else None,
    )  # fmt: skip


def _loopback() -> str:
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), "lo")


@contextmanager
def _passing_signals_on(started: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """A terminal gives Ctrl-C to all processes; a polite kill reaches this one alone and is passed on."""

    def pass_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        if number == signal.SIGTERM:
            for process in started:
                if process.poll() is None:
                    process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(started: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """Waits until all are done, or one failed: its number. A process ended by a signal is the cause, whoever was
    noticed first; an error that the others have only because of it is not.
    """
    while True:
        codes = [process.poll() for process in started]
        if any(code is not None and code != 0 for code in codes):
            time.sleep(0.5)  # long enough for another one's end to be seen as well
            codes = [process.poll() for process in started]
            bad = [rank for rank, code in enumerate(codes) if code is not None and code != 0]
            return next((rank for rank in bad if (codes[rank] or 0) < 0), bad[0])
        if all(code == 0 for code in codes):
            return None
        time.sleep(0.05)


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """Lets the others leave by themselves, then asks, then makes them."""
    until = time.monotonic() + GRACE_SECONDS
    for process in started:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _tell(said: IO[bytes]) -> None:
    said.seek(0)
    sys.stderr.write(said.read()[-4000:].decode(errors="replace"))
