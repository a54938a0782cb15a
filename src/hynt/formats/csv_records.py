"""The records of a delimited text file, by RFC 4180: fields may be quoted, and a quoted field may hold line breaks.

Linear in the size of the file and bounded in memory: a quote that never closes ends in an error, not in the whole
file being held.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hynt.errors import DataError, RecordProblem
from hynt.formats.report import ReadReport

_CLOSING = re.compile(r'[^"]*+(?:""[^"]*+)*+"')


class CsvRecord(NamedTuple):
    """The fields of a record, and the line it starts on; `problem` where its quotes are wrong."""

    line: int
    fields: list[str]
    problem: RecordProblem | None = None


def csv_records(lines: Iterator[str], delimiter: str, limit: int, report: ReadReport) -> Iterator[CsvRecord]:
    """Split lines into records. `limit` is the longest record in characters."""
    for line in lines:
        if '"' not in line:
            yield CsvRecord(report.line, line.split(delimiter))
            continue
        start = report.line
        try:
            fields = _quoted(line, lines, delimiter, limit, report)
        except RecordProblem as problem:
            yield CsvRecord(start, [], problem)
            continue
        yield CsvRecord(start, fields)


def _quoted(line: str, lines: Iterator[str], delimiter: str, limit: int, report: ReadReport) -> list[str]:
    """The fields of a record that holds quotes; takes further lines while a quote is open."""
    start = f"{report.file}:{report.line}"
    left = limit - len(line)
    fields = []
    at = 0
    while True:
        if not line.startswith('"', at):
            end = line.find(delimiter, at)
            fields.append(line[at:] if end < 0 else line[at:end])
            if end < 0:
                return fields
            at = end + 1
            continue
        closing = _CLOSING.match(line, at + 1)
        if closing is None:
            pieces = _until_closed(lines, left, limit, start)
            left -= sum(map(len, pieces)) + len(pieces)
            line, at = "\n".join([line[at:], *pieces]), 0
            continue
        fields.append(line[closing.start() : closing.end() - 1].replace('""', '"'))
        at = closing.end()
        if at == len(line):
            return fields
        if not line.startswith(delimiter, at):
            raise RecordProblem(
                "bad-quotes",
                f"field {len(fields)} goes on after its closing quote: {line[at : at + 20]!r}.",
                "Write a quote inside a quoted field twice.",
            )
        at += 1


def _until_closed(lines: Iterator[str], left: int, limit: int, start: str) -> list[str]:
    """The lines that follow an open quote, to the first one that closes it: the first with an odd number of quotes."""
    pieces = []
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            raise _never_closed(start, f"within {limit:,} characters")
        pieces.append(line)
        if line.count('"') % 2:
            return pieces
    raise _never_closed(start, "in the rest of the file")


def _never_closed(where: str, how: str) -> DataError:
    return DataError(
        f"a quote that opens in this record is not closed {how}.",
        where=where,
        advice='Close it, or write a quote that is part of the text as "" inside a quoted field.',
    )
