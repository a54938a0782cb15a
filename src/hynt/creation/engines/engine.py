"""What an engine has to do: parse tasks, and run named steps of SQL over Parquet files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from hynt.creation.parsing import Checker, ParseJob, ParseListener
from hynt.creation.tasks import FileRange
from hynt.creation.work_folder import BuildFolder, PartSummary

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
    ) -> list[PartSummary]:
        """Make the parts of all tasks."""
        ...

    def give(self, name: str, source: list[Path] | pa.Table) -> None:
        """Name a table for the steps to come: Parquet files of one schema, or a small table in memory."""
        ...

    def run(self, step: QueryStep, work: BuildFolder) -> list[Path]:
        """Run a step, keep its result under its name, and give the Parquet files that hold it, in order."""
        ...


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
