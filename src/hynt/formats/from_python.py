"""Graphs from what a program already holds: lists of facts or tuples, and pandas, polars or Arrow tables.

graph_from_facts([("Ann", "knows", "Bob"), ("Ann", "height", 1.7, [("year", 2020)])])
graph_from_table(data_frame, head="person", relation="what", tail="value")
"""

from __future__ import annotations

import datetime
import decimal
import numbers
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.csv_edges import read_value
from hynt.formats.format import ReadOptions
from hynt.formats.values import as_description, check_finite, check_name, read_date
from hynt.graph.fact import Fact, Number, Qualifier, Value, as_pairs, number
from hynt.names import advice_on, check_options, shortened

if TYPE_CHECKING:
    import pyarrow as pa

    from hynt.graph.encoding import MixedRelations
    from hynt.graph.knowledge_graph import KnowledgeGraph
    from hynt.graph.splitting import SplitRule


Facts: TypeAlias = Iterable[Fact | Sequence[Any]]
"""Facts, or tuples (head, relation, tail) or (head, relation, tail, qualifiers): pairs, or a mapping to values."""


class GraphWords(TypedDict, total=False):
    """What a graph is told beside its facts; all of it may be left out."""

    split: str | SplitRule | None  # the shares of new splits, such as "8:1:1"
    labels: Mapping[str, str] | None  # entity → its name for people
    relation_labels: Mapping[str, str] | None  # relation → its name for people
    relation_descriptions: Mapping[str, str] | None  # relation → what it means
    units: Mapping[str, str] | None  # relation → the unit of its bare numbers
    convert_units: bool  # to SI; True unless said otherwise
    mixed_relations: MixedRelations  # relations with entities and numbers: "error", or "split" them in two
    name: str


def graph_from_facts(
    facts: Facts | Mapping[str, Facts],
    *,
    valid: Facts | None = None,
    test: Facts | None = None,
    **options: Unpack[GraphWords],
) -> KnowledgeGraph:
    """A graph of facts or tuples. A string is an entity, an int, a float or a `Number` is a number, and a date is a
    date.

    Splits: pass `valid` and `test`, or a mapping with the keys train, valid and test; without them they are made, by
    the shares of `split` or else by 8:1:1.

    >>> facts = [("Ann", "knows", "Bob"), ("Ann", "height", 170, [("year", 2020)])]
    >>> graph = hynt.graph_from_facts(facts, units={"height": "cm"}, name="people")
    >>> print("\\n".join(graph["Ann"].texts()))
    Ann · knows · Bob
    Ann · height · 170 cm (year 2020)
    """
    given = dict(facts) if isinstance(facts, Mapping) else {"train": facts}
    if isinstance(facts, Mapping) and not (valid is None and test is None):
        raise UsageError("valid and test are given twice.", advice="Pass a mapping of splits, or separate lists.")
    given |= {part: values for part, values in (("valid", valid), ("test", test)) if values is not None}
    has_splits = isinstance(facts, Mapping) or len(given) > 1
    return _assembled({part: _facts(values, part) for part, values in given.items()}, has_splits, options)


