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
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from types import FrameType
from typing import IO

from hynt.errors import HyntError
from hynt.interruption import handling

GRACE_SECONDS = 10.0
"""How long the others may take to leave after one process failed."""

LEFT_ALONE = 75
"""How a process tells the one that watches that it fails only because another did."""

INTERRUPTED = 130
_WATCHED = "HYNT_WATCHED"
PROGRAM = (sys.executable, "-m", "hynt")


def is_launched() -> bool:
    """Whether torchrun, or `launch`, started this process as one of several."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def is_watched() -> bool:
    """Whether `launch` started this process, and will tell of a failure that is another one's."""
    return _WATCHED in os.environ


def restarts() -> int:
    """How often torchrun has started this job again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def launch(arguments: Sequence[str], processes: int, lost: str, advice: str) -> int:
    """Runs `python -m hynt ARGUMENTS` in so many processes and returns the exit code of all of them.

    The first one speaks for all; the others' words are shown where one of them fails on its own. `lost` says what a
    killed one means for the job, `advice` what to do then. After Ctrl-C, of which the first process has told, this one
    leaves as well.
    """
    port = _free_port()
    with ExitStack() as stack:
        said = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(processes)]
        # With --json standard output holds one object: whose it is, is known when all are done.
        results: list[IO[bytes]] = []
        if "--json" in arguments:
            results = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(processes)]
        started = [
            _start(arguments, rank, processes, port, said[rank], results[rank] if results else None)
            for rank in range(processes)
        ]
        stack.enter_context(_passing_signals_on(started))
        try:
            failed = _wait(started)
        finally:
            _end(started)
        if failed is not None and started[failed].returncode < 0:
            name = signal.Signals(-started[failed].returncode).name
            raise HyntError(f"process {failed + 1} of {processes} was ended by {name}, so {lost}", advice=advice)
        cause = 0 if failed is None else _cause(started)
        code = int(started[cause].returncode)
        if results:
            sys.stdout.write(_text(results[cause]))
        if code == INTERRUPTED:
            raise SystemExit(code)
        if cause:
            sys.stderr.write(_text(said[cause])[-4000:])
        return 1 if code == LEFT_ALONE else code


def _cause(started: Sequence[subprocess.Popen[bytes]]) -> int:
    """Whose failure is the job's: the first process that failed on its own, or else the first that was stopped."""
    codes = [process.returncode for process in started]
    own = [rank for rank, code in enumerate(codes) if code > 0 and code not in (LEFT_ALONE, INTERRUPTED)]
    return [*own, *(rank for rank, code in enumerate(codes) if code == INTERRUPTED), 0][0]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(
    arguments: Sequence[str], rank: int, processes: int, port: int, said: IO[bytes], result: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    place = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": processes,
        "LOCAL_WORLD_SIZE": processes,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        _WATCHED: 1,
    }
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    usual = {"OMP_NUM_THREADS": str(max(1, cores // processes)), "GLOO_SOCKET_IFNAME": _loopback()}
    environment = usual | dict(os.environ) | {name: str(value) for name, value in place.items()}
    quiet = rank > 0
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        env=environment,
        stdout=result or (subprocess.DEVNULL if quiet else None),
        stderr=said if quiet else None,
    )


def _loopback() -> str:
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), "lo")


def _passing_signals_on(started: Sequence[subprocess.Popen[bytes]]) -> AbstractContextManager[None]:
    """A terminal gives Ctrl-C to all processes; a polite kill reaches this one alone and is passed on."""

    def pass_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        if number == signal.SIGTERM:
            for process in started:
                if process.poll() is None:
                    process.send_signal(number)

    return handling(pass_on, "SIGINT", "SIGTERM")


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


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
