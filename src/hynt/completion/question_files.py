"""Files of questions: facts with one "?" in each, as JSON lines or Parquet, read batch by batch. No torch here.

A question is written as a fact is in the same format, with "?" where a name would stand: so a batch of questions is a
batch of facts with names, and its columns are those of the `parquet` format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats import jsonl
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.parquet import RowReader
from hynt.graph.fact import Fact, Number

_VALUE = [("entity", pa.string()), ("number", pa.float64()), ("literal", pa.string()), ("unit", pa.string())]
PAIR = pa.struct([("relation", pa.string()), *_VALUE])
QUESTION_SCHEMA = pa.schema(
    [
        ("head", pa.string()),
        ("relation", pa.string()),
        *((f"tail_{name}", kind) for name, kind in _VALUE),
        ("qualifiers", pa.list_(PAIR)),
    ]
)


@dataclass(frozen=True)
class BadQuestion:
    """What is no question at all."""

    number: int  # among the questions of the file, from 1
    line: int  # its line or row, from 1
    problem: UsageError


@dataclass(frozen=True, eq=False)
class WrittenQuestions:
    """Some questions of a file as they were written."""

    columns: pa.RecordBatch  # of QUESTION_SCHEMA, (n,) questions
    numbers: pa.Array  # (n,) int64 which question of the file each is, from 1
    lines: pa.Array  # (n,) int64 its line, or row, from 1
    bad: tuple[BadQuestion, ...]  # what stood between them and could not be read

    def __len__(self) -> int:
        return len(self.numbers) + len(self.bad)

    def parts(self, row: int) -> tuple[Any, Any, Any, list[tuple[Any, Any]]]:
        """A question as `ask` takes it."""
        one: dict[str, Any] = {name: self.columns.column(name)[row].as_py() for name in QUESTION_SCHEMA.names}
        tail = _value({name: one[f"tail_{name}"] for name, _ in _VALUE}, "tail")
        pairs = [pair or {} for pair in one["qualifiers"] or ()]
        written = [
            (pair.get("relation"), _value(pair, f"value of qualifier {number}")) for number, pair in enumerate(pairs, 1)
        ]
        return one["head"], one["relation"], tail, written


class QuestionFile(Protocol):
    """A file that was found to hold questions."""

    path: Path

    def batches(self, size: int, skip: int = 0) -> Iterator[WrittenQuestions]:
        """The questions after the first `skip`, at most `size` at a time; together they are all, in order."""
        ...

    def done(self) -> float:
        """How much of the file has been read by the batches so far, from 0 to 1."""
        ...


def open_questions(path: Path) -> QuestionFile:
    """The file as its name says: `.parquet`, or `.jsonl` (also `.ndjson`, `.json`), which may be compressed."""
    from hynt.completion.question_files import JsonLines, ParquetQuestions

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"the file of questions {what}.", where=str(path), advice="Give a .jsonl or .parquet file.")
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in (".gz", ".bz2", ".zst"):
        endings.pop()
    if endings and endings[-1] in (".jsonl", ".ndjson", ".json"):
        return JsonLines(path)
    if endings and endings[-1] in (".parquet", ".pq") and path.suffix.lower() == endings[-1]:
        return ParquetQuestions(path)
    raise UsageError(
        "the name does not say what the file holds.",
        where=str(path),
        advice="Questions are read from .jsonl (also .jsonl.gz, .jsonl.zst) and .parquet files.",
    )


def _value(given: dict[str, Any], what: str) -> Any:
    """An entity's name, a `Number`, or None where there is nothing."""
    entity, number = given.get("entity"), given.get("number")
    if number is None:
        return entity
    if entity is not None:
        raise UsageError(
            f"the {what} has an entity and a number.",
            where=what,
            advice="Give one of the two, and leave the other null.",
        )
    literal = given.get("literal")
    return Number(number, repr(number) if literal is None else literal, given.get("unit") or "")


# Questions as JSON lines, in the project's own form: {"head": "Japan", "relation": "capital", "tail": "?"}.


@dataclass
class _Lines(ReadReport):
    """A report that keeps each rejected line until it is asked for, not only the first few."""

    waiting: list[tuple[int, RecordProblem]] = field(default_factory=list)

    def reject(self, problem: RecordProblem, *, where: str = "") -> None:
        super().reject(problem, where=where)
        self.waiting.append((self.line, problem))


