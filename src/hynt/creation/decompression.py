"""Fast bytes from dumps: gzip by ISA-L, bzip2 on several threads, the rest as every reader opens it.

A dump is read for hours, so its decompression is worth two libraries of its own (the extra `create`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from hynt.errors import DataError, UsageError
from hynt.formats.byte_streams import ByteStream, open_bytes, unreadable
from hynt.formats.format import ReadOptions
from hynt.formats.report import ReadReport

_GZIP, _BZIP2 = b"\x1f\x8b", b"BZh"
_EXPANSION = 2000
"""Sorted RDF packs far better than text for people: only absurd ratios are taken for a bomb."""


class DumpStream:
    """The decompressed bytes of a dump, and how many bytes of the file they took so far."""

    def __init__(self, path: Path, start: int = 0, threads: int = 0) -> None:
        self._path = path
        magic = _first_bytes(path)
        self._stream: ByteStream
        self._taken: Callable[[], int]
        self._errors: tuple[type[Exception], ...] = (OSError, ValueError, RuntimeError)
        if magic.startswith(_GZIP):
            self._stream, self._taken = self._gzip()
        elif _is_bzip2(magic):
            self._stream, self._taken = self._bzip2(threads or os.cpu_count() or 1)
        else:
            # Zstandard, and a clear word for archives that nobody reads.
            report = ReadReport()
            self._stream = open_bytes(path, ReadOptions(max_expansion=_EXPANSION), report)
            self._taken = lambda: report.bytes_read
            if not is_compressed(path):
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
            raise missing_extra("isal", "gzip-compressed dumps") from None
        self._errors = (*self._errors, cast(type[Exception], isal_zlib.error))
        file = _opened(self._path)
        return _GzipFile(igzip.IGzipFile(fileobj=file), file), file.tell  # type: ignore[no-untyped-call]

    def _bzip2(self, threads: int) -> tuple[ByteStream, Callable[[], int]]:
        try:
            import rapidgzip
        except ImportError:
            raise missing_extra("rapidgzip", "bzip2-compressed dumps") from None
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
    first = _first_bytes(path)
    zstd = first.startswith(b"\x28\xb5\x2f\xfd") or (first[1:4] == b"\x2a\x4d\x18" and 0x50 <= first[0] <= 0x5F)
    return zstd or first.startswith(_GZIP) or _is_bzip2(first)


def _is_bzip2(magic: bytes) -> bool:
    return magic.startswith(_BZIP2) and magic[3:4].isdigit()


def missing_extra(package: str, purpose: str) -> UsageError:
    """The error where a package of the extra is not installed."""
    return UsageError(f"{purpose} need the package {package}.", advice="Install it with: pip install 'hynt[create]'.")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as problem:
        raise unreadable(path, problem) from None


def _first_bytes(path: Path) -> bytes:
    if not path.is_file():
        raise DataError("is not a regular file.", where=str(path), advice="Give a file or a folder of files.")
    with _opened(path) as file:
        try:
            return file.read(8)
        except OSError as problem:
            raise unreadable(path, problem) from None
