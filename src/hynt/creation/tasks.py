"""What there is to read, and the folder that the work is kept in.

The files of a dump are cut into ranges where a file can be read from its middle. What was made of them lies in
WORK/parts/part-000000000007.json and its tables. Two engines share the layout, so one can go on with what the other
began.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.creation.reading import DumpStream, is_compressed
from hynt.creation.sources.source import PART_TABLES, DumpSource
from hynt.errors import DataError
from hynt.files import WorkFolder, whole_file
from hynt.formats.opening import stat_of, unreadable
from hynt.formats.source_files import COMPRESSION_SUFFIXES, bare_name, natural_order

RANGE_BYTES = 1 << 30
_SAMPLE_BYTES = 1 << 16
_START_BYTES = 4096


class FileRange(NamedTuple):
    """A file, or the lines of it that start in [start, end)."""

    number: int
    path: str
    start: int = 0
    end: int | None = None
    is_document: bool = False  # one JSON document instead of lines


def find_files(source: Path, kind: DumpSource) -> list[Path]:
    """The files of a dump in their natural order: part-2 before part-10."""
    if not source.is_dir():
        return [source]
    try:
        found = [
            path
            for path in source.iterdir()
            if bare_name(path.name).endswith(kind.suffixes) and not path.name.startswith(".")
        ]
    except OSError as problem:
        raise unreadable(source, problem) from None
    if not found:
        wanted = " or ".join(f"*{suffix}" for suffix in kind.suffixes)
        raise DataError(
            f"no files of a {kind.name} dump in this folder: looked for {wanted}, plain or with "
            f"{', '.join(COMPRESSION_SUFFIXES)}.",
            where=str(source),
            advice="Give the dump itself, or the folder that holds its parts.",
        )
    by_name: dict[str, Path] = {}
    for path in sorted(found, key=lambda path: natural_order(path.name)):
        rival = by_name.setdefault(bare_name(path.name), path)
        if rival is not path:
            raise DataError(
                f"{rival.name} and {path.name} look like the same part twice.",
                where=str(source),
                advice="Keep one of them in the folder.",
            )
    return list(by_name.values())


def plan_tasks(files: list[Path], kind: DumpSource, range_bytes: int = RANGE_BYTES) -> list[FileRange]:
    """One task per file, and for files that are not compressed one for each range."""
    tasks: list[FileRange] = []
    for path in files:
        size = size_of(path)
        document = kind.is_document(_start(path))
        limits = [0] if document or is_compressed(path) else list(range(0, max(size, 1), range_bytes))
        for start, end in zip(limits, [*limits[1:], None], strict=True):
            tasks.append(FileRange(len(tasks), str(path), start, end, document))
    return tasks


def identity_of(files: list[Path]) -> list[dict[str, Any]]:
    """What tells a dump from another one, without reading all of it."""
    records = []
    for path in files:
        size = size_of(path)
        with path.open("rb") as file:
            hasher = hashlib.sha256(file.read(_SAMPLE_BYTES))
            file.seek(max(size - _SAMPLE_BYTES, 0))
            hasher.update(file.read(_SAMPLE_BYTES))
        records.append({"name": path.name, "bytes": size, "ends_sha256": hasher.hexdigest()})
    return records


def size_of(path: Path) -> int:
    return stat_of(path).st_size


def _start(path: Path) -> bytes:
    stream = DumpStream(path, threads=1)
    try:
        return stream.read(_START_BYTES)
    finally:
        stream.close()


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
