"""The work folder of a build: its plan, and the parts that are done, each known by the hashes of its files.

A build that was stopped goes on where it was: parts that are whole and belong to the same plan are not made again. Two
engines share the layout, so one can go on with what the other began.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.creation.sources.source import PART_TABLES
from hynt.errors import DataError, UsageError

PLAN = "plan.json"
PARTS = "parts"
LAYOUT = 2
"""Raised whenever parsers or part files change, so that parts of an older version are not mixed in."""


@dataclass(frozen=True)
class PartSummary:
    """What a part holds: where it came from, what was counted, the first bad lines, the units met, its files."""

    number: int
    file: str
    start: int
    end: int
    counts: dict[str, int]  # "scope:reason" → how often
    rejects: list[dict[str, Any]] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # table → SHA-256


def part_name(number: int, ending: str) -> str:
    return f"part-{number:012d}.{ending}"


class BuildFolder:
    """Where parts are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts = folder / PARTS

    def open(self, identity: Mapping[str, Any]) -> None:
        """Make the folder, or take up one that was begun with the same plan."""
        text = json.dumps({"layout": LAYOUT, **identity}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        plan = self.folder / PLAN
        try:
            if plan.exists():
                if plan.read_text(encoding="utf-8") != text:
                    raise UsageError(
                        "this work folder was begun for another build: another dump, other entities or options.",
                        where=str(self.folder),
                        advice="Remove it, or give another with --work.",
                    )
            else:
                if self.folder.exists() and any(self.folder.iterdir()):
                    raise UsageError(
                        "this folder is not empty and no work folder.",
                        where=str(self.folder),
                        advice="Give another with --work.",
                    )
                self.parts.mkdir(parents=True, exist_ok=True)
                write_atomically(plan, text.encode())
            self.parts.mkdir(parents=True, exist_ok=True)
            for leftover in self.parts.glob(".*.partial"):
                leftover.unlink(missing_ok=True)
            for name, schema in PART_TABLES.items():  # so that no table is ever without a file
                empty = self.parts / f"empty.{name}.parquet"
                if not empty.exists():
                    _write_table(empty, pa.Table.from_batches([], schema=schema))
        except OSError as problem:
            raise DataError(f"the work folder cannot be used: {problem.strerror}.", where=str(self.folder)) from None

    def finished(self, number: int, file: str, start: int, end: int) -> PartSummary | None:
        """The part, where it is whole and covers exactly these bytes."""
        try:
            summary = read_summary(self.parts / part_name(number, "json"))
        except (OSError, ValueError, TypeError, KeyError):
            return None
        if (summary.file, summary.start, summary.end) != (file, start, end):
            return None
        for name, digest in summary.files.items():
            path = self.parts / part_name(number, f"{name}.parquet")
            if not path.is_file() or sha256(path) != digest:
                return None
        return summary

    def tables(self, name: str, summaries: list[PartSummary]) -> list[Path]:
        """The files of a table, in the order of their parts; never none."""
        paths = [
            self.parts / part_name(summary.number, f"{name}.parquet") for summary in summaries if name in summary.files
        ]
        return paths or [self.parts / f"empty.{name}.parquet"]


def write_part(parts: Path, summary: PartSummary, tables: Mapping[str, pa.Table]) -> PartSummary:
    """Write the tables that are not empty, then the summary: a part without one does not exist."""
    files = {}
    for name, table in tables.items():
        if table.num_rows:
            path = parts / part_name(summary.number, f"{name}.parquet")
            _write_table(path, table)
            files[name] = sha256(path)
    whole = PartSummary(**{**summary.__dict__, "files": files})
    text = json.dumps(whole.__dict__, ensure_ascii=True, sort_keys=True)
    write_atomically(parts / part_name(summary.number, "json"), text.encode())
    return whole


def read_summary(path: Path) -> PartSummary:
    return PartSummary(**json.loads(path.read_bytes()))


def write_atomically(path: Path, content: bytes) -> None:
    """The whole file or none of it, even when the machine stops."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _write_table(path: Path, table: pa.Table) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    # Parquet's own Arrow schema is left out: Spark and DuckDB read the plain types.
    pq.write_table(table, partial, compression="zstd", store_schema=False)
    partial.replace(path)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