def graph_from_table(
    table: Any,
    *,
    valid: Any = None,
    test: Any = None,
    head: str = "head",
    relation: str = "relation",
    tail: str = "tail",
    wide: bool = False,
    qualifiers: Sequence[str] | None = None,
    numeric: Sequence[str] = (),
    dates: Sequence[str] = (),
    number_format: str = "",
    date_format: str = "",
    **options: Unpack[GraphWords],
) -> KnowledgeGraph:
    """A graph of a pandas, polars or Arrow table with one fact per row, or with `wide` one thing per row, named in
    `head`, where every other column is a relation.

    Columns other than head, relation and tail are qualifiers where they are not null; `qualifiers` selects some of
    them, and with `wide` says which are. Numeric columns hold numbers, date columns dates, durations seconds, and text
    columns entities; `numeric` and `dates` name columns, or relations, whose values are numbers or dates although they
    look different, such as numbers as text or years as numbers. The other options are those of `graph_from_facts`.

    >>> import pandas
    >>> table = pandas.DataFrame({"who": ["Ann"], "what": ["height"], "value": [1.7], "year": [2020]})
    >>> graph = hynt.graph_from_table(table, head="who", relation="what", tail="value")
    >>> list(graph.facts())[0].qualifiers[0].relation
    'year'
    >>> films = pandas.DataFrame({"title": ["Fargo"], "director": ["Joel Coen"], "minutes": [98], "year": [1996]})
    >>> hynt.graph_from_table(films, head="title", wide=True, dates=["year"])["Fargo"].texts()
    ['Fargo · director · Joel Coen', 'Fargo · minutes · 98', 'Fargo · year · 1996']
    """
    pairs = () if wide and qualifiers is None else None if qualifiers is None else tuple(qualifiers)
    reading = ReadOptions(number_format=number_format, date_format=date_format)
    columns = TableColumns(head, relation, tail, pairs, tuple(numeric), tuple(dates), wide, reading)
    tables = {"train": table, "valid": valid, "test": test}
    given = {part: facts_of_table(rows, columns, part) for part, rows in tables.items() if rows is not None}
    graph = _assembled(given, len(given) > 1, options)
    from hynt.formats.outcome import hints_for_programs

    for hint in hints_for_programs(graph):
        warnings.warn(hint, stacklevel=2)
    return graph


def _assembled(given: Mapping[str, Iterator[Fact]], has_splits: bool, words: GraphWords) -> KnowledgeGraph:
    from hynt.graph.assembly import Assembler, AssemblyPolicy
    from hynt.graph.encoding import RelationDeclaration
    from hynt.graph.knowledge_graph import Manifest
    from hynt.graph.splitting import SPLITS, SplitRule
    from hynt.graph.vocabulary import Entity

    check_options("a graph from Python", words, GraphWords.__annotations__)
    unknown = [part for part in given if part not in SPLITS]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a split.", advice=f"Splits are {', '.join(SPLITS)}.")
    labels, units = words.get("relation_labels") or {}, words.get("units") or {}
    descriptions, split = words.get("relation_descriptions") or {}, words.get("split")
    details = {entity: Entity(entity, label) for entity, label in (words.get("labels") or {}).items()}
    notes: list[str] = []
    encoding: dict[str, Any] = {
        "convert_units": words.get("convert_units", True),
        "mixed": words.get("mixed_relations", "error"),
        "note": lambda _, what, advice: notes.append(f"{what} {advice}"),
    }
    rule = SplitRule.of(split) if isinstance(split, str) else split
    with Assembler(AssemblyPolicy(split=rule), encoding, details) as assembler:
        for known in dict.fromkeys([*units, *labels, *descriptions]):
            declared = RelationDeclaration(known, unit=units.get(known, ""), label=labels.get(known, ""))
            said = as_description(descriptions.get(known, ""))
            assembler.encoder.declare_relation(declared._replace(description=said))
        for part in SPLITS:
            for index, fact in enumerate(given.get(part, ())):
                try:
                    assembler.add(fact, part if has_splits else None)
                except RecordProblem as problem:
                    raise _of_fact(problem, part, index) from None
        assembly = assembler.finish()
        for note in notes:
            warnings.warn(note, stacklevel=3)
        return assembly.to_graph(Manifest(name=words.get("name", ""), importing=assembly.report))


def _of_fact(problem: RecordProblem, part: str, index: int) -> DataError:
    """A record's problem as an error that names the fact."""
    return DataError.of(problem, f"{part} fact {index + 1}")


def _facts(values: Facts, part: str) -> Iterator[Fact]:
    for index, value in enumerate(values):
        try:
            yield as_fact(value)
        except RecordProblem as problem:
            raise _of_fact(problem, part, index) from None


