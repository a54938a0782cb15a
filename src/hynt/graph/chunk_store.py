"""Fact tables that may not fit in memory: the first ones stay there, the rest goes to a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from hynt.graph.fact_table import FactTable

_FACTS = pa.schema(
    [
        ("head", pa.int32()),
        ("relation", pa.int32()),
        ("tail_entity", pa.int32()),
        ("tail_number", pa.float64()),
        ("tail_literal", pa.string()),
        ("end", pa.int64()),
    ]
)
_QUALIFIERS = pa.schema(
    [
        ("qualifier_relation", pa.int32()),
        ("qualifier_entity", pa.int32()),
        ("qualifier_number", pa.float64()),
        ("qualifier_literal", pa.string()),
    ]
)


class ChunkStore:
    """Tables put in once and read back in order as often as needed. Use as a context manager: it removes its files."""

    def __init__(self, facts_in_memory: int = 1_000_000, folder: Path | None = None) -> None:
        self._limit = facts_in_memory
        self._held: list[FactTable] = []
        self._held_facts = 0
        self._folder = folder
        self._spill: _Spill | None = None
        self.fact_count = 0

    def append(self, table: FactTable) -> None:
        self.fact_count += len(table)
        if self._spill is None and self._held_facts + len(table) <= self._limit:
            self._held.append(table)
            self._held_facts += len(table)
            return
        self._spill = self._spill or _Spill(self._folder)
        self._spill.append(table)

    def __iter__(self) -> Iterator[FactTable]:
        yield from self._held
        if self._spill is not None:
            yield from self._spill.read()

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held = []
        if self._spill is not None:
            self._spill.remove()


class _Spill:
    """Two Arrow files side by side, facts and qualifiers, one batch per table."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hynt-import-", dir=folder)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._paths = [Path(self._folder.name) / name for name in ("facts.arrow", "qualifiers.arrow")]
        self._writers = [
            pa.ipc.new_file(path, schema, options=options)
            for path, schema in zip(self._paths, (_FACTS, _QUALIFIERS), strict=True)
        ]
        self._open = True

    def append(self, table: FactTable) -> None:
        facts = [
            table.head,
            table.relation,
            table.tail_entity,
            table.tail_number,
            table.tail_literal,
            table.offsets[1:],
        ]
        qualifiers = [table.qualifier_relation, table.qualifier_entity, table.qualifier_number, table.qualifier_literal]
        for writer, schema, columns in zip(self._writers, (_FACTS, _QUALIFIERS), (facts, qualifiers), strict=True):
            arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))

    def read(self) -> Iterator[FactTable]:
        self._close()
        with pa.OSFile(str(self._paths[0])) as facts_file, pa.OSFile(str(self._paths[1])) as qualifiers_file:
            facts, qualifiers = pa.ipc.open_file(facts_file), pa.ipc.open_file(qualifiers_file)
            for index in range(facts.num_record_batches):
                yield _table(facts.get_batch(index), qualifiers.get_batch(index))

    def remove(self) -> None:
        self._close()
        self._folder.cleanup()

    def _close(self) -> None:
        if self._open:
            for writer in self._writers:
                writer.close()
            self._open = False


def _table(facts: pa.RecordBatch, qualifiers: pa.RecordBatch) -> FactTable:
    head, relation, tail_entity, tail_number, tail_literal, ends = facts.columns
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends.to_numpy()])
    return FactTable(
        head.to_numpy(),
        relation.to_numpy(),
        tail_entity.to_numpy(),
        tail_number.to_numpy(),
        tail_literal,
        offsets,
        qualifiers.column(0).to_numpy(),
        qualifiers.column(1).to_numpy(),
        qualifiers.column(2).to_numpy(),
        qualifiers.column(3),
    )
