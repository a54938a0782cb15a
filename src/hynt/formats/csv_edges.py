"""The format `csv-edges`: an edge list with a header, or a property graph exported by Neo4j.

An edge is a record: head, relation, tail, its unit, and every other column that is not empty as a qualifier. In a file
of nodes each typed property and each label of a node is a record. A column holds entities unless the header or the user
says numbers or dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from hynt.errors import DataError, RecordProblem
from hynt.formats.csv_columns import (
    DELIMITERS,
    ColumnKind,
    FileColumns,
    NameColumn,
    ValueColumn,
    choose_delimiter,
    read_header,
)
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.lines import text_lines
from hynt.formats.source_files import bare_name
from hynt.formats.values import check_name, read_written_date, read_written_quantity
from hynt.graph.fact import DATE_UNIT, Fact, Qualifier, Value
from hynt.graph.units.conversion import lookup
from hynt.names import advice_on, as_given, shortened

NODE_LABEL = ":LABEL"
"""The relation between a node and its labels."""
LABEL_COLUMNS = ("name", "title", "label", "displayName", "display_name")
"""What the text that people call a node by is called, unless the user says."""
_DAY_AND_TIME = re.compile(r"[-+]?\d{4,}-\d\d-\d\dT")
_ZONE_NAME, _ZONE_HOURS = re.compile(r"\[[^\]]*\]$"), re.compile(r"([+-]\d\d)(\d\d)$")
_WATCHED = 1_000_000
"""Heads of a wide table that are remembered, to tell of those that come again."""
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "unknown", "..", "-", "–", "—", "?"})


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of an edge list or a Neo4j export."""
    lines = text_lines(path, options, report)
    header = next(lines, None)
    if header is None and not report.line:
        raise DataError("the file is empty.", where=str(path), advice="The first line names the columns.")
    if header is None or report.line != 1:  # else the first good line would be taken for the header
        raise DataError("the header is not clean UTF-8 text.", where=f"{path}:1", advice="Save the file as UTF-8.")
    delimiter = choose_delimiter(bare_name(path.name).lower(), header, options)
    records = csv_records(chain([header], lines), delimiter, options.max_line_bytes, report)
    first = next(records)
    if first.problem is not None:
        raise DataError.of(first.problem, f"{path}:1")
    layout = read_header(first.fields, options, path)
    rows = _EdgeRows(layout, options, report, array_delimiter="" if delimiter == ";" else ";")
    for record in records:
        if record.fields == [""]:
            continue  # a blank line
        if record.fields == first.fields:  # files that were joined
            report.line = record.line
            report.leave_out("repeated-header", "the row repeats the header.")
            continue
        end = report.line
        yield from rows.facts(record)
        report.line = end  # a record may span lines; the problem names its first, reading goes on after its last
    rows.note_what_was_overlooked()


