"""The rows of a table in memory as facts. A column's Arrow type says what it holds; what is text may be declared
otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.csv_edges import read_value
from hynt.formats.names import check_name
from hynt.formats.numbers import check_finite
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier, Value
from hynt.graph.units.dates import parse_iso_date
from hynt.names import advice_on

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 65_536
ColumnType: TypeAlias = Literal["text", "number", "date"]


class TableColumns(NamedTuple):
    """Which columns hold what."""

    head: str
    relation: str
    tail: str
    qualifiers: tuple[str, ...] | None  # None: all others
    numeric: tuple[str, ...]
    dates: tuple[str, ...]


def facts_of_table(table: Any, columns: TableColumns, part: str) -> Iterator[Fact]:
    """The facts of a table, one a row. DataError: a column is missing, or a row is no fact."""
    arrow = as_arrow(table)
    main = (columns.head, columns.relation, columns.tail)
    others = [name for name in arrow.column_names if name not in main]
    wanted = others if columns.qualifiers is None else list(columns.qualifiers)
    for name in (*main, *wanted):
        if name not in arrow.column_names:
            raise DataError(f"the {part} table has no column {name!r}.", advice=advice_on(name, arrow.column_names))
    types = {name: _column_type(name, arrow.schema.field(name).type) for name in (*main, *wanted)}
    for name in main[:2]:
        if types[name] != "text":
            raise UsageError(
                f"the column {name!r} holds {arrow.schema.field(name).type}, but names are text.",
                advice="Turn it into strings first.",
            )
    readers = {name: _reader(types[name], _asked(name, columns)) for name in (*main[2:], *wanted)}
    by_relation = types[columns.tail] == "text" and _asked(columns.tail, columns) is None
    row = 0
    for batch in arrow.select([*main, *wanted]).to_batches(BATCH_ROWS):
        lists = [column.to_pylist() for column in batch.columns]
        for values in zip(*lists, strict=True):
            row += 1
            try:
                yield _fact(values, wanted, readers, columns, by_relation)
            except RecordProblem as problem:
                raise DataError(problem.what, where=f"{part} table, row {row}", advice=problem.advice) from None


def as_arrow(table: Any) -> pa.Table:
    """A pandas, polars or Arrow table as an Arrow table, without copying where its library allows it."""
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    try:
        if type(table).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(table, preserve_index=False)
        if hasattr(table, "__arrow_c_stream__"):
            return pa.table(table)
    except (pa.ArrowException, TypeError) as problem:
        raise UsageError(
            f"the table has a column that mixes types: {str(problem).splitlines()[0]}.",
            advice="Give each column one type, or use graph_from_facts.",
        ) from None
    raise UsageError(
        f"{type(table).__name__} is no table.", advice="Give a pandas, polars or Arrow table, or use graph_from_facts."
    )


def _fact(
    values: tuple[Any, ...],
    wanted: list[str],
    readers: dict[str, Callable[[Any], Value]],
    columns: TableColumns,
    by_relation: bool,
) -> Fact:
    head, relation, tail = values[:3]
    head, relation = check_name(head or "", "head"), check_name(relation or "", "relation")
    if tail is None:
        raise RecordProblem("no-value", "the tail is null.", "Give it a value, or remove the row.")
    asked = _asked(relation, columns) if by_relation else None
    return Fact(
        head,
        relation,
        read_value(tail, asked) if asked else readers[columns.tail](tail),
        tuple(
            Qualifier(name, readers[name](value))
            for name, value in zip(wanted, values[3:], strict=True)
            if value is not None
        ),
    )


def _asked(name: str, columns: TableColumns) -> Literal["number", "date"] | None:
    return "number" if name in columns.numeric else "date" if name in columns.dates else None


def _column_type(name: str, kind: pa.DataType) -> ColumnType:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return "text"
    raise UsageError(
        f"the column {name!r} holds {kind}.", advice="Turn it into text, numbers or dates, or leave it out."
    )


def _reader(kind: ColumnType, asked: Literal["number", "date"] | None) -> Callable[[Any], Value]:
    if kind == "number":
        return _number
    if kind == "date":
        return _date
    return lambda text: read_value(text, asked or "entity")


def _number(value: Any) -> Number:
    return Number(check_finite(float(value), repr(value)), str(value))


def _date(value: Any) -> Number:
    text = value.isoformat()
    return Number(parse_iso_date(text[:10])[0], text, DATE_UNIT)