class JsonLines:
    """A file of one question a line; blank lines are none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = max(1, path.stat().st_size)
        self._report = _Lines()

    def done(self) -> float:
        """By the bytes taken from the file."""
        return min(1.0, self._report.bytes_read / self._size)

    def batches(self, size: int, skip: int = 0) -> Iterator[WrittenQuestions]:
        """Memory holds one batch. Lines that are skipped are parsed, and nothing more."""
        self._report = _Lines()
        facts: list[Fact] = []
        numbers: list[int] = []
        lines: list[int] = []
        bad: list[BadQuestion] = []
        count = 0

        def batch() -> WrittenQuestions:
            made = WrittenQuestions(
                _columns_of_facts(facts), pa.array(numbers, pa.int64()), pa.array(lines, pa.int64()), tuple(bad)
            )
            for each in (facts, numbers, lines, bad):
                each.clear()
            return made

        for fact in self._facts():
            rejected, self._report.waiting = self._report.waiting, []
            for line, problem in rejected:  # they stand before the fact
                count += 1
                if count > skip:
                    bad.append(BadQuestion(count, line, UsageError(problem.what, advice=problem.advice)))
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
            yield from jsonl.read_facts(self.path, ReadOptions(), self._report)
        except DataError as problem:  # a file that breaks off, a line without end: wrong input, as a bad question is
            raise UsageError(problem.what, where=problem.where, advice=problem.advice) from None
        yield None


def _columns_of_facts(facts: Sequence[Fact]) -> pa.RecordBatch:
    """Facts as a batch of QUESTION_SCHEMA."""
    pairs = [pair for fact in facts for pair in fact.qualifiers]
    offsets = np.zeros(len(facts) + 1, dtype=np.int32)
    np.cumsum([len(fact.qualifiers) for fact in facts], out=offsets[1:])
    relations = pa.array([pair.relation for pair in pairs], pa.string())
    values = pa.StructArray.from_arrays([relations, *_values([pair.value for pair in pairs])], fields=list(PAIR))
    return pa.record_batch(
        [
            pa.array([fact.head for fact in facts], pa.string()),
            pa.array([fact.relation for fact in facts], pa.string()),
            *_values([fact.tail for fact in facts]),
            pa.ListArray.from_arrays(pa.array(offsets), values),
        ],
        schema=QUESTION_SCHEMA,
    )


def _values(values: Sequence[Any]) -> list[pa.Array]:
    """Entities, numbers, literals and units."""
    numbers = [value if value.__class__ is Number else None for value in values]
    return [
        pa.array([None if value.__class__ is Number else value for value in values], pa.string()),
        pa.array([None if one is None else one.value for one in numbers], pa.float64()),
        pa.array([None if one is None else one.literal for one in numbers], pa.string()),
        pa.array([None if one is None else one.unit for one in numbers], pa.string()),
    ]


# Questions as Parquet, in the shapes that facts have: whole columns, no Python for each question.

_BATCH_ROWS = 16_384


class ParquetQuestions:
    """A file of one question a row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read, self._total = 0, 1
        try:
            with parquet.ParquetFile(path) as file:
                self._rows = RowReader(file.schema_arrow, str(path), {})  # refuses what is no table of facts
                self._total = file.metadata.num_rows
        except DataError as problem:
            raise UsageError(problem.what, where=problem.where, advice=problem.advice) from None
        except (pa.ArrowException, OSError) as problem:
            raise _broken(path, problem) from None

    def done(self) -> float:
        """By rows."""
        return self._read / max(1, self._total)

    def batches(self, size: int, skip: int = 0) -> Iterator[WrittenQuestions]:
        """Memory holds one batch, and the row group that it is cut from."""
        self._read = 0
        waiting: list[pa.RecordBatch] = []
        try:
            with parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(min(size, _BATCH_ROWS), columns=self._rows.columns):
                    before, self._read = self._read, self._read + batch.num_rows
                    if self._read <= skip:
                        continue
                    waiting.append(batch.slice(max(0, skip - before)))
                    while sum(len(one) for one in waiting) >= size:
                        whole = pa.Table.from_batches(waiting).combine_chunks()
                        left = whole.slice(size)
                        waiting = left.to_batches()
                        yield self._written(whole.slice(0, size), self._read - len(left) - size)
        except (pa.ArrowException, OSError) as problem:
            raise _broken(self.path, problem) from None
        left = pa.Table.from_batches(waiting) if waiting else None
        if left is not None and len(left):
            yield self._written(left, self._read - len(left))

    def _written(self, table: pa.Table, before: int) -> WrittenQuestions:
        number = pa.array(range(before + 1, before + len(table) + 1), pa.int64())
        return WrittenQuestions(_columns_of_table(table, self._rows.is_plain), number, number, ())


def _columns_of_table(table: pa.Table, is_plain: bool) -> pa.RecordBatch:
    """A batch of QUESTION_SCHEMA."""
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
    return pa.record_batch(
        [
            column("head", pa.string()),
            column("relation", pa.string()),
            entity,
            number,
            column("tail_literal", pa.string()),
            unit,
            _qualifiers(table),
        ],
        schema=QUESTION_SCHEMA,
    )


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
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind, safe=False)  # large integers round, as in Python


def _broken(path: Path, problem: Exception) -> UsageError:
    lines = str(problem).splitlines()
    return UsageError(
        f"is no readable Parquet file: {lines[0].rstrip('.') if lines else type(problem).__name__}.",
        where=str(path),
        advice="It is incomplete, damaged or of another kind: write it again.",
    )