class _EdgeRows:
    """Turns rows into facts, by the layout that the header gave."""

    def __init__(self, layout: FileColumns, options: ReadOptions, report: ReadReport, array_delimiter: str) -> None:
        self._layout, self._options, self._report = layout, options, report
        self._array_delimiter = array_delimiter
        self._separator = DELIMITERS.get(options.several_by, options.several_by) or ";"
        self._several = frozenset(options.several)
        self._heads: dict[str, int] = {}  # of a table with one row for each thing: the line it was first on
        self._recurring: dict[str, tuple[int, int]] = {}
        self._listed: dict[str, set[str]] = {}  # by column, some cells that seem to hold several values
        columns = layout.properties
        label = next(
            (one for name in LABEL_COLUMNS for one in columns if one.name == name and one.kind == "entity"), None
        )
        self._label = layout.label or (NameColumn(label.position) if label and layout.node else None)
        names = {column.name for column in (*layout.properties, *layout.qualifiers)}
        self._unused = {name for name in options.kinds if name not in names and layout.tail_kind == "entity"}

    def facts(self, record: CsvRecord) -> Iterator[Fact]:
        """The facts of a row, each counted as read and kept or rejected."""
        self._report.line = record.line
        layout, fields = self._layout, record.fields
        if record.problem is not None:
            self._reject(record.problem)
        elif len(fields) != layout.width:
            self._reject(
                RecordProblem(
                    "wrong-columns",
                    f"the row has {len(fields)} columns, the header {layout.width}.",
                    "Quote a field that holds the delimiter, and write empty fields.",
                )
            )
        elif layout.node is not None and (layout.head is None or fields[layout.node.position]):
            yield from self._node(layout.node, fields)
        elif layout.head and layout.tail:
            yield from self._counted(self._edge, layout.head, layout.relation, layout.tail, fields)
        elif layout.head:
            yield from self._wide(layout.head, fields)

    def note_what_was_overlooked(self) -> None:
        """Different things of one name, cells that seem to hold several values, and names given with --numeric or
        --dates that fit nothing in the file."""
        if self._recurring:
            name, (first, second) = next(iter(self._recurring.items()))
            names = f"{len(self._recurring):,} names" if len(self._recurring) > 1 else "a name"
            stand = "stand" if len(self._recurring) > 1 else "stands"
            self._report.hints.append(
                f"{names} of {self._options.head} {stand} in more than one row, such as {shortened(name)} in lines "
                f"{first} and {second}: each becomes one entity with the facts of all its rows. If these are different "
                "things, add a column of ids, and say --head ID --label NAME; if a column such as the year tells the "
                "rows apart: --qualifier YEAR"
            )
        listed = [column for column, cells in self._listed.items() if len(cells) > 1]
        if listed:
            example = min(self._listed[listed[0]])
            self._report.hints.append(
                f"cells of {', '.join(listed)} seem to hold several values, such as {shortened(example)}. If they do, "
                f"add: --several {as_given(listed)}{' --several-by pipe' if ';' not in example else ''}"
            )
        for name in sorted(self._unused):
            columns = [column.name for column in (*self._layout.properties, *self._layout.qualifiers)]
            advice = advice_on(name, columns) if columns else "Check its spelling."
            self._report.note("unused-name", f"{name!r} is neither a column nor a relation here.", advice)

    def _edge(self, head: NameColumn, relation: NameColumn | None, tail: NameColumn, fields: list[str]) -> Fact:
        subject = _identity(fields, head, "head")
        self._name(subject, fields)
        name = check_name(self._options.relation_name if relation is None else fields[relation.position], "relation")
        kind = self._layout.tail_kind
        if kind == "entity" and name in self._options.kinds:
            kind = self._options.kinds[name]
            self._unused.discard(name)
        value = _identity(fields, tail, "tail") if kind == "entity" else self._read(fields[tail.position], kind)
        unit = fields[self._layout.unit.position].strip() if self._layout.unit else ""
        return Fact(
            subject,
            name,
            _in_unit(value, unit) if unit else value,
            tuple(self._qualifiers(self._layout.properties, fields)),
        )

    def _wide(self, place: NameColumn, fields: list[str]) -> Iterator[Fact]:
        """A fact for each column of a row that is not empty, with the same qualifiers."""
        try:
            head = _identity(fields, place, "head")
            self._name(head, fields)
            if not self._layout.qualifiers:
                self._look_out_for(head)
            qualifiers = tuple(self._qualifiers(self._layout.qualifiers, fields))
        except RecordProblem as problem:
            self._reject(problem)
            return
        for column in self._layout.properties:
            for text in self._texts(column, fields):
                if text.strip().lower() in _MISSING:
                    self._report.leave_out("missing-value", f"{column.name!r} is {text!r}.")
                else:
                    yield from self._counted(self._property, head, column.name, text, column.kind, qualifiers)

    def _qualifiers(self, columns: tuple[ValueColumn, ...], fields: list[str]) -> Iterator[Qualifier]:
        for column in columns:
            for text in self._texts(column, fields):
                yield Qualifier(column.name, self._read(text, column.kind))

    def _look_out_for(self, head: str) -> None:
        """Remember the first line of a name, and the names that come again; only so many are watched."""
        first = self._heads.setdefault(head, self._report.line) if len(self._heads) < _WATCHED else None
        if first not in (None, self._report.line) and head not in self._recurring:
            self._recurring[head] = (first, self._report.line)

    def _name(self, entity: str, fields: list[str]) -> None:
        """Remember what people call an entity, where a column says it."""
        if self._label is not None and (label := fields[self._label.position].strip()):
            self._report.labels.setdefault(entity, check_name(label, "label"))

    def _read(self, text: str, kind: ColumnKind) -> Value:
        return read_value(text, kind, self._options)

    def _property(self, head: str, name: str, text: str, kind: ColumnKind, pairs: tuple[Qualifier, ...] = ()) -> Fact:
        try:
            return Fact(head, name, self._read(text, kind), pairs)
        except RecordProblem as problem:
            raise RecordProblem(problem.reason, f"{shortened(name)}: {problem.what}", problem.advice) from None

    def _node(self, place: NameColumn, fields: list[str]) -> Iterator[Fact]:
        """A fact for each label, number and date of a node."""
        try:
            node = _identity(fields, place, "node id")
            self._name(node, fields)
        except RecordProblem as problem:
            self._reject(problem)
            return
        labels = self._layout.labels
        for label in filter(None, re.split("[;:]", fields[labels.position]) if labels else ()):
            yield from self._counted(self._property, node, NODE_LABEL, label, "entity")
        for column in self._layout.properties:
            if self._label is not None and column.position == self._label.position:
                continue
            for text in self._texts(column, fields):
                if column.kind == "entity":
                    self._report.leave_out(
                        "text-property",
                        f"the text {column.name!r} of a node is left out.",
                        "If it holds numbers or dates, name it with --numeric or --dates.",
                    )
                else:
                    yield from self._counted(self._property, node, column.name, text, column.kind)

    def _texts(self, column: ValueColumn, fields: list[str]) -> list[str]:
        text = fields[column.position]
        if column.name in self._several:
            return [part for part in map(str.strip, text.split(self._separator)) if part]
        if column.is_array and self._array_delimiter:
            return [part for part in text.split(self._array_delimiter) if part]
        if column.kind == "entity" and (";" in text or "|" in text):
            seen = self._listed.setdefault(column.name, set())
            if len(seen) < 2 and all(map(str.strip, text.split(";" if ";" in text else "|"))):
                seen.add(text)
        return [text] if text else []

    def _counted(self, make: Callable[..., Fact], *parts: object) -> Iterator[Fact]:
        self._report.read += 1
        try:
            fact = make(*parts)
        except RecordProblem as problem:
            self._report.reject(problem)
            return
        self._report.kept += 1
        yield fact

    def _reject(self, problem: RecordProblem) -> None:
        self._report.read += 1
        self._report.reject(problem)


