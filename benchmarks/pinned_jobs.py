"""Commands run several at once, each on a processor core of its own with one thread, within a limit of time.

    for ended in run_pinned([Job("a", ["python3", "-m", "…"], seconds=200.0)], cores=[3, 4], limit=600):
        …

Jobs come most valuable first. One that is not expected to end in time is passed over for a later one that is, and what
still runs at the limit is ended: only whole jobs count.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
AT_ONCE = 0.2
"""Seconds between looks at what has ended."""


class Job(NamedTuple):
    """A command, and how long it is thought to take."""

    key: str
    command: Sequence[str]
    seconds: float


class Ended(NamedTuple):
    """What came of a job."""

    key: str
    code: int  # of the exit; below zero: the signal that ended it
    seconds: float
    said: str  # the end of what it wrote


class _Running(NamedTuple):
    job: Job
    process: subprocess.Popen[bytes]
    log: Path
    began: float


def last_cores(count: int) -> list[int]:
    """So many of the cores that this process may use: the last ones, since other work begins at the first."""
    return sorted(os.sched_getaffinity(0))[-count:]


def run_pinned(
    jobs: Sequence[Job], cores: Sequence[int], limit: float = float("inf"), clock: Callable[[], float] = time.monotonic
) -> Iterator[Ended]:
    """Runs the jobs and yields each as it ends, until all have ended or `limit` seconds are over."""
    began, waiting, running = clock(), list(jobs), dict[int, _Running]()
    with tempfile.TemporaryDirectory(prefix="pinned-") as folder:
        try:
            while clock() - began < limit:
                left = limit - (clock() - began)
                for core in cores:
                    fits = next((job for job in waiting if job.seconds < left), None)
                    if core not in running and fits is not None:
                        waiting.remove(fits)
                        running[core] = _begun(fits, core, Path(folder) / f"core-{core}", clock())
                if not running:
                    return
                time.sleep(AT_ONCE)
                for core, one in list(running.items()):
                    if (code := one.process.poll()) is not None:
                        del running[core]
                        yield Ended(one.job.key, code, clock() - one.began, _end_of(one.log))
        finally:
            for one in running.values():
                one.process.kill()
                one.process.wait()


def _begun(job: Job, core: int, log: Path, now: float) -> _Running:
    with log.open("wb") as file:
        threads = dict.fromkeys(THREADS, "1")
        process = subprocess.Popen(job.command, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, **threads})
    os.sched_setaffinity(process.pid, {core})
    return _Running(job, process, log, now)


def _end_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:].strip()
