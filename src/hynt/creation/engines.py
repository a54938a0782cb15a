"""What runs the recipe: an engine parses tasks, and runs named steps of SQL over Parquet files.

DuckDB is the engine for one machine: parsing in processes, SQL that spills to disk when memory runs short. Spark is the
engine for a cluster: its workers read and parse the files themselves. There the dump and the work folder must lie where
every worker sees them under the same path, and hynt must be installed. A finished part is a finished part, whoever made
it: a build that was stopped goes on with either engine.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.creation.parts import Checker, ParseJob, ParseListener, build, cut, parse_locally
from hynt.creation.sources.source import get_source
from hynt.creation.tasks import BuildFolder, FileRange, PartSummary, size_of
from hynt.errors import DataError, UsageError, not_installed

if TYPE_CHECKING:
    import duckdb

_STEP = re.compile(r"^-- step: ([a-z_]+)$", re.MULTILINE)


class QueryStep(NamedTuple):
    """A query whose result later steps know by a name."""

    name: str
    query: str


class QueryEngine(Protocol):
    """Where the work is done. A context manager: what it started ends with it."""

    name: str

    def __enter__(self) -> QueryEngine: ...

    def __exit__(self, *problem: object) -> None: ...

    def parse(
        self, tasks: list[FileRange], job: ParseJob, work: BuildFolder, check: Checker, progress: ParseListener
    ) -> list[PartSummary]: ...

    def give(self, name: str, source: list[Path] | pa.Table) -> None:
        """Name a table for the steps to come: Parquet files of one schema, or a small table in memory."""

    def run(self, step: QueryStep, work: BuildFolder) -> list[Path]:
        """Run a step, keep its result under its name, and give the Parquet files that hold it, in order."""


def steps(file_name: str) -> list[QueryStep]:
    """The steps of a SQL file of this package."""
    text = files("hynt.creation").joinpath(file_name).read_text(encoding="utf-8")
    pieces = _STEP.split(text)[1:]
    return [QueryStep(name, query.strip()) for name, query in zip(pieces[::2], pieces[1::2], strict=True)]


def settings_table(settings: Mapping[str, str | int | None]) -> pa.Table:
    """Settings as a table of one row, so that the SQL text needs no parameters."""
    return pa.table(
        {
            name: pa.array([value], pa.int64() if name in ("max_qualifiers", "min_tail_uses") else pa.string())
            for name, value in settings.items()
        }
    )


def pairs_table(pairs: Iterable[tuple[str, str]], schema: pa.Schema) -> pa.Table:
    """A table of two columns of text."""
    columns = list(zip(*sorted(pairs), strict=True)) or [(), ()]
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=schema)


class DuckDBEngine:
    """Runs the recipe in this process within a bounded memory; what does not fit goes to `spill`."""

    name = "duckdb"

    def __init__(self, workers: int, memory_bytes: int, spill: Path) -> None:
        try:
            import duckdb
        except ImportError:
            raise not_installed("duckdb", "create", what="making a graph from a dump") from None
        self._workers = workers
        self._error = duckdb.Error
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect(":memory:")
        for name, value in (
            ("threads", str(workers)),
            ("memory_limit", f"{memory_bytes // 2**20}MiB"),
            ("temp_directory", str(spill)),
            ("preserve_insertion_order", "false"),  # every result that has an order asks for it
        ):
            self._connection.execute(f"SET {name} = {_quoted(value)}")

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(self, *problem: object) -> None:
        self._connection.close()

    def parse(
        self, tasks: list[FileRange], job: ParseJob, work: BuildFolder, check: Checker, progress: ParseListener
    ) -> list[PartSummary]:
        return parse_locally(tasks, job, work, self._workers, check, progress)

    def give(self, name: str, source: list[Path] | pa.Table) -> None:
        if isinstance(source, pa.Table):
            self._connection.register(f"{name}_given", source)
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {name}_given")
            self._connection.unregister(f"{name}_given")
            return
        listed = ", ".join(_quoted(str(path)) for path in source)
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_parquet([{listed}])")

    def run(self, step: QueryStep, work: BuildFolder) -> list[Path]:
        path = work.path / f"{step.name}.parquet"
        try:
            self._connection.execute(f"COPY ({step.query}) TO {_quoted(str(path))} (FORMAT parquet, COMPRESSION zstd)")
        except self._error as problem:
            raise DataError(
                f"the step {step.name} failed: {str(problem).splitlines()[0]}",
                where=str(work.path),
                advice="Give more --memory, or a --work folder on a larger disk, and run the command again.",
            ) from None
        self.give(step.name, [path])
        return [path]


def rows_of(paths: list[Path]) -> list[dict[str, object]]:
    """A small result, as plain rows."""
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_TASKS_A_ROUND = 256
"""After each round the bad lines are counted, so that a hopeless build stops early."""


class SparkEngine:
    """A session of Spark's, begun with the build and ended with it."""

    name = "spark"

    def __init__(self, master: str, memory_bytes: int) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise not_installed("pyspark", "spark", what="the engine spark", where="--engine") from None
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            os.environ.setdefault(name, sys.executable)
        builder = (
            SparkSession.builder.master(master)
            .appName("hynt create")
            .config("spark.log.level", "ERROR")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.ansi.enabled", "true")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1")  # a task is one row, and a long job
        )
        if master.startswith("local"):
            builder = builder.config("spark.driver.memory", f"{max(memory_bytes >> 20, 512)}m")
            builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.driver.host", "127.0.0.1")
        try:
            with _quiet():
                self._session: Any = builder.getOrCreate()
        except Exception as problem:  # noqa: BLE001 - Java's own failures come as any exception
            raise UsageError(
                f"Spark does not start: {_first_line(problem)}",
                where="--engine",
                advice="It needs Java 17 (on Debian: apt install openjdk-17-jre-headless) and a master it can reach.",
            ) from None

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(self, *problem: object) -> None:
        self._session.stop()

    def parse(
        self, tasks: list[FileRange], job: ParseJob, work: BuildFolder, check: Checker, progress: ParseListener
    ) -> list[PartSummary]:
        sizes = [(size_of(Path(one.path)) if one.end is None else one.end) - one.start for one in tasks]
        done, facts = 0, 0
        folder = str(work.path.resolve())
        summaries: list[PartSummary] = []

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for text in batch.column("task").to_pylist():
                    made = [
                        json.dumps(summary.__dict__) for summary in run_task(FileRange(**json.loads(text)), job, folder)
                    ]
                    yield pa.record_batch({"summary": pa.array(made, pa.string())})

        for first in range(0, len(tasks), _TASKS_A_ROUND):
            progress(done, facts)
            round_of = [
                (json.dumps({**task._asdict(), "path": str(Path(task.path).resolve())}),)
                for task in tasks[first : first + _TASKS_A_ROUND]
            ]
            frame = self._session.createDataFrame(round_of, "task string").repartition(len(round_of))
            try:
                with _quiet():
                    rows = frame.mapInArrow(run, "summary string").collect()
            except Exception as problem:  # noqa: BLE001 - a worker's failure comes as Spark's own exception
                raise _failure(problem, work) from None
            found = sorted((PartSummary(**json.loads(row[0])) for row in rows), key=lambda summary: summary.number)
            for summary in found:
                facts += summary.counts.get("facts:parsed", 0)
                check(summary)
            summaries += found
            done += sum(sizes[first : first + _TASKS_A_ROUND])
            progress(done, facts)
        return sorted(summaries, key=lambda summary: summary.number)

    def give(self, name: str, source: list[Path] | pa.Table) -> None:
        if isinstance(source, pa.Table):
            with _quiet():
                frame = self._session.createDataFrame(source)
        else:
            frame = self._session.read.parquet(*(str(path.resolve()) for path in source))
        frame.createOrReplaceTempView(name)

    def run(self, step: QueryStep, work: BuildFolder) -> list[Path]:
        folder = work.path / f"{step.name}.spark"
        try:
            frame = self._session.sql(step.query)
            frame.write.mode("overwrite").option("compression", "zstd").parquet(str(folder.resolve()))
        except Exception as problem:  # noqa: BLE001 - whatever Java throws
            raise DataError(
                f"the step {step.name} failed: {_first_line(problem)}",
                where=str(work.path),
                advice="Give Spark more memory, and run the command again.",
            ) from None
        # Spark numbers the files of a sorted result in order.
        paths = sorted(folder.glob("part-*.parquet"))
        self.give(step.name, paths)
        return paths


def run_task(task: FileRange, job: ParseJob, folder: str) -> Iterator[PartSummary]:
    """Read and parse one task, on whatever machine this is."""
    kind = get_source(job.source)
    select = kind.selector(job.selection, job.settings)
    parse = kind.parser(job.selection, job.settings)
    work = BuildFolder(Path(folder))
    for part in cut(task, kind, select, job.part_bytes, longest=job.longest_line, threads=1):
        finished = work.finished(part.number, part.file, part.start, part.end)
        yield finished or build(part, parse, work, units=job.settings.units, longest=job.longest_line)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without PySpark's warning that the newest pandas is too new for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _first_line(problem: BaseException) -> str:
    text = str(problem).strip() or type(problem).__name__
    return text.splitlines()[0][:300]


def _failure(problem: BaseException, work: BuildFolder) -> DataError:
    """The last line of a worker's own error, where there is one: Spark wraps it in pages."""
    lines = [line.strip() for line in str(problem).splitlines()]
    ours = [line.partition(": ")[2] for line in lines if line.startswith("hynt.errors.")]
    return DataError(
        f"a worker failed: {ours[-1] if ours else _first_line(problem)}",
        where=str(work.path),
        advice="Mend what it says and run the command again: it goes on with the parts that are done.",
    )
