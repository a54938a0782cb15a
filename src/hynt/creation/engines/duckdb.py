"""The engine for one machine: parsing in processes, SQL in DuckDB, which spills to disk when memory runs short."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.creation.engines.engine import QueryStep
from hynt.creation.parsing import Checker, ParseJob, ParseListener, parse_locally
from hynt.creation.reading import missing_extra
from hynt.creation.tasks import FileRange
from hynt.creation.work_folder import BuildFolder, PartSummary
from hynt.errors import DataError

if TYPE_CHECKING:
    import duckdb


class DuckDBEngine:
    """Runs the recipe in this process within a bounded memory; what does not fit goes to `spill`."""

    name = "duckdb"

    def __init__(self, workers: int, memory_bytes: int, spill: Path) -> None:
        try:
            import duckdb
        except ImportError:
            raise missing_extra("duckdb", "this engine's queries") from None
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
