"""Fast bytes from dumps, and a quick look through a whole one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from hynt.errors import DataError, not_installed
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.lines import whole_lines
from hynt.formats.opening import ByteStream, compression_of, open_bytes, special, unreadable

LONGEST_LINE = 256 << 20
"""The longest lines of Wikidata are near 30 MB."""


# Fast bytes from dumps: gzip by ISA-L, bzip2 on several threads, the rest as every reader opens it.
#
# A dump is read for hours, so its decompression is worth two libraries of its own (the extra `create`).

_EXPANSION = 2000
"""Sorted RDF packs far better than text for people: only absurd ratios are taken for a bomb."""


class DumpStream:
    """The decompressed bytes of a dump, and how many bytes of the file they took so far."""

    def __init__(self, path: Path, start: int = 0, threads: int = 0) -> None:
        self._path = path
        compression = _compression(path)
        self._stream: ByteStream
        self._taken: Callable[[], int]
        self._errors: tuple[type[Exception], ...] = (OSError, ValueError, RuntimeError)
        if compression == "gzip":
            self._stream, self._taken = self._gzip()
        elif compression == "bzip2":
            self._stream, self._taken = self._bzip2(threads or os.cpu_count() or 1)
        else:
            # Zstandard, and a clear word for archives that nobody reads.
            report = ReadReport()
            self._stream = open_bytes(path, ReadOptions(max_expansion=_EXPANSION), report)
            self._taken = lambda: report.bytes_read
            if not compression:
                self._stream.close()
                file = _opened(path)
                file.seek(start)
                self._stream, self._taken = file, file.tell

    @property
    def bytes_read(self) -> int:
        """Bytes taken from the file."""
        return self._taken()

    def read(self, size: int) -> bytes:
        """`size` bytes, or fewer at the end only: what is read never depends on how the archive is cut."""
        pieces = []
        missing = size
        while missing:
            piece = self._read_some(missing)
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        self._stream.close()

    def _read_some(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except EOFError:
            raise self._broken("ends too early") from None
        except self._errors as problem:
            # rapidgzip has one exception without a word for an archive that ends too early.
            raise self._broken("is cut off or damaged" if isinstance(problem, RuntimeError) else "is damaged") from None

    def _gzip(self) -> tuple[ByteStream, Callable[[], int]]:
        try:
            from isal import igzip, isal_zlib
        except ImportError:
            raise not_installed("isal", "create", what="a dump in gzip") from None
        self._errors = (*self._errors, cast(type[Exception], isal_zlib.error))
        file = _opened(self._path)
        return _GzipFile(igzip.IGzipFile(fileobj=file), file), file.tell  # type: ignore[no-untyped-call]

    def _bzip2(self, threads: int) -> tuple[ByteStream, Callable[[], int]]:
        try:
            import rapidgzip
        except ImportError:
            raise not_installed("rapidgzip", "create", what="a dump in bzip2") from None
        try:
            stream = rapidgzip.IndexedBzip2File(str(self._path), parallelization=threads)
        except (RuntimeError, ValueError):
            raise self._broken("is damaged") from None
        return stream, lambda: int(stream.raw.bz2reader.tell_compressed()) // 8  # it counts bits

    def _broken(self, what: str) -> DataError:
        return DataError(
            f"the compressed data {what}.",
            where=str(self._path),
            advice="The file is incomplete or was changed: get it again.",
        )


class _GzipFile:
    """A gzip stream that closes its file."""

    def __init__(self, stream: ByteStream, file: BinaryIO) -> None:
        self.read = stream.read
        self._both = (stream, file)

    def close(self) -> None:
        for opened in self._both:
            opened.close()


def is_compressed(path: Path) -> bool:
    """Whether a file has to be read from its start."""
    return bool(_compression(path))


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as problem:
        raise unreadable(path, problem) from None


def _compression(path: Path) -> str:
    if not path.is_file():
        raise special(path)
    with _opened(path) as file:
        try:
            return compression_of(file.read(8))
        except OSError as problem:
            raise unreadable(path, problem) from None


# A quick look through a whole dump for lines with certain bytes, before it is parsed: bound by decompression.


@dataclass(frozen=True)
class Scan:
    """The files of a dump, and who is told how many bytes of them were searched."""

    files: list[Path]
    tell: Callable[[int], None] = lambda taken: None

    def lines_with(self, *needles: bytes) -> Iterator[bytes]:
        """Every line that holds one of the needles; a line that holds two comes once for each."""
        before = 0
        for path in self.files:
            stream = DumpStream(path)
            try:
                for block in whole_lines(stream.read, longest=LONGEST_LINE):
                    for needle in needles:
                        yield from _found(block.data, needle)
                    self.tell(before + stream.bytes_read)
            finally:
                stream.close()
            before += path.stat().st_size


def _found(data: bytes, needle: bytes) -> Iterator[bytes]:
    place = data.find(needle)
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        if end < 0:
            end = len(data)
        yield data[start:end]
        place = data.find(needle, end)