def _identity(fields: list[str], place: NameColumn, what: str) -> str:
    """A node's name: its id, after its id space where the header gives one, since ids count only within it."""
    name = check_name(fields[place.position], what)
    return f"{place.space}:{name}" if place.space else name


def _in_unit(value: Value, unit: str) -> Value:
    """A number, or a date, in the unit that stands beside it: the unit says that it is one."""
    if isinstance(value, str):
        text = value
        try:
            value = read_written_date(text) if unit == DATE_UNIT else read_written_quantity(text)
        except RecordProblem as problem:
            raise RecordProblem(
                "unit-without-number",
                f"the tail {shortened(text)!r} has the unit {shortened(unit)!r} and is not a number.",
                f"Leave the unit empty where the tail is a name. {problem.advice}",
            ) from None
    if value.unit == DATE_UNIT and unit != DATE_UNIT:
        raise RecordProblem(
            "unit-of-date", f"a date has no unit, and here it is {shortened(unit)!r}.", "Leave the unit empty."
        )
    if value.unit not in ("", DATE_UNIT) and lookup(value.unit) != lookup(unit):
        raise RecordProblem(
            "unit-twice",
            f"the tail says {shortened(value.unit)!r}, and the unit beside it is {shortened(unit)!r}.",
            "Say it once.",
        )
    return value._replace(unit=unit)


def read_value(text: str, kind: ColumnKind, options: ReadOptions) -> Value:
    """A text as what its column holds."""
    if kind == "number":
        return read_written_quantity(text, options.number_format)
    if kind == "date":
        # Neo4j writes zones as +0100 and [Europe/Berlin]; ISO 8601 as +01:00.
        written = _ZONE_HOURS.sub(r"\1:\2", _ZONE_NAME.sub("", text)) if _DAY_AND_TIME.match(text) else text
        return read_written_date(written, options.date_format)._replace(literal=text)
    return check_name(text, "value")


# The records of a delimited text file, by RFC 4180: fields may be quoted, and a quoted field may hold line breaks.
#
# Linear in the size of the file and bounded in memory: a quote that never closes ends in an error, not in the whole
# file being held.

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
