"""Files of questions: facts with one "?" in each, as JSON lines, tables or Parquet, read batch by batch. No torch here.

A question is written as a fact is in the same format, with "?" where a name would stand: so a batch of questions is a
batch of facts with names, and its columns are those of the `parquet` format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from hynt.asking.written import WrittenParts, WrittenQuestions
from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.inference import fitting
from hynt.formats.parquet import RowReader, broken
from hynt.formats.registry import get_format
from hynt.graph.columns import FULL_SCHEMA, UNREADABLE, bounded_batches
from hynt.graph.fact import Fact
from hynt.graph.vocabulary import Ids

PAIR = FULL_SCHEMA.field("qualifiers").type.value_type


@dataclass(frozen=True)
class RefusedQuestion:
    """A question that cannot be asked, or what is no question at all."""

    number: int  # among the questions of the file, from 1
    line: int  # its line or row, from 1
    problem: UsageError


@dataclass(frozen=True, eq=False)
class FileBatch:
    """Some questions of a file as they were written."""

    questions: WrittenQuestions  # (n,)
    numbers: Ids  # (n,) which question of the file each is, from 1
    lines: Ids  # (n,) its line, or row, from 1
    bad: tuple[RefusedQuestion, ...]  # what stood between them and could not be read

    def __len__(self) -> int:
        return len(self.numbers) + len(self.bad)


class QuestionFile(Protocol):
    """A file that was found to hold questions."""

    path: Path

    def batches(self, size: int, skip: int = 0) -> Iterator[FileBatch]:
        """The questions after the first `skip`, at most `size` at a time; together they are all, in order."""

    def done(self) -> float:
        """How much of the file has been read by the batches so far, from 0 to 1."""


def open_questions(path: Path) -> QuestionFile:
    """The file as its name says: `.parquet`; or text, which may be compressed: JSON lines (`.jsonl`, `.ndjson`,
    `.json`), or a table with a header (`.csv`, `.tsv`, `.tab`).
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(
            f"the file of questions {what}.", where=str(path), advice="Give a .jsonl, .csv or .parquet file."
        )
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in (".gz", ".bz2", ".zst"):
        endings.pop()
    ending = endings[-1] if endings else ""
    if ending in (".parquet", ".pq") and path.suffix.lower() == ending:
        return ParquetQuestions(path)
    if ending in (".jsonl", ".ndjson", ".json"):
        return TextQuestions(path, "jsonl")
    if ending in (".tsv", ".tab") and "csv-edges" not in fitting(path):
        return TextQuestions(path, "tsv")  # our own, whose columns have no names
    if ending in (".csv", ".tsv", ".tab"):
        return TextQuestions(path, "csv-edges")
    raise UsageError(
        "the name does not say what the file holds.",
        where=str(path),
        advice="Questions are read from .jsonl, .csv and .tsv files (also .jsonl.gz, .csv.zst), and .parquet files.",
    )


# Questions as lines of text, as facts are written: {"head": "Japan", "relation": "capital", "tail": "?"}, or a table
# with the columns head, relation and tail, and one for each qualifier.


@dataclass
class _Lines(ReadReport):
    """A report that keeps each rejected line until it is asked for, not only the first few."""

    waiting: list[tuple[int, RecordProblem]] = field(default_factory=list)

    def reject(self, problem: RecordProblem, *, where: str = "") -> None:
        super().reject(problem, where=where)
        self.waiting.append((self.line, problem))


class TextQuestions:
    """A file of one question per line, in one of our formats; blank lines are none."""

    def __init__(self, path: Path, format_name: str) -> None:
        self.path = path
        self._read = get_format(format_name).read
        self._size = max(1, path.stat().st_size)
        self._report = _Lines()
        for _ in self._facts():  # a table whose header lacks a column is refused at once
            break

    def done(self) -> float:
        """By the bytes taken from the file."""
        return min(1.0, self._report.bytes_read / self._size)

    def batches(self, size: int, skip: int = 0) -> Iterator[FileBatch]:
        """Memory holds one batch. Lines that are skipped are parsed, and nothing more."""
        self._report = _Lines()
        facts: list[Fact] = []
        numbers: list[int] = []
        lines: list[int] = []
        bad: list[RefusedQuestion] = []
        count = 0

        def batch() -> FileBatch:
            made = FileBatch(
                WrittenQuestions.of(facts),
                np.array(numbers, dtype=np.int64),
                np.array(lines, dtype=np.int64),
                tuple(bad),
            )
            for each in (facts, numbers, lines, bad):
                each.clear()
            return made

        for fact in self._facts():
            rejected, self._report.waiting = self._report.waiting, []
            for line, problem in rejected:  # they stand before the fact
                count += 1
                if count > skip:
                    bad.append(RefusedQuestion(count, line, UsageError.of(problem)))
                    if len(facts) + len(bad) == size:
                        yield batch()
            if fact is None:
                break
            count += 1
            if count > skip:
                facts.append(fact)
                numbers.append(count)
                lines.append(self._report.line)
                if len(facts) + len(bad) == size:
                    yield batch()
        if facts or bad:
            yield batch()

    def _facts(self) -> Iterator[Fact | None]:
        """The facts, and at the end None, so that what was rejected last is seen."""
        try:
            yield from self._read(self.path, ReadOptions(), self._report)
        except DataError as problem:  # a file that breaks off, a line without end: wrong input, as a bad question is
            if "--" in problem.advice:  # which an import has
                problem.advice = "Its first line names the columns: head, relation and tail, then those of qualifiers."
            raise UsageError.of(problem) from None
        yield None


