"""Opening text files as lines, and lines as facts: the loop that every line format shares.

Work goes block by block: a block without anything suspicious is decoded and split at once; only a block with a bad byte
is looked at line by line. So checking costs little, and memory is one block or one line, whichever is longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from hynt.errors import DataError, RecordProblem
from hynt.formats.byte_streams import open_bytes, unreadable
from hynt.formats.format import ReadOptions
from hynt.formats.names import CONTROL_CHARACTERS
from hynt.formats.report import ReadReport
from hynt.graph.fact import Fact

__all__ = ["facts_from_lines", "open_bytes", "text_lines", "unreadable"]

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
    """The facts of a file with one record a line. `parse` gives None for a line that is no record, as a blank one."""
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
                _refuse_utf16(path, data)
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
        advice="A record is one line: check that this is a text file with one fact a line.",
    )


def _refuse_utf16(path: Path, start: bytes) -> None:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError("is UTF-16 text.", where=str(path), advice="Save it as UTF-8.")


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
