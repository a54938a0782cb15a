"""From a task to parts: lines are read and selected, gathered up to a size, parsed, and written as Parquet.

The same two functions serve every engine: `cut` reads, `build` parses. One process may do both, or one cut and others
build. Here too: how a dump's numbers are converted while they are parsed, and the names of units that SQL joins.

On one machine this process reads and selects, and others parse. What is in flight is bounded, so memory does not grow
with the dump. Finished parts of an earlier run are not made again: their bytes are read over (they have to be, in a
compressed file) and nothing more.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from hynt.creation.options import Selection
from hynt.creation.reading import LONGEST_LINE, DumpStream
from hynt.creation.sources.source import (
    NAMES,
    REDIRECTS,
    ROWS,
    Counts,
    DumpSource,
    Named,
    Parsed,
    ParsedValue,
    Parser,
    ParseSettings,
    Selected,
    Selector,
    get_source,
)
from hynt.creation.tasks import BuildFolder, FileRange, PartSummary, size_of
from hynt.errors import DataError, RecordProblem
from hynt.formats.format import UnitRule
from hynt.formats.lines import LineBlock, whole_lines
from hynt.graph.fact import DATE_UNIT
from hynt.graph.units.conversion import Conversion, lookup
from hynt.interruption import end_with_parent

UNITS = pa.schema([("unit", pa.string()), ("si_unit", pa.string())])


class MetUnits(dict[str, Conversion | None]):
    """Every unit met, and how its numbers are converted: None where they stay as they are."""

    def __init__(self, rule: UnitRule) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, name: str) -> Conversion | None:
        found = lookup(name) if self._rule == "si" else None
        self[name] = conversion = None if found is None or found.is_reference else found.conversion
        return conversion


def converted(convert: Conversion, value: float) -> float:
    """The number in the reference unit; infinite, and so left out later, where no double holds it: because it is too
    large, or because nothing is left of it.
    """
    found = convert(value)
    return math.inf if found == 0 and value and not convert.shift else found


def unit_rows(names: Iterable[str], rule: UnitRule) -> tuple[pa.Table, list[str]]:
    """Each known unit and the one that its numbers are in after parsing; and the names of the unknown ones."""
    rows: list[tuple[str, str]] = [("", ""), (DATE_UNIT, DATE_UNIT)]
    unknown: list[str] = []
    for name in sorted(set(names) - {"", DATE_UNIT}):
        found = lookup(name)
        if found is None:
            unknown.append(name)
        else:
            rows.append((name, found.symbol if rule == "keep" else found.si_unit))
    return pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], schema=UNITS), unknown


PARTS_PER_TASK = 1 << 20
ROWS_PER_PART = 1 << 28
REJECTS_PER_PART = 20
_SHOWN_BYTES = 300
_SPARSE = 64
"""A part ends after this many times its size was read, however little of it was wanted."""


class PartJob(NamedTuple):
    """The wanted lines between two offsets of a file."""

    number: int
    file: str
    start: int
    end: int
    lines: list[tuple[int, bytes]]
    counts: Counts  # of the lines that were not wanted
    too_long: list[int]  # offsets of lines that could not be held
    cut_off: bool  # whether the last line has no end


def cut(
    task: FileRange,
    kind: DumpSource,
    select: Selector,
    part_bytes: int,
    *,
    longest: int = LONGEST_LINE,
    threads: int = 0,
    tell: Callable[[int], None] = lambda taken: None,
) -> Iterator[PartJob]:
    """The parts of a task. `tell` is called with how many bytes of the file were read."""
    stream = DumpStream(Path(task.path), max(task.start - 1, 0), threads)
    try:
        number = task.number * PARTS_PER_TASK
        held: list[tuple[int, bytes]] = []
        counts: Counts = Counter()
        too_long: list[int] = []
        kept = 0
        start = end = task.start
        last = False
        for block in _blocks(stream, task, longest):
            if block.too_long:
                too_long.append(block.offset)
            else:
                if task.is_document:
                    lines, others = Selected(kind.document_lines(block.data), Counter())
                else:
                    lines, others = select(block.data, block.offset)
                held += lines
                counts.update(others)
                kept += sum(len(line) for _, line in lines)
            end, last = block.offset + len(block.data), block.cut_off
            tell(stream.bytes_read)
            if kept >= part_bytes or end - start >= part_bytes * _SPARSE:
                yield PartJob(number, Path(task.path).name, start, end, held, counts, too_long, last)
                number += 1
                held, counts, too_long, kept, start = [], Counter(), [], 0, end
        if end > start or held or too_long:
            yield PartJob(number, Path(task.path).name, start, end, held, counts, too_long, last)
    finally:
        stream.close()


def build(
    job: PartJob, parse: Parser, work: BuildFolder, *, units: UnitRule = "si", longest: int = LONGEST_LINE
) -> PartSummary:
    """Parse a part's lines and write what they say, with numbers converted as the rule for units says."""
    table = _PartColumns(job.number * ROWS_PER_PART, units)
    counts: Counts = Counter(job.counts)
    rejects: list[dict[str, Any]] = []

    def reject(offset: int, reason: str, what: str, line: bytes) -> None:
        counts["lines", f"rejected-{reason}"] += 1
        if len(rejects) < REJECTS_PER_PART:
            shown = line[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
            rejects.append({"file": job.file, "offset": offset, "reason": reason, "what": what, "line": shown})

    for offset in job.too_long:
        reject(offset, "line-too-long", f"the line has more than {longest:,} bytes.", b"")
    last = len(job.lines) - 1
    for index, (offset, line) in enumerate(job.lines):
        if len(line) > longest:
            reject(offset, "line-too-long", f"the line has {len(line):,} bytes.", line)
            continue
        try:
            parsed = parse(line)
        except RecordProblem as problem:
            cut_off = job.cut_off and index == last
            reject(offset, "cut-off" if cut_off else problem.reason, problem.what, line)
            continue
        counts.update(parsed.counts)
        table.add(parsed)
    counts.update(table.counts)
    summary = PartSummary(
        job.number,
        job.file,
        job.start,
        job.end,
        {f"{scope}:{reason}": number for (scope, reason), number in sorted(counts.items()) if number},
        rejects,
        sorted(table.units),
    )
    return work.add(summary, table.tables())


def _blocks(stream: DumpStream, task: FileRange, longest: int) -> Iterator[LineBlock]:
    if not task.is_document:
        yield from whole_lines(stream.read, task.start, task.end, longest)
        return
    data = stream.read(longest + 1)
    if len(data) > longest:
        raise DataError(f"the document has more than {longest:,} bytes.", where=task.path, advice="Give a dump.")
    yield LineBlock(0, data)


class _PartColumns:
    """The columns of a part, as they grow."""

    def __init__(self, first: int, units: UnitRule) -> None:
        self._first = first
        self._statements = 0
        self._columns: list[list[Any]] = [[] for _ in ROWS]
        self._names: list[Named] = []
        self._redirects: list[tuple[str, str]] = []
        self.units = MetUnits(units)
        self.counts: Counts = Counter()  # of the rows: they are judged later, in SQL

    def add(self, parsed: Parsed) -> None:
        statement, place, head, relation, kind, value, number, unit, node = self._columns
        units = self.units

        def put(name: str, held: ParsedValue) -> None:
            relation.append(name)
            kind.append(held.kind)
            value.append(held.value)
            unit.append(held.unit)
            convert = units[held.unit] if held.unit else None
            number.append(held.number if convert is None or held.number is None else converted(convert, held.number))

        for fact in parsed.facts:
            identity = self._first + self._statements
            self._statements += 1
            statement.append(identity)
            place.append(0)
            head.append(fact.head)
            node.append(fact.node)
            put(fact.relation, fact.value)
            for index, (name, held) in enumerate(fact.qualifiers, start=1):
                statement.append(identity)
                place.append(index)
                head.append(None)
                node.append(None)
                put(name, held)
        for of_node, name, held in parsed.node_values:
            self._statements += 1
            statement.append(None)
            place.append(self._first + self._statements)  # above 0, and in the order of the dump
            head.append(None)
            node.append(of_node)
            put(name, held)
        self.counts["facts", "parsed"] += len(parsed.facts)
        self.counts["qualifiers", "parsed"] += sum(len(fact.qualifiers) for fact in parsed.facts)
        self.counts["nodes", "parsed"] += len(parsed.node_values)
        self._names.extend(parsed.names)
        self._redirects.extend(parsed.redirects)

    def tables(self) -> dict[str, pa.Table]:
        def table(rows: Sequence[tuple[str, ...]], schema: pa.Schema) -> pa.Table:
            columns: list[tuple[str, ...]] = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
            return pa.table([pa.array(column, pa.string()) for column in columns], schema=schema)

        rows = pa.table(
            [pa.array(column, field.type) for column, field in zip(self._columns, ROWS, strict=True)], schema=ROWS
        )
        return {"parsed": rows, "names": table(self._names, NAMES), "redirects": table(self._redirects, REDIRECTS)}


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
    end_with_parent()
    global _prepared
    parse = get_source(job.source).parser(job.selection, job.settings)
    _prepared = parse, work, job.settings.units, job.longest_line


def _build(part: PartJob) -> PartSummary:
    assert _prepared is not None
    parse, work, units, longest = _prepared
    return build(part, parse, work, units=units, longest=longest)
