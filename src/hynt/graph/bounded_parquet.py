"""Parquet of unknown origin, read in memory that its size accounts for.

A kilobyte of Parquet can say that a text is a gigabyte long, or that a million rows repeat one text. How many rows
there are and how long they get is asked before they are read; what a file gets by lying is bounded all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.errors import DataError
from hynt.limits import (
    MOST_EXPANSION,
    ROWS_PER_BYTE,
    WATCHED_OUTPUT,
    WATCHED_ROWS,
    bounded_memory,
    is_out_of_proportion,
)

_SPARE = 512 * 2**20 + 32 * 2**20 * (os.cpu_count() or 1)
"""Bytes for what reading takes besides the rows: buffers, and the threads that Arrow starts."""


def check_metadata(metadata: pq.FileMetaData, size: int, where: str) -> None:
    """Refuses a file of `size` bytes that says it holds more than such a file can."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    decoded = sum(group.column(index).total_uncompressed_size for group in groups for index in range(group.num_columns))
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


def bounded_table(content: Path | pa.Buffer, columns: list[str], where: str) -> pa.Table:
    """Some columns of a whole file."""
    size = content.stat().st_size if isinstance(content, Path) else content.size
    with pq.ParquetFile(content if isinstance(content, Path) else pa.BufferReader(content)) as file:
        check_metadata(file.metadata, size, where)
        with in_proportion(size, where):
            return file.read(columns)


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
