"""What there is to read: the files of a dump, cut into ranges where a file can be read from its middle."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from hynt.creation.reading import DumpStream, is_compressed
from hynt.creation.sources.source import DumpSource
from hynt.errors import DataError
from hynt.formats.byte_streams import unreadable
from hynt.formats.parts import COMPRESSION_SUFFIXES, bare_name

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
    for path in sorted(found, key=lambda path: _natural(path.name)):
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
    try:
        return os.stat(path).st_size  # noqa: PTH116 - one call for whatever the path is
    except OSError as problem:
        raise unreadable(path, problem) from None


def _start(path: Path) -> bytes:
    stream = DumpStream(path, threads=1)
    try:
        return stream.read(_START_BYTES)
    finally:
        stream.close()


def _natural(name: str) -> list[tuple[int, int, str]]:
    return [(0, int(piece[:18]), piece) if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"(\d+)", name)]
