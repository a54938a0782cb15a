"""Bytes as whole lines, and lines as facts: the loop that every line format shares, and what a record of cells or of
JSON may be.

Work goes block by block: a block without anything suspicious is decoded and split at once; only a block with a bad byte
is looked at line by line. So checking costs little, and memory is one block or one line, whichever is longer. Blocks
depend on the bytes alone, never on how fast or in which pieces they came, so that a build that is run again cuts the
same parts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from hynt.errors import DataError, RecordProblem
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.opening import open_bytes
from hynt.formats.values import CONTROL_CHARACTERS, check_finite, empty_name, parse_number
from hynt.graph.fact import Fact, Number
from hynt.names import named_twice, shortened

BLOCK_BYTES = 4 << 20
_TEXT_BYTES = 2**20
"""A block of a text file; dumps are read in larger ones."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CONTROL_BYTES = CONTROL_CHARACTERS.encode("ascii")


class LineBlock(NamedTuple):
    """Whole lines, without the last line's end."""

    offset: int  # of the first byte, in the decompressed file
    data: bytes
    too_long: bool = False  # a line too long to hold started at the offset; its bytes are gone
    cut_off: bool = False  # the last line of the file, which has no end


def whole_lines(
    read: Callable[[int], bytes],
    start: int = 0,
    end: int | None = None,
    longest: int = sys.maxsize,
    block_bytes: int | None = None,
) -> Iterator[LineBlock]:
    """The lines that start in [start, end).

    `read` stands at `start`, or one byte before it where start > 0: that byte tells whether a line starts at `start`,
    so that two ranges that meet share no line and lose none. `block_bytes` are read at a time.
    """
    offset = max(start - 1, 0)  # of what is pending
    pending = bytearray()  # of a line whose end has not come yet
    dropping = start > 0  # whether the line being read is thrown away up to its end
    while data := read(block_bytes or BLOCK_BYTES):
        if offset == 0 and not pending and data.startswith(_BYTE_ORDER_MARK):
            data, offset = data[len(_BYTE_ORDER_MARK) :], len(_BYTE_ORDER_MARK)
        if dropping:
            cut = data.find(b"\n") + 1
            offset += cut or len(data)
            if not cut:
                continue
            data, dropping = data[cut:], False
        last = data.rfind(b"\n")
        if last < 0:
            pending += data
            if len(pending) > longest:
                if end is None or offset < end:
                    yield LineBlock(offset, b"", too_long=True)
                offset += len(pending)
                pending, dropping = bytearray(), True
            continue
        pending += data[:last]
        block, pending = bytes(pending), bytearray(data[last + 1 :])
        if end is not None:
            if offset >= end:
                return
            # A line starts behind each line end: the first one that starts at `end` or later belongs to the next range.
            cut = block.find(b"\n", max(end - offset - 1, 0))
            if cut >= 0:
                yield LineBlock(offset, block[:cut])
                return
        yield LineBlock(offset, block)
        offset += len(block) + 1
    if pending and (end is None or offset < end):
        yield LineBlock(offset, bytes(pending), cut_off=True)


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
        for block in whole_lines(stream.read, longest=limit, block_bytes=_TEXT_BYTES):
            if block.offset == 0 and block.data.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise DataError("is UTF-16 text.", where=str(path), advice="Save it as UTF-8.")
            if block.too_long:
                raise _long_line(limit, f"{report.file}:{report.line + 1}")
            _refuse_long_line(block.data, limit, report)
            yield block.data


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
    from hynt.graph.fact_table import position_name  # not before there is a problem: it needs NumPy

    return empty_name(position_name(cells.index("")))


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


def quoted(name: str) -> str:
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
            f"the key {quoted(str(named_twice(key for key, _ in pairs)))} is given twice.",
            "Give it once, with a list of values if need be.",
        )
    return record


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_float=_number, parse_int=_number, parse_constant=_constant
)
