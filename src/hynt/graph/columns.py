"""Facts as Parquet columns with names, as any tool reads them, and back to ids.

| column | type | meaning |
|---|---|---|
| head | string | entity id |
| relation | string | relation id |
| tail_entity | string, null for a number | entity id |
| tail_number | double, null for an entity | value, in the relation's unit |
| tail_literal | string, null for an entity | the number as it was written |
| qualifiers | list of struct (relation, entity, number, literal) | as above |

Parquet of unknown origin is read in memory that its size accounts for. A kilobyte of it can say that a text is a
gigabyte long, or that a million rows repeat one text. How many rows there are and how long they get is asked before
they are read; what a file gets by lying is bounded all the same.

`ChunkStore` keeps tables that may not fit in memory: the first ones stay there, the rest goes to a temporary file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hynt.errors import DataError
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Vocabulary, offsets_of
from hynt.limits import (
    MOST_EXPANSION,
    ROWS_PER_BYTE,
    WATCHED_OUTPUT,
    WATCHED_ROWS,
    bounded_memory,
    is_out_of_proportion,
)

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

T = TypeVar("T", pa.Table, pa.RecordBatch)
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What Arrow raises for a file that is damaged; the last one for its columns' names."""

_SPARE = 512 * 2**20 + 32 * 2**20 * (os.cpu_count() or 1)
"""Bytes for what reading takes besides the rows: buffers, and the threads that Arrow starts."""


def check_metadata(metadata: pq.FileMetaData, size: int, where: str) -> None:
    """Refuses a file of `size` bytes that says it holds more than such a file can."""
    # Not asked of single columns: damage in what is said of one would end the process inside Arrow.
    decoded = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    if metadata.num_rows > max(WATCHED_ROWS, ROWS_PER_BYTE * size) or is_out_of_proportion(decoded, size):
        raise DataError(
            f"{size:,} bytes that say they hold {metadata.num_rows:,} rows and {decoded:,} bytes: "
            "the file is taken for a bomb.",
            where=where,
            advice="If you trust it, write it again with another tool, uncompressed.",
        )


@contextmanager
def in_proportion(size: int, where: str) -> Iterator[None]:
    """Within the block, what a file of `size` bytes may take is bounded; a `DataError` where that is not enough."""
    pa.allocate_buffer(1)  # at its first use Arrow's allocator sets a gigabyte of addresses aside
    try:
        with bounded_memory(_SPARE + max(WATCHED_OUTPUT, MOST_EXPANSION * size)):
            yield
    except MemoryError:
        raise DataError(
            f"reading {size:,} bytes of Parquet takes gigabytes of memory: the file is taken for a bomb.",
            where=where,
            advice="If you trust it, write it again with another tool, uncompressed and in smaller row groups.",
        ) from None


def _written_out(rows: T) -> T:
    """With every text where it stands: a column that refers to texts kept once would grow when it is used."""
    schema = pa.schema([field.with_type(_plain(field.type)) for field in rows.schema])
    return rows if schema.equals(rows.schema) else rows.cast(schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        made = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return made(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind.fields])
    return kind


def bounded_table(content: Path | pa.Buffer, columns: list[str], where: str) -> pa.Table:
    """Some columns of a whole file."""
    size = content.stat().st_size if isinstance(content, Path) else content.size
    with pq.ParquetFile(content if isinstance(content, Path) else pa.BufferReader(content)) as file:
        check_metadata(file.metadata, size, where)
        with in_proportion(size, where):
            return _written_out(file.read(columns))