def as_fact(given: Any) -> Fact:
    """A tuple `(head, relation, tail, qualifiers)` as a fact; raises RecordProblem where it is none."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) not in (3, 4):
        raise RecordProblem(
            "not-a-fact",
            f"{given!r:.60} is not a fact.",
            "Give a list of facts, each (head, relation, tail) or (head, relation, tail, qualifiers).",
        )
    head, relation, tail = given[:3]
    pairs = as_pairs(given[3]) if len(given) == 4 else ()
    if isinstance(pairs, str) or not isinstance(pairs, Sequence):
        raise RecordProblem(
            "not-a-qualifier", f"{pairs!r:.60} is not a list of qualifiers.", "Give pairs (relation, value)."
        )
    return Fact(_name(head, "head"), _name(relation, "relation"), _value(tail, "tail"), tuple(map(_qualifier, pairs)))


def _qualifier(pair: Any) -> Qualifier:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise RecordProblem("not-a-qualifier", f"{pair!r:.60} is not a qualifier.", "Give pairs (relation, value).")
    return Qualifier(_name(pair[0], "qualifier relation"), _value(pair[1], f"qualifier {pair[0]!r}"))


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise RecordProblem(
            "not-a-name",
            f"the {what} is {value!r:.40}, which is not text.",
            "Entities and relations are strings: use str(…).",
        )
    return check_name(value, what)


def _value(value: Any, what: str) -> Value:
    if isinstance(value, str):
        return check_name(value, what)
    if isinstance(value, Number):
        return value
    if isinstance(value, datetime.date):  # a datetime is one too
        return read_date(value.isoformat())
    if isinstance(value, decimal.Decimal):
        return Number(check_finite(float(value), str(value)), str(value))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            return number(int(value) if isinstance(value, numbers.Integral) else float(value))
        except DataError as problem:
            raise RecordProblem("bad-number", problem.what, problem.advice) from None
    raise RecordProblem(
        "not-a-value", f"the {what} is {value!r:.40}.", "Give a string, a number, a date or a hynt Number."
    )


# The rows of a table in memory as facts. A column's Arrow type says what it holds; what is text may be declared
# otherwise.

BATCH_ROWS = 65_536
ColumnType: TypeAlias = Literal["text", "number", "date", "duration", "truth"]


class TableColumns(NamedTuple):
    """Which column of a table is the head, which the tail, and so on."""

    head: str
    relation: str
    tail: str
    qualifiers: tuple[str, ...] | None = None  # None: all others
    numeric: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    wide: bool = False  # a row is a thing, and what is neither head nor qualifier a relation
    reading: ReadOptions = ReadOptions()  # how texts write numbers and dates


def facts_of_table(table: Any, columns: TableColumns, part: str) -> Iterator[Fact]:
    """The facts of a table, one per row or, if it is wide, per value. DataError: a column is missing, or a row is no
    fact."""
    arrow = as_arrow(table)
    main = (columns.head,) if columns.wide else (columns.head, columns.relation, columns.tail)
    others = [name for name in arrow.column_names if name not in main]
    wanted = others if columns.qualifiers is None else list(columns.qualifiers)
    for name in (*main, *wanted):
        if name not in arrow.column_names:
            wide = "" if columns.wide else " If the columns are relations, say wide=True."
            advice = f"{advice_on(name, arrow.column_names)}{wide}"
            raise DataError(f"the {part} table has no column {name!r}.", advice=advice)
    tails = [name for name in others if name not in wanted] if columns.wide else []
    types = {
        name: _column_type(name, arrow.schema.field(name).type, may_be_list=name not in main)
        for name in (*main, *wanted, *tails)
    }
    for name in main[:2]:
        if types[name] != "text":
            raise UsageError(
                f"the column {name!r} holds {arrow.schema.field(name).type}, but names are text.",
                advice="Turn it into strings first.",
            )
    readers = {
        name: _reader(types[name], _asked(name, columns), columns.reading) for name in (*main[2:], *wanted, *tails)
    }
    by_relation = not columns.wide and types[columns.tail] in ("text", "number") and not _asked(columns.tail, columns)
    chosen = arrow.select([*main, *wanted, *tails])
    batches = (batch.columns for batch in chosen.to_batches(BATCH_ROWS))
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True))
    for place, row in enumerate(rows, 1):
        try:
            if columns.wide:
                yield from _facts_of_thing(row, wanted, tails, readers)
            else:
                yield _fact_of_row(row, wanted, readers, columns, by_relation)
        except RecordProblem as problem:
            for option in ("number-format", "date-format"):  # here they are arguments
                problem.advice = problem.advice.replace(f"--{option}", option.replace("-", "_"))
            raise DataError.of(problem, f"{part} table, row {place}") from None


def _facts_of_thing(
    row: tuple[Any, ...], wanted: list[str], tails: list[str], readers: dict[str, Callable[[Any], Value]]
) -> Iterator[Fact]:
    """A fact for each relation of a row: its head, the values of its qualifiers, and those of its relations."""
    subject = check_name(row[0] or "", "head")
    found = list(zip([*wanted, *tails], row[1:], strict=True))
    held, said = found[: len(wanted)], found[len(wanted) :]

    def read(name: str, cell: Any) -> Value:
        try:
            return readers[name](cell)
        except RecordProblem as problem:
            raise RecordProblem(problem.reason, f"{shortened(name)}: {problem.what}", problem.advice) from None

    pairs = tuple(Qualifier(name, read(name, cell)) for name, cells in held for cell in _cells(cells))
    yield from (Fact(subject, name, read(name, cell), pairs) for name, cells in said for cell in _cells(cells))


def _cells(value: Any) -> Iterator[Any]:
    """What a cell holds: nothing, where it is null or an empty text as in a file, one value, or each of a list."""
    yield from (one for one in (value if isinstance(value, list) else [value]) if one is not None and one != "")


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
        f"{type(table).__name__} is not a table.",
        advice="Give a pandas, polars or Arrow table, or use graph_from_facts.",
    )


def _fact_of_row(
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
    read = (
        readers[columns.tail]
        if asked is None
        else _reader("text" if isinstance(tail, str) else "number", asked, columns.reading)
    )
    return Fact(
        head,
        relation,
        read(tail),
        tuple(
            Qualifier(name, readers[name](value))
            for name, held in zip(wanted, values[3:], strict=True)
            for value in _cells(held)
        ),
    )


def _asked(name: str, columns: TableColumns) -> Literal["number", "date"] | None:
    return "number" if name in columns.numeric else "date" if name in columns.dates else None


def _column_type(name: str, kind: pa.DataType, *, may_be_list: bool) -> ColumnType:
    import pyarrow.types as types

    if may_be_list and (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        kind = kind.value_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_duration(kind):
        return "duration"
    if types.is_boolean(kind):
        return "truth"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return "text"
    raise UsageError(
        f"the column {name!r} holds {kind}.", advice="Turn it into text, numbers or dates, or leave it out."
    )


def _reader(kind: ColumnType, asked: Literal["number", "date"] | None, reading: ReadOptions) -> Callable[[Any], Value]:
    if kind == "number":
        return _year if asked == "date" else _number
    if kind == "date":
        return lambda value: read_date(value.isoformat())
    if kind == "duration":
        return _duration
    if kind == "truth":
        return lambda value: "true" if value else "false"
    return lambda text: read_value(text, asked or "entity", reading)


def _number(value: Any) -> Number:
    return Number(check_finite(float(value), repr(value)), str(value))


def _year(value: Any) -> Number:
    """A number that was declared a date is a year; beside nulls it comes as 1922.0."""
    if value != value // 1:
        raise RecordProblem("bad-date", f"{value} is not a year.", "Give whole years, dates, or dates as text.")
    return read_date(str(int(value)))


def _duration(value: Any) -> Number:
    return Number(value.total_seconds(), str(value), "s")
