"""The format `parquet`: tables of facts with named columns, streamed batch by batch.

Two shapes, told apart by their columns (`docs/reference/formats-tables-and-rdf.md` lists them): the full one, which
saved graphs have too,

    head, relation, tail_entity, tail_number, tail_literal, tail_unit, qualifiers: list<struct<relation, entity,
    number, …>>

and a plain one with head, relation and tail, where the type of the tail column says whether tails are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import DataError, RecordProblem
from hynt.formats.format import ReadOptions, ReadReport, write_folder
from hynt.formats.opening import stat_of
from hynt.formats.values import check_finite, check_name
from hynt.graph.fact import Fact, Number, Qualifier, Value
from hynt.names import advice_on, named_twice, shortened

if TYPE_CHECKING:
    import pyarrow as pa

    from hynt.graph.knowledge_graph import KnowledgeGraph


BATCH_ROWS = 16_384


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of a Parquet file; `report.line` counts its rows from 1."""
    del options  # Parquet says what it holds: there is nothing to choose
    import pyarrow.parquet as pq

    from hynt.graph.columns import UNREADABLE, bounded_batches

    report.file, report.line = str(path), 0
    size = stat_of(path).st_size
    try:
        with pq.ParquetFile(path) as file:
            _look_at_columns(file.schema_arrow.names, path, report)
            rows = RowReader(file.schema_arrow, f"{path}", _units_beside(path))
            total = max(file.metadata.num_rows, 1)
            for batch in bounded_batches(file, BATCH_ROWS, rows.columns, size, str(path)):
                before = report.line
                yield from rows.facts(batch, report)
                report.line = before + batch.num_rows
                report.bytes_read += int(size * batch.num_rows / total)
    except UNREADABLE as problem:
        raise broken(path, problem) from None


def _look_at_columns(names: Sequence[str], path: Path, report: ReadReport) -> None:
    """Refuses a table of things, and tells columns that nothing reads, with what reads them."""
    table = f'pandas.read_parquet("{path.name}")'
    if not {"head", "relation"} & set(names):
        raise DataError(
            f"facts have the columns head, relation and tail, and these are {shortened(', '.join(names), 200)}.",
            where=str(path),
            advice=f"If each row is one thing, make the graph in Python: hynt.graph_from_table({table}, head=COLUMN, "
            "wide=True).",
        )
    unread = [name for name in names if name not in FACT_COLUMNS]
    if unread and "tail" in names:
        listed = ", ".join(map(shortened, unread[:5]))
        report.hints.append(
            f"of {path.name} the columns {listed} were not read. If they are qualifiers, make the graph in Python: "
            f"hynt.graph_from_table({table})"
        )


def write_graph(graph: KnowledgeGraph, path: Path, describe: Callable[[Path], str] | None = None) -> list[Path]:
    """A folder with one Parquet file per split, units included."""
    import numpy as np
    import pyarrow.parquet as pq

    from hynt.graph.columns import FULL_SCHEMA, Names

    names = Names(graph.vocabulary)

    def write_split(split: str, file: Path, _where: str) -> None:
        table = graph.split(split)
        with pq.ParquetWriter(file, FULL_SCHEMA, compression="zstd") as writer:
            for start in range(0, len(table), BATCH_ROWS):
                part = table.take(np.arange(start, min(start + BATCH_ROWS, len(table)), dtype=np.int64))
                writer.write_batch(names.with_units(part))

    return write_folder(graph, path, ".parquet", write_split, describe)


def _units_beside(path: Path) -> dict[str, str]:
    """The units of a saved graph's relations: its facts leave them to the table of relations in the same folder."""
    from hynt.graph.columns import UNREADABLE, bounded_table

    relations = path.with_name("relations.parquet")
    if not relations.is_file() or relations == path:
        return {}
    try:
        table = bounded_table(relations, ["relation", "unit"], str(relations))
        units = zip(table["relation"].to_pylist(), table["unit"].to_pylist(), strict=True)
        return {relation: unit for relation, unit in units if relation and unit}
    except (*UNREADABLE, KeyError) as problem:
        raise broken(relations, problem) from None


def broken(path: Path, problem: Exception) -> DataError:
    """What to say of a file that Arrow cannot read."""
    lines = str(problem).splitlines()
    return DataError(
        f"is not a readable Parquet file: {lines[0].rstrip('.') if lines else type(problem).__name__}.",
        where=str(path),
        advice="It is incomplete, damaged or of another kind: write or get it again.",
    )


# The rows of a table of facts, in memory or from a Parquet file: which columns there are, and the fact of each row.

_OPTIONAL = ("tail_entity", "tail_number", "tail_literal", "tail_unit", "unit", "qualifiers")
FACT_COLUMNS = frozenset({"head", "relation", "tail", *_OPTIONAL})
"""The columns that are read, of either shape."""
_ADVICE = "Give it an entity or a number, and not both."