# Questions as Parquet, in the shapes that facts have: whole columns, no Python for each question.

_BATCH_ROWS = 16_384


class ParquetQuestions:
    """A file of one question per row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read, self._total = 0, 1
        try:
            with parquet.ParquetFile(path) as file:
                self._rows = RowReader(file.schema_arrow, str(path), {})  # refuses what is no table of facts
                self._total = file.metadata.num_rows
        except DataError as problem:
            raise UsageError.of(problem) from None
        except UNREADABLE as problem:
            raise UsageError.of(broken(path, problem)) from None

    def done(self) -> float:
        """The share of the file's rows that were read, from 0 to 1."""
        return self._read / max(1, self._total)

    def batches(self, size: int, skip: int = 0) -> Iterator[FileBatch]:
        """Memory holds one batch, and the row group that it is cut from."""
        self._read = 0
        waiting: list[pa.RecordBatch] = []
        try:
            with parquet.ParquetFile(self.path) as file:
                where, held = str(self.path), self.path.stat().st_size
                for batch in bounded_batches(file, min(size, _BATCH_ROWS), self._rows.columns, held, where):
                    before, self._read = self._read, self._read + batch.num_rows
                    if self._read <= skip:
                        continue
                    waiting.append(batch.slice(max(0, skip - before)))
                    while sum(len(one) for one in waiting) >= size:
                        whole = pa.Table.from_batches(waiting).combine_chunks()
                        left = whole.slice(size)
                        waiting = left.to_batches()
                        yield self._written(whole.slice(0, size), self._read - len(left) - size)
        except UNREADABLE as problem:
            raise UsageError.of(broken(self.path, problem)) from None
        left = pa.Table.from_batches(waiting) if waiting else None
        if left is not None and len(left):
            yield self._written(left, self._read - len(left))

    def _written(self, table: pa.Table, before: int) -> FileBatch:
        number = np.arange(before + 1, before + len(table) + 1, dtype=np.int64)
        return FileBatch(_written(table, self._rows.is_plain), number, number, ())


def _written(table: pa.Table, is_plain: bool) -> WrittenQuestions:
    nothing = pa.nulls(len(table))

    def column(name: str, kind: pa.DataType) -> pa.Array:
        found = table[name].combine_chunks() if name in table.schema.names else nothing
        return _as(found, kind)

    entity, number = column("tail_entity", pa.string()), column("tail_number", pa.float64())
    if is_plain:
        is_number = pa.types.is_integer(table["tail"].type) or pa.types.is_floating(table["tail"].type)
        tail = table["tail"].combine_chunks()
        entity = _as(nothing if is_number else tail, pa.string())
        number = _as(tail if is_number else nothing, pa.float64())
    unit = column("tail_unit" if "tail_unit" in table.schema.names else "unit", pa.string())
    lists = _qualifiers(table)
    relations, *values = lists.flatten().flatten()
    tails = (entity, number, column("tail_literal", pa.string()), unit)
    names = pa.concat_arrays([column("relation", pa.string()), relations])
    return WrittenQuestions(
        _names(column("head", pa.string())),
        _names(names),
        WrittenParts.of_columns(*(pa.concat_arrays(both) for both in zip(tails, values, strict=True))),
        lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64),
    )


def _names(column: pa.Array) -> WrittenParts:
    nothing = pa.nulls(len(column), pa.string())
    return WrittenParts.of_columns(column, pa.nulls(len(column), pa.float64()), nothing, nothing)


def _qualifiers(table: pa.Table) -> pa.ListArray:
    """The lists, with every column there is, and none where there is null."""
    if "qualifiers" not in table.schema.names or pa.types.is_null(table["qualifiers"].type):
        empty = pa.StructArray.from_arrays([pa.array([], column.type) for column in PAIR], fields=list(PAIR))
        return pa.ListArray.from_arrays(pa.array([0] * (len(table) + 1), pa.int32()), empty)
    lists = table["qualifiers"].combine_chunks()
    sizes = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(sizes).cast(pa.int32())])
    pairs = pc.list_flatten(lists)
    names = [column.name for column in pairs.type]
    fields = []
    for column in PAIR:
        found = pc.struct_field(pairs, column.name) if column.name in names else pa.nulls(len(pairs))
        fields.append(_as(found, column.type))  # a pair that is null has null in every column
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, fields=list(PAIR)))


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind, safe=False)  # large integers round, as in Python
