"""The engine for a cluster: Spark's workers read and parse the files themselves, and Spark runs the recipe.

The dump and the work folder must lie where every worker sees them under the same path, and hynt must be installed
there.
A finished part is a finished part, whoever made it: a build that was stopped goes on with either engine.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from hynt.creation.engines.engine import QueryStep
from hynt.creation.parsing import Checker, ParseJob, ParseListener
from hynt.creation.parts import build, cut
from hynt.creation.sources.source import get_source
from hynt.creation.tasks import FileRange, size_of
from hynt.creation.work_folder import BuildFolder, PartSummary
from hynt.errors import DataError, UsageError

_TASKS_A_ROUND = 256
"""After each round the bad lines are counted, so that a hopeless build stops early."""


class SparkEngine:
    """A session of Spark's, begun with the build and ended with it."""

    name = "spark"

    def __init__(self, master: str, memory_bytes: int) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise UsageError(
                "the engine spark needs the package pyspark.",
                where="--engine",
                advice="Install it with: pip install 'hynt[spark]'.",
            ) from None
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
        sizes = [_bytes_of(task) for task in tasks]
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


def _bytes_of(task: FileRange) -> int:
    return (size_of(Path(task.path)) if task.end is None else task.end) - task.start


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
