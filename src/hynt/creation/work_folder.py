"""The work folder of a build, WORK/parts/part-000000000007.json and its tables.

Two engines share the layout, so one can go on with what the other began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.creation.sources.source import PART_TABLES
from hynt.files import WorkFolder, whole_file

LAYOUT = 4
"""Raised whenever parsers or part files change, so that parts of an older version are not mixed in."""


@dataclass(frozen=True)
class PartSummary:
    """What a part holds: where it came from, what was counted, the first bad lines, the units met, its tables."""

    number: int
    file: str
    start: int
    end: int
    counts: dict[str, int]  # "scope:reason" → how often
    rejects: list[dict[str, Any]] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)  # those that are not empty


class BuildFolder(WorkFolder):
    """The work folder of `create`: the tables of every part, kept so that a stopped job goes on."""

    def open(self, plan: Mapping[str, Any]) -> None:
        super().open({"layout": LAYOUT, **plan})
        for name, schema in PART_TABLES.items():  # so that no table is ever without a file
            _write_table(self._empty(name), pa.Table.from_batches([], schema=schema))

    def finished(self, number: int, file: str, start: int, end: int) -> PartSummary | None:
        """The part, where it is whole and covers exactly these bytes."""
        content = self.kept(_part(number))
        summary = None if content is None else PartSummary(**content["summary"])
        return summary if summary and (summary.file, summary.start, summary.end) == (file, start, end) else None

    def add(self, summary: PartSummary, tables: Mapping[str, pa.Table]) -> PartSummary:
        """Write the tables that are not empty, then the summary: a part without one does not exist."""
        filled = [name for name, table in tables.items() if table.num_rows]
        part = _part(summary.number)
        for name in filled:
            _write_table(self.file(part, f"{name}.parquet"), tables[name])
        whole = replace(summary, tables=filled)
        self.keep(part, {"summary": asdict(whole)}, [f"{name}.parquet" for name in filled])
        return whole

    def tables(self, name: str, summaries: list[PartSummary]) -> list[Path]:
        """The files of a table, in the order of their parts; never none."""
        parts = [_part(summary.number) for summary in summaries if name in summary.tables]
        return [self.file(part, f"{name}.parquet") for part in parts] or [self._empty(name)]

    def _empty(self, table: str) -> Path:
        return self.file("parts/empty", f"{table}.parquet")


def _part(number: int) -> str:
    return f"parts/part-{number:012d}"


def _write_table(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(exist_ok=True)
    with whole_file(path) as file:  # Parquet's own Arrow schema is left out: Spark and DuckDB read the plain types
        pq.write_table(table, file, compression="zstd", store_schema=False)
