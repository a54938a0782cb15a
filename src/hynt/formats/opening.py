"""Opening files: their bytes as a stream, plain or compressed, text as lines, and lines as facts: the loop that every
line format shares.

Compression is recognised by a file's first bytes, not by its name. What goes wrong with a file as a whole is a
`DataError` that names it. Work goes block by block: a block without anything suspicious is decoded and split at once;
only a block with a bad byte is looked at line by line. So checking costs little, and memory is one block or one line,
whichever is longer.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Protocol, cast

from hynt.errors import DataError, RecordProblem
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.values import CONTROL_CHARACTERS, check_finite, empty_name, parse_number
from hynt.graph.fact import Fact, Number
from hynt.limits import WATCHED_OUTPUT
from hynt.names import named_twice, shortened

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


BLOCK_BYTES = 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CONTROL_BYTES = CONTROL_CHARACTERS.encode("ascii")


def text_lines(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[str]:
    """The lines of a UTF-8 file, without their ends. Lines end with \\n or \\r\\n and nothing else.

    Keeps `report.file` and `report.line` current. A line that is no clean text is counted as read and rejected, and the
    rest is read on.
    """
    report.file, report.line = str(path), 0
    number = 0
    for block in _blocks(path, options, report):
        lines = _clean_lines(block)
        if lines is None:
            for raw in block.split(b"\n"):
                number += 1
                report.line = number
                try:
                    line = _decoded(raw)
                except RecordProblem as problem:
                    report.read += 1
                    report.reject(problem)
                    continue
                yield line
        else:
            for line in lines:
                number += 1
                report.line = number
                yield line


def facts_from_lines(
    path: Path, options: ReadOptions, report: ReadReport, parse: Callable[[str], Fact | None]
) -> Iterator[Fact]:
    """The facts of a file with one record per line. `parse` gives None for a line that is no record, as a blank one."""
    for line in text_lines(path, options, report):
        try:
            fact = parse(line)
        except RecordProblem as problem:
            report.read += 1
            report.reject(problem)
            continue
        if fact is not None:
            report.read += 1
            report.kept += 1
            yield fact


def _blocks(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[bytes]:
    """Whole lines, many at a time, each block without its last line end."""
    limit = options.max_line_bytes
    with closing(open_bytes(path, options, report)) as stream:
        pending = bytearray()
        first = True
        while data := stream.read(BLOCK_BYTES):
            if first:
                if data.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise DataError("is UTF-16 text.", where=str(path), advice="Save it as UTF-8.")
                data = data.removeprefix(_BYTE_ORDER_MARK)
                first = False
            end = data.rfind(b"\n")
            if end < 0:
                pending += data
            else:
                pending += data[:end]
                block = bytes(pending)
                pending = bytearray(data[end + 1 :])
                _refuse_long_line(block, limit, report)
                yield block
            if len(pending) > limit:
                raise _long_line(limit, f"{report.file}:{report.line + 1}")
        if pending:
            _refuse_long_line(bytes(pending), limit, report)
            yield bytes(pending)


def _refuse_long_line(block: bytes, limit: int, report: ReadReport) -> None:
    if len(block) > limit:
        for index, raw in enumerate(block.split(b"\n"), start=1):
            if len(raw) > limit:
                raise _long_line(limit, f"{report.file}:{report.line + index}")


def _long_line(limit: int, where: str) -> DataError:
    return DataError(
        f"a line is longer than {limit:,} bytes.",
        where=where,
        advice="A record is one line: check that this is a text file with one fact per line.",
    )


def _clean_lines(block: bytes) -> list[str] | None:
    """All lines of a block that is clean text, or None where a line has to be looked at."""
    if len(block.translate(None, _CONTROL_BYTES)) != len(block):
        return None
    if b"\r" in block:
        block = block.removesuffix(b"\r").replace(b"\r\n", b"\n")
        if b"\r" in block:
            return None
    try:
        return block.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None


def _decoded(raw: bytes) -> str:
    raw = raw.removesuffix(b"\r")
    if b"\0" in raw:
        raise RecordProblem(
            "nul-byte", f"byte {raw.index(0) + 1} is NUL.", "The file is damaged or not text: write it again."
        )
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise RecordProblem(
            "not-utf8",
            f"byte {problem.start + 1} is not UTF-8 (0x{raw[problem.start]:02x}).",
            "Save the file as UTF-8.",
        ) from None
    for column, character in enumerate(line, start=1):
        if character == "\r" or character in CONTROL_CHARACTERS:
            raise RecordProblem(
                "control-character",
                f"character {column} is the control character U+{ord(character):04X}.",
                "Remove it: a record is printable text, and its line ends with \\n or \\r\\n.",
            )
    return line


# What `hynt`, `stare` and `tsv` share: head, relation, tail, then pairs of a qualifier relation and its value.

_MAIN = ("head", "relation", "tail")


def wrong_shape(cells: Sequence[str], separator: str) -> RecordProblem:
    """What is wrong with a row that has too few cells, a qualifier without a value, or an empty cell."""
    count = len(cells)
    if count < 3:
        found = "1 column" if count == 1 else f"{count} columns"
        return RecordProblem(
            "missing-columns",
            f"{found} where a fact has at least 3: head, relation, tail.",
            f"Separate them with {separator}.",
        )
    if count % 2 == 0:
        return RecordProblem(
            "qualifier-without-value",
            f"the last qualifier, {shortened(cells[-1])!r}, has no value.",
            "After head, relation and tail come pairs: a qualifier's relation and its value.",
        )
    return empty_name(place(cells.index("")))


def place(index: int) -> str:
    """A column in words: "head", "qualifier 2's value" …"""
    from hynt.graph.fact_table import FIRST_QUALIFIER, qualifier_of  # not before there is a problem: it needs NumPy

    if index < FIRST_QUALIFIER:
        return _MAIN[index]
    return f"qualifier {qualifier_of(index) + 1}'s {'relation' if index % 2 else 'value'}"


def number_as_head(text: str) -> RecordProblem:
    """The problem of a fact about a number: only entities have facts."""
    return RecordProblem(
        "number-as-head",
        f"the head is a number: {shortened(text)}",
        "A head is an entity: give it a name, or turn the fact around.",
    )


# One JSON object per line, read strictly: what both JSON formats stand on.
#
# Numbers come out as `Number` with the literal as written. Refused: `NaN` and `Infinity`, a key given twice, nesting
# without end.


def read_object(line: str) -> dict[str, Any]:
    """The object on a line; a `RecordProblem` for anything else."""
    record = decoded_json(line)
    if not isinstance(record, dict):
        raise RecordProblem(
            "not-an-object", f"{kind_of(record)} instead of a JSON object.", "Write one object per line."
        )
    return record


def decoded_json(text: str) -> Any:
    """A text of JSON, with every number as a `Number`; a `RecordProblem` where it is none."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as problem:
        raise RecordProblem(
            "bad-json", f"no valid JSON at character {problem.colno}: {problem.msg}.", "Write one JSON object per line."
        ) from None
    except RecursionError:
        raise RecordProblem("too-deep", "the JSON is nested too deeply.", "A fact needs three levels.") from None


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    kinds = {
        str: "a text",
        bool: "true or false",
        list: "a list",
        dict: "an object",
        Number: "a number",
        type(None): "null",
    }
    return kinds.get(type(value), "something else")


def shown(name: str) -> str:
    """A name for a message, shortened."""
    return repr(shortened(name))


def _number(text: str) -> Number:
    return Number(parse_number(text), text)


def _constant(text: str) -> NoReturn:
    check_finite(float(text), text)
    raise AssertionError(text)  # json calls this for NaN and the infinities only


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise RecordProblem(
            "duplicate-key",
            f"the key {shown(str(named_twice(key for key, _ in pairs)))} is given twice.",
            "Give it once, with a list of values if need be.",
        )
    return record


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_float=_number, parse_int=_number, parse_constant=_constant
)