class RowReader:
    """Reads batches of one schema. DataError: the schema lacks what a fact needs, or has it in another type."""

    def __init__(self, schema: pa.Schema, where: str, units: Mapping[str, str]) -> None:
        self._where = where
        self._units = units  # relation → unit of the numbers that do not say theirs
        self._schema = schema
        names = schema.names
        self.is_plain = "tail" in names and not {"tail_entity", "tail_number"} & set(names)
        needed = ["head", "relation", "tail"] if self.is_plain else ["head", "relation"]
        self._require(needed, names)
        if not self.is_plain and not {"tail_entity", "tail_number"} & set(names):
            raise DataError(
                "the columns tail_entity and tail_number are both missing, and so is tail.",
                where=where,
                advice=advice_on("tail", names),
            )
        self.columns = needed + [name for name in _OPTIONAL if name in names]
        for name in self.columns:
            self._check_type(name)

    def facts(self, batch: pa.RecordBatch, report: ReadReport) -> Iterator[Fact]:
        """The facts of a batch, each counted as read and kept or rejected."""
        rows = batch.num_rows

        def column(name: str) -> Sequence[Any]:
            return batch.column(name).to_pylist() if name in batch.schema.names else [None] * rows

        if self.is_plain:
            tails = column("tail")
            is_text = _is_string(self._schema.field("tail").type)
            entities, numbers = (tails, [None] * rows) if is_text else ([None] * rows, tails)
        else:
            entities, numbers = column("tail_entity"), column("tail_number")
        units = column("tail_unit") if "tail_unit" in batch.schema.names else column("unit")
        for head, relation, entity, number, literal, unit, qualifiers in zip(
            column("head"),
            column("relation"),
            entities,
            numbers,
            column("tail_literal"),
            units,
            column("qualifiers"),
            strict=True,
        ):
            report.line += 1
            report.read += 1
            try:
                fact = Fact(
                    check_name(head or "", "head"),
                    check_name(relation or "", "relation"),
                    _value(entity, number, literal, unit or self._units.get(relation, ""), "tail"),
                    tuple(map(self._qualifier, qualifiers)) if qualifiers else (),
                )
            except RecordProblem as problem:
                report.reject(problem)
                continue
            report.kept += 1
            yield fact

    def _qualifier(self, pair: Any) -> Qualifier:
        if pair is None:
            raise RecordProblem("no-value", "a qualifier is null.", "Remove it from the list.")
        relation = check_name(pair["relation"] or "", "qualifier relation")
        unit = pair.get("unit") or self._units.get(relation, "")
        value = _value(pair.get("entity"), pair.get("number"), pair.get("literal"), unit, f"qualifier {relation!r}")
        return Qualifier(relation, value)

    def _require(self, needed: list[str], names: list[str]) -> None:
        missing = [name for name in needed if name not in names]
        if missing:
            what = f"the column {missing[0]} is" if len(missing) == 1 else f"the columns {', '.join(missing)} are"
            raise DataError(f"{what} missing.", where=self._where, advice=advice_on(missing[0], names))
        twice = named_twice(names)
        if twice is not None:
            raise DataError(f"two columns are called {twice!r}.", where=self._where, advice="Rename one of them.")

    def _check_type(self, name: str) -> None:
        import pyarrow.types as types

        kind = self._schema.field(name).type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind)
        if name == "tail":
            fits = is_number or _is_string(kind)
        elif name == "tail_number":
            fits = is_number
        elif name == "qualifiers":
            fits = (types.is_list(kind) or types.is_large_list(kind)) and _is_pair(kind.value_type)
        else:
            fits = _is_string(kind)
        if not fits:
            raise DataError(
                f"the column {name} has the type {kind}.",
                where=self._where,
                advice=f"It holds {_WANTED.get(name, 'strings')}.",
            )


def _is_pair(kind: pa.DataType) -> bool:
    """Whether a qualifier's struct has a relation, and each field the type it needs."""
    import pyarrow.types as types

    if not types.is_struct(kind) or "relation" not in [field.name for field in kind]:
        return False
    return all(
        types.is_null(field.type) or (types.is_floating(field.type) or types.is_integer(field.type))
        if field.name == "number"
        else _is_string(field.type)
        for field in kind
        if field.name in ("relation", "entity", "number", "literal", "unit")
    )


def _is_string(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind)
    )


_WANTED = {
    "tail": "strings (entities) or numbers",
    "tail_number": "numbers",
    "qualifiers": "a list of structs with relation, entity, number and, where wanted, literal and unit",
}


def _value(entity: str | None, number: float | None, literal: str | None, unit: str | None, what: str) -> Value:
    if number is None:
        if entity is None:
            raise RecordProblem("no-value", f"the {what} has neither an entity nor a number.", _ADVICE)
        return check_name(entity, what)
    if entity is not None:
        raise RecordProblem("two-values", f"the {what} has an entity and a number.", _ADVICE)
    value = check_finite(float(number), repr(number))
    return Number(value, repr(number) if literal is None else literal, unit or "")
