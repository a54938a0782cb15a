"""Opening files: their bytes as a stream, plain or compressed.

Compression is recognised by a file's first bytes, not by its name. What goes wrong with a file as a whole is a
`DataError` that names it.
"""

from __future__ import annotations

import bz2
import gzip
import os
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from hynt.errors import DataError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.limits import WATCHED_OUTPUT

_FOREIGN = (
    (b"PK\x03\x04", "a zip archive", "Unpack it and give the folder."),
    (b"\xfd7zXZ\x00", "xz-compressed", "Unpack it, or compress it with gzip, bzip2 or zstd."),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it and give the folder."),
    (b"Rar!", "a rar archive", "Unpack it and give the folder."),
)


class ByteStream(Protocol):
    """What readers get: bytes to the end, in pieces."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


def open_bytes(path: Path, options: ReadOptions, report: ReadReport) -> ByteStream:
    """The decompressed bytes of a regular file. Bytes taken from the disk are added to `report.bytes_read`."""
    if not stat.S_ISREG(stat_of(path).st_mode):
        raise special(path)
    try:
        source = _CountedFile(path, report)
    except OSError as problem:
        raise unreadable(path, problem) from None
    try:
        return _decompressed(path, source, options)
    except BaseException:
        source.close()
        raise


def special(path: Path) -> DataError:
    """The error for what can be opened and is no file: a pipe, or a device."""
    return DataError("is not a regular file.", where=str(path), advice="Give a file or a folder of files.")


def unreadable(path: Path, problem: OSError) -> DataError:
    """The error for a file that the system does not let us read."""
    reason = problem.strerror or str(problem)
    return DataError(
        f"cannot be read: {reason[:1].lower()}{reason[1:]}.", where=str(path), advice="Check the path and its rights."
    )


def stat_of(path: Path) -> os.stat_result:
    """What a path leads to; an error where there is nothing, or it must not be seen."""
    try:
        return path.stat()
    except OSError as problem:
        raise unreadable(path, problem) from None


def compression_of(first: bytes) -> str:
    """What a file is compressed with, by its first bytes; "" for one that is not."""
    if first.startswith(b"\x1f\x8b"):
        return "gzip"
    if first.startswith(b"BZh") and first[3:4].isdigit() and first[4:6] in (b"\x31\x41", b"\x17\x72", b"\x31", b""):
        return "bzip2"
    skippable = first[1:4] == b"\x2a\x4d\x18" and 0x50 <= first[0] <= 0x5F
    return "zstd" if skippable or first.startswith(b"\x28\xb5\x2f\xfd") else ""


def _decompressed(path: Path, source: _CountedFile, options: ReadOptions) -> ByteStream:
    first = source.peek_start()
    for magic, what, advice in _FOREIGN:
        if first.startswith(magic):
            raise DataError(f"is {what}, which is not read directly.", where=str(path), advice=advice)
    stream: Any
    match compression := compression_of(first):
        case "gzip":
            stream = gzip.GzipFile(fileobj=cast(BinaryIO, source))
        case "bzip2":
            stream = bz2.BZ2File(cast(BinaryIO, source))
        case "zstd":
            import pyarrow as pa

            stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
        case _:
            return source
    return _Checked(path, stream, source, options, compression)


class _CountedFile:
    """A file opened for reading that adds what is read to the report."""

    def __init__(self, path: Path, report: ReadReport) -> None:
        self._file = path.open("rb", buffering=0)
        self._path = path
        self._report = report
        self.taken = 0
        self.closed = False

    def peek_start(self) -> bytes:
        """The first bytes, still to be read."""
        try:
            return os.pread(self._file.fileno(), 6, 0)
        except OSError as problem:
            raise unreadable(self._path, problem) from None

    def read(self, size: int = 2**20) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as problem:
            raise unreadable(self._path, problem) from None
        self.taken += len(data)
        self._report.bytes_read += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self._file.close()
        self.closed = True


class _Checked:
    """A decompressing stream whose failures are `DataError`s and whose output stays in proportion to its input."""

    def __init__(
        self, path: Path, stream: ByteStream, source: _CountedFile, options: ReadOptions, compression: str
    ) -> None:
        self._path, self._stream, self._source = path, stream, source
        self._max_expansion = options.max_expansion
        self._compression = compression
        self._given = 0

    def read(self, size: int, /) -> bytes:
        try:
            data = self._stream.read(size)
        except EOFError:
            raise self._broken("ends too early") from None
        except DataError:
            raise
        except (OSError, zlib.error, ValueError) as problem:
            raise self._broken("ends too early" if "runcated" in str(problem) else "is damaged") from None
        self._given += len(data)
        if self._given > WATCHED_OUTPUT and self._given > self._max_expansion * self._source.taken:
            raise DataError(
                f"unpacks to more than {self._max_expansion} times its size ({self._given:,} bytes so far): "
                "it is taken for an archive bomb.",
                where=str(self._path),
                advice="If you trust it, unpack it yourself and give the unpacked file.",
            )
        return data

    def close(self) -> None:
        self._stream.close()
        self._source.close()

    def _broken(self, what: str) -> DataError:
        return DataError(
            f"the {self._compression} data {what}.",
            where=str(self._path),
            advice="The file is incomplete or was changed: get it again.",
        )