def bounded_batches(
    file: pq.ParquetFile, rows: int, columns: list[str], size: int, where: str
) -> Iterator[pa.RecordBatch]:
    """The rows of a file of `size` bytes, at most so many at once, and fewer where they are long."""
    check_metadata(file.metadata, size, where)
    batches = file.iter_batches(rows, columns=columns)
    decoded = 0
    while True:
        with in_proportion(size, where):
            batch = next(batches, None)
            batch = None if batch is None else _written_out(batch)
        if batch is None:
            return
        decoded += batch.nbytes
        if is_out_of_proportion(decoded, size):
            raise DataError(
                f"its rows take more than {MOST_EXPANSION} times its {size:,} bytes: the file is taken for a bomb.",
                where=where,
                advice="If you trust it, write it again with another tool, uncompressed and without dictionaries.",
            )
        step = max(1, len(batch) * WATCHED_OUTPUT // max(1, batch.nbytes))
        for start in range(0, len(batch), step):
            yield batch.slice(start, step)


def _schema(name: pa.DataType, value: list[tuple[str, pa.DataType]], *, nullable: bool = True) -> pa.Schema:
    """Of facts whose heads and relations are told by this type, and whose values by these columns."""
    pair = pa.struct([("relation", name), *value])
    ends = [pa.field(column, name, nullable=nullable) for column in ("head", "relation")]
    return pa.schema([*ends, *((f"tail_{column}", kind) for column, kind in value), ("qualifiers", pa.list_(pair))])


_NUMBER = [("number", pa.float64()), ("literal", pa.string())]
FACT_SCHEMA = _schema(pa.string(), [("entity", pa.string()), *_NUMBER], nullable=False)
FULL_SCHEMA = _schema(pa.string(), [("entity", pa.string()), *_NUMBER, ("unit", pa.string())])
"""The same with the unit of each number beside it, for whoever has no table of relations."""
_IDS = _schema(pa.int32(), [("entity", pa.int32()), *_NUMBER])
"""With ids for names: facts on their way into a graph."""


class Names:
    """The names of a vocabulary as Arrow arrays, to turn whole columns of ids into names and back."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.entities = pa.array(vocabulary.entities, type=pa.string())
        self.relations = pa.array([relation.name for relation in vocabulary.relations], type=pa.string())
        self.units = pa.array([relation.unit for relation in vocabulary.relations], type=pa.string())
        self.is_number = vocabulary.relation_is_number

    def with_units(self, table: FactTable) -> pa.RecordBatch:
        """A batch of `FULL_SCHEMA` with the facts of a table."""
        return self.to_columns(table, FULL_SCHEMA)

    def to_columns(self, table: FactTable, schema: pa.Schema = FACT_SCHEMA) -> pa.RecordBatch:
        """A batch of `FACT_SCHEMA`, or of the full one, with the facts of a table."""
        width = len(schema) - 3  # of a value
        tail = self._values(table.relation, table.tail_entity, table.tail_number, table.tail_literal)[:width]
        values = self._values(
            table.qualifier_relation, table.qualifier_entity, table.qualifier_number, table.qualifier_literal
        )[:width]
        qualifiers = _lists(table, [self.relations.take(pa.array(table.qualifier_relation)), *values], schema)
        head, relation = self.entities.take(pa.array(table.head)), self.relations.take(pa.array(table.relation))
        return pa.record_batch([head, relation, *tail, qualifiers], schema=schema)

    def _values(
        self,
        relation: NDArray[np.int32],
        entity: NDArray[np.int32],
        number: NDArray[np.float64],
        literal: pa.StringArray,
    ) -> tuple[pa.Array, ...]:
        """Entities, numbers, their literals and their units."""
        is_number = self.is_number[relation]
        entities = self.entities.take(pa.array(entity, mask=is_number))
        units = self.units.take(pa.array(relation, mask=~is_number))
        return entities, pa.array(number, mask=~is_number), literal, units

    def from_columns(self, columns: pa.Table, where: str) -> FactTable:
        """The facts of a table of `FACT_SCHEMA`; anything the vocabulary does not explain is an error.

        Whole columns at once: each look-up hashes the vocabulary anew, so doing it per chunk would grow with both.
        """
        head = self._ids(columns["head"], self.entities, "head", where)
        relation = self._ids(columns["relation"], self.relations, "relation", where)
        tail = self._parsed(
            relation, columns["tail_entity"], columns["tail_number"], columns["tail_literal"], "tail", where
        )
        lists = columns["qualifiers"]
        if lists.null_count:
            raise _damaged(where, "a fact has null for its list of qualifiers")
        offsets = offsets_of(pc.list_value_length(lists).to_numpy())
        pairs = pc.list_flatten(lists)
        if pairs.null_count:
            raise _damaged(where, "a qualifier is null")
        name, entity, number, literal = pairs.flatten()
        qualifier_relation = self._ids(name, self.relations, "qualifier relation", where)
        values = self._parsed(qualifier_relation, entity, number, literal, "qualifier", where)
        return FactTable(head, relation, *tail, offsets, qualifier_relation, *values)

    def _parsed(
        self,
        relation: NDArray[np.int32],
        entity: pa.ChunkedArray,
        number: pa.ChunkedArray,
        literal: pa.ChunkedArray,
        what: str,
        where: str,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], pa.StringArray]:
        is_number = self.is_number[relation]
        has_entity, has_number = _valid(entity), _valid(number)
        if bool((has_number != is_number).any() or (has_entity == is_number).any()):
            raise _damaged(where, f"a {what} is not of the kind that its relation carries")
        if bool((is_number & ~_valid(literal)).any()):
            raise _damaged(where, f"a {what} is a number without the text that it was written as")
        entities = np.zeros(len(relation), dtype=np.int32)
        entities[has_entity] = self._ids(entity.drop_null(), self.entities, what, where)
        numbers = np.asarray(number.fill_null(0.0).to_numpy(), dtype=np.float64)
        if not bool(np.isfinite(numbers).all()):
            raise _damaged(where, f"a {what} is not a finite number")
        return entities, numbers, pa.concat_arrays([*literal.chunks, pa.array([], type=pa.string())])

    def _ids(self, column: pa.ChunkedArray, names: pa.Array, what: str, where: str) -> NDArray[np.int32]:
        found = pc.index_in(column, value_set=names)
        if found.null_count:
            first = next(value for value, index in zip(column, found, strict=True) if not index.is_valid)
            raise _damaged(where, f"the {what} {first.as_py()!r} is not in the vocabulary")
        return np.asarray(found.to_numpy(), dtype=np.int32)


def _lists(table: FactTable, pairs: list[pa.Array], schema: pa.Schema) -> pa.ListArray:
    """(n,) the qualifiers of each fact, from their columns."""
    fields = list(schema.field("qualifiers").type.value_type)
    return pa.ListArray.from_arrays(
        pa.array(table.offsets.astype(np.int32)), pa.StructArray.from_arrays(pairs, fields=fields)
    )


def table_with_units(graph: KnowledgeGraph, splits: Iterable[str]) -> pa.Table:
    """The facts of some splits, each with the name of its split."""
    names, schema = Names(graph.vocabulary), FULL_SCHEMA.insert(0, pa.field("split", pa.string()))
    tables = []
    for split in splits:
        batch = names.with_units(graph.split(split))
        label = pa.array(np.full(batch.num_rows, split), pa.string())
        tables.append(pa.table([label, *batch.columns], schema=schema))
    return pa.concat_tables(tables)


def _valid(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)


def _damaged(where: str, what: str) -> DataError:
    return DataError(f"{what}.", where=where, advice="The file was made or changed by hand; import the graph again.")


class ChunkStore:
    """Tables put in once and read back in order as often as needed. Use as a context manager: it removes its files."""

    def __init__(self, facts_in_memory: int = 1_000_000) -> None:
        self._limit = facts_in_memory
        self._held: list[FactTable] = []
        self._held_facts = 0
        self._spill: _Spill | None = None
        self.fact_count = 0

    def append(self, table: FactTable) -> None:
        self.fact_count += len(table)
        if self._spill is None and self._held_facts + len(table) <= self._limit:
            self._held.append(table)
            self._held_facts += len(table)
            return
        self._spill = self._spill or _Spill()
        self._spill.append(table)

    def __iter__(self) -> Iterator[FactTable]:
        yield from self._held
        if self._spill is not None:
            yield from self._spill.read()

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(self, *problem: object) -> None:
        self._held = []
        if self._spill is not None:
            self._spill.remove()


class _Spill:
    """An Arrow file of facts as ids, one batch per table."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hynt-import-")
        self._path = Path(self._folder.name) / "facts.arrow"
        self._writer = pa.ipc.new_file(self._path, _IDS, options=pa.ipc.IpcWriteOptions(compression="lz4"))
        self._open = True

    def append(self, table: FactTable) -> None:
        triplets = (table.head, table.relation, table.tail_entity, table.tail_number, table.tail_literal)
        pairs = (table.qualifier_relation, table.qualifier_entity, table.qualifier_number, table.qualifier_literal)
        lists = _lists(table, [pa.array(column) for column in pairs], _IDS)
        self._writer.write_batch(pa.record_batch([*map(pa.array, triplets), lists], schema=_IDS))

    def read(self) -> Iterator[FactTable]:
        self._close()
        with pa.OSFile(str(self._path)) as file:
            batches = pa.ipc.open_file(file)
            for index in range(batches.num_record_batches):
                yield _table(batches.get_batch(index))

    def remove(self) -> None:
        self._close()
        self._folder.cleanup()

    def _close(self) -> None:
        if self._open:
            self._writer.close()
            self._open = False


def _table(batch: pa.RecordBatch) -> FactTable:
    *triplets, tail_literal, lists = batch.columns
    *pairs, literal = lists.values.flatten()
    head, relation, tail_entity, tail_number = (column.to_numpy() for column in triplets)
    inner, entity, number = (column.to_numpy() for column in pairs)
    triplet = (head, relation, tail_entity, tail_number, tail_literal)
    return FactTable(*triplet, lists.offsets.to_numpy().astype(np.int64), inner, entity, number, literal)
