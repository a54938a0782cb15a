"""Parsing a dump on one machine: this process reads and selects, others parse.

What is in flight is bounded, so memory does not grow with the dump. Finished parts of an earlier run are not made
again: their bytes are read over (they have to be, in a compressed file) and nothing more.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path

from hynt.creation.options import Selection
from hynt.creation.parts import PartJob, build, cut
from hynt.creation.sources.source import Parser, ParseSettings, get_source
from hynt.creation.tasks import BuildFolder, FileRange, PartSummary, size_of
from hynt.errors import DataError
from hynt.formats.format import UnitRule

SMALL_BYTES = 4 << 20
"""A dump below this is parsed in this process: starting others would take longer."""


@dataclass(frozen=True)
class ParseJob:
    """Everything that parsing needs, in a form that can be sent to another process or machine."""

    source: str
    selection: Selection
    settings: ParseSettings
    part_bytes: int
    longest_line: int


ParseListener = Callable[[int, int], None]
"""Hears how many bytes of the dump are taken, and how many facts they held."""

Checker = Callable[[PartSummary], None]
"""Hears of every part; raises DataError where too much of the dump is bad."""


def parse_locally(
    tasks: list[FileRange], job: ParseJob, work: BuildFolder, workers: int, check: Checker, progress: ParseListener
) -> list[PartSummary]:
    """Make the parts of all tasks, and list them in order."""
    kind = get_source(job.source)
    select = kind.selector(job.selection, job.settings)
    before: dict[str, int] = {}  # bytes of the files before each file
    total = facts = 0
    for task in tasks:
        if task.path not in before:
            before[task.path] = total
            total += size_of(Path(task.path))
    summaries: list[PartSummary] = []

    def take(summary: PartSummary) -> None:
        nonlocal facts
        facts += summary.counts.get("facts:parsed", 0)
        summaries.append(summary)
        check(summary)

    def jobs() -> Generator[PartJob, None, None]:
        for task in tasks:

            def tell(taken: int, first: int = before[task.path]) -> None:
                progress(min(first + taken, total), facts)

            for part in cut(task, kind, select, job.part_bytes, longest=job.longest_line, threads=workers, tell=tell):
                finished = work.finished(part.number, part.file, part.start, part.end)
                if finished is None:
                    yield part
                else:
                    take(finished)

    if workers < 2 or total < SMALL_BYTES:
        parse = kind.parser(job.selection, job.settings)
        with closing(jobs()) as parts:
            for part in parts:
                take(build(part, parse, work, units=job.settings.units, longest=job.longest_line))
    else:
        with closing(jobs()) as parts:  # the threads that decompress must end before this process does
            _in_processes(parts, job, work, workers, take)
    return sorted(summaries, key=lambda summary: summary.number)


def _in_processes(
    jobs: Iterator[PartJob], job: ParseJob, work: BuildFolder, workers: int, take: Callable[[PartSummary], None]
) -> None:
    # Fresh processes, not forks: this one has threads (decompression, Arrow), and forking them can lock up.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare, initargs=(job, work))
    waiting: set[Future[PartSummary]] = set()
    try:
        for part in jobs:
            while len(waiting) > workers:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    take(future.result())
            waiting.add(pool.submit(_build, part))
        for future in waiting:
            take(future.result())
    except BrokenProcessPool:
        raise DataError(
            "a process that parses was ended from outside, perhaps for want of memory.",
            where=str(work.path),
            advice="Run the command again: it goes on with the parts that are done. Fewer --workers need less memory.",
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_prepared: tuple[Parser, BuildFolder, UnitRule, int] | None = None


def _prepare(job: ParseJob, work: BuildFolder) -> None:
    """Runs once in each process that parses."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()
    global _prepared
    parse = get_source(job.source).parser(job.selection, job.settings)
    _prepared = parse, work, job.settings.units, job.longest_line


def _end_with_parent() -> None:
    """A first process that is killed cannot end the others: they must see that it is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _build(part: PartJob) -> PartSummary:
    assert _prepared is not None
    parse, work, units, longest = _prepared
    return build(part, parse, work, units=units, longest=longest)
