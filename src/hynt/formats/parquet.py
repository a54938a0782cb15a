"""The format `parquet`: tables of facts with named columns, streamed batch by batch.

Two shapes, told apart by their columns (`docs/formats-tables-and-rdf.md` lists them): the full one, which saved
graphs have too,

    head, relation, tail_entity, tail_number, tail_literal, tail_unit, qualifiers: list<struct<relation, entity,
    number, …>>

and a plain one with head, relation and tail, where the type of the tail column says whether tails are numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import DataError
from hynt.formats.format import ReadOptions
from hynt.formats.parquet_rows import RowReader
from hynt.formats.report import ReadReport
from hynt.formats.writing import new_folder
from hynt.graph.fact import Fact

if TYPE_CHECKING:
    import pyarrow as pa

    from hynt.graph.knowledge_graph import KnowledgeGraph

BATCH_ROWS = 16_384


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of a Parquet file; `report.line` counts its rows from 1."""
    del options  # Parquet says what it holds: there is nothing to choose
    import pyarrow as pa
    import pyarrow.parquet as pq

    report.file, report.line = str(path), 0
    size = _file_size(path)
    try:
        with pq.ParquetFile(path) as file:
            rows = RowReader(file.schema_arrow, f"{path}", _units_beside(path))
            total = max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(BATCH_ROWS, columns=rows.columns):
                before = report.line
                yield from rows.facts(batch, report)
                report.line = before + batch.num_rows
                report.bytes_read += int(size * batch.num_rows / total)
    except (pa.ArrowException, OSError) as problem:
        raise _broken(path, problem) from None


def write_graph(graph: KnowledgeGraph, path: Path) -> list[Path]:
    """A folder with one Parquet file a split, units included, and what is known of entities and relations beside
    them."""
    from hynt.formats.declarations import write_declarations

    names = []
    with new_folder(path) as folder:
        for split in graph.splits:
            _write_split(graph, split, folder / f"{split}.parquet")
            names.append(f"{split}.parquet")
        names += [made.name for made in write_declarations(graph, folder)]
    return [path / name for name in names]


def _write_split(graph: KnowledgeGraph, split: str, file: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hynt.graph.columns import Names

    names = Names(graph.vocabulary)
    units = pa.array([relation.unit for relation in graph.relations], type=pa.string())
    table = graph.split(split)
    with pq.ParquetWriter(file, _full_schema(), compression="zstd") as writer:
        for start in range(0, len(table), BATCH_ROWS):
            part = table.take(np.arange(start, min(start + BATCH_ROWS, len(table)), dtype=np.int64))
            writer.write_batch(_with_units(names.to_columns(part), part, units, graph))


def _with_units(columns: pa.RecordBatch, table: Any, units: pa.Array, graph: KnowledgeGraph) -> pa.RecordBatch:
    """The columns of a saved graph, with the unit of each number beside it."""
    import pyarrow as pa

    is_number = graph.vocabulary.relation_is_number

    def unit_of(relation: Any) -> pa.Array:
        return units.take(pa.array(relation, mask=~is_number[relation]))

    schema = _full_schema()
    name, entity, number, literal = columns["qualifiers"].values.flatten()
    pairs = pa.StructArray.from_arrays(
        [name, entity, number, literal, unit_of(table.qualifier_relation)],
        fields=list(schema.field("qualifiers").type.value_type),
    )
    qualifiers = pa.ListArray.from_arrays(columns["qualifiers"].offsets, pairs)
    tail = [columns[column] for column in ("tail_entity", "tail_number", "tail_literal")]
    return pa.record_batch(
        [columns["head"], columns["relation"], *tail, unit_of(table.relation), qualifiers], schema=schema
    )


def _units_beside(path: Path) -> dict[str, str]:
    """The units of a saved graph's relations: its facts leave them to the table of relations in the same folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    relations = path.with_name("relations.parquet")
    if not relations.is_file() or relations == path:
        return {}
    try:
        table = pq.read_table(relations, columns=["relation", "unit"])
        units = zip(table["relation"].to_pylist(), table["unit"].to_pylist(), strict=True)
        return {relation: unit for relation, unit in units if relation and unit}
    except (pa.ArrowException, OSError) as problem:
        raise _broken(relations, problem) from None


def _full_schema() -> pa.Schema:
    import pyarrow as pa

    value = [("entity", pa.string()), ("number", pa.float64()), ("literal", pa.string()), ("unit", pa.string())]
    tail = [(f"tail_{name}", kind) for name, kind in value]
    pair = pa.struct([("relation", pa.string()), *value])
    return pa.schema([("head", pa.string()), ("relation", pa.string()), *tail, ("qualifiers", pa.list_(pair))])


def _file_size(path: Path) -> int:
    from hynt.formats.byte_streams import unreadable

    try:
        return path.stat().st_size
    except OSError as problem:
        raise unreadable(path, problem) from None


def _broken(path: Path, problem: Exception) -> DataError:
    lines = str(problem).splitlines()
    return DataError(
        f"is no readable Parquet file: {lines[0].rstrip('.') if lines else type(problem).__name__}.",
        where=str(path),
        advice="It is incomplete, damaged or of another kind: get it again.",
    )
