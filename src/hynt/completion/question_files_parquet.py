"""Questions as Parquet, in the shapes that facts have: whole columns, no Python for each question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from hynt.completion.question_files import PAIR, QUESTION_SCHEMA, WrittenQuestions
from hynt.errors import DataError, UsageError
from hynt.formats.parquet_rows import RowReader

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
        return WrittenQuestions(_columns(table, self._rows.is_plain), number, number, ())


def _columns(table: pa.Table, is_plain: bool) -> pa.RecordBatch:
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
    """The lists, with every field there is, and none where there is null."""
    if "qualifiers" not in table.schema.names or pa.types.is_null(table["qualifiers"].type):
        empty = pa.StructArray.from_arrays([pa.array([], field.type) for field in PAIR], fields=list(PAIR))
        return pa.ListArray.from_arrays(pa.array([0] * (len(table) + 1), pa.int32()), empty)
    lists = table["qualifiers"].combine_chunks()
    sizes = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(sizes).cast(pa.int32())])
    pairs = pc.list_flatten(lists)
    names = [field.name for field in pairs.type]
    fields = []
    for field in PAIR:
        found = pc.struct_field(pairs, field.name) if field.name in names else pa.nulls(len(pairs))
        fields.append(_as(found, field.type))  # a pair that is null has null in every field
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
