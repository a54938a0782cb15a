"""What the columns of an edge list or a Neo4j export mean: found in the header, never in the values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from hynt.errors import DataError, UsageError
from hynt.formats.format import ReadOptions
from hynt.names import advice_on, named_twice

ColumnKind: TypeAlias = Literal["entity", "number", "date"]

ENDS = (("head", "tail"), ("source", "target"), ("subject", "object"), ("src", "dst"), ("start", "end"), ("from", "to"))
"""Names of the head and tail columns; the first pair that is there counts."""
RELATIONS = ("relation", "predicate", "type", "relationship", "rel", "edge", "property")
UNIT = "unit"
"""The column of an edge list that holds the unit of a tail that is a number, as in the simple shape of `parquet`."""
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}

_ROLES = ("head", "relation", "tail", "node", "labels")
"""Of the columns of a property graph; Neo4j and APOC have names of their own for them."""
_NUMBER_TYPES = frozenset({"int", "integer", "long", "short", "byte", "float", "double"})
_DATE_TYPES = frozenset({"date", "datetime", "localdatetime"})
_TEXT_TYPES = frozenset({"string", "char", "boolean", "time", "localtime", "duration", "point"})
# name:TYPE(id space){options}, as neo4j-admin writes headers
_NEO4J = re.compile(r"(.*?):(START_ID|END_ID|TYPE|ID|LABEL|IGNORE)(?:\((.*?)\))?(?:\{.*\})?", re.IGNORECASE)
_TYPED = re.compile(r"(.+):([A-Za-z]+)(\[\])?(?:\{.*\})?")


class ValueColumn(NamedTuple):
    """A column with values of its own: a property of a node, or a qualifier of an edge."""

    position: int
    name: str
    kind: ColumnKind
    is_array: bool = False


class NameColumn(NamedTuple):
    """A column that names a node or a relation, and the id space its ids live in ("" for the common one)."""

    position: int
    space: str = ""


@dataclass(frozen=True)
class FileColumns:
    """The columns of a file. An edge file has head, relation (or one for all rows) and tail; a node file a node; APOC's
    export has all; a wide table only a head, and a column for each relation."""

    width: int
    properties: tuple[ValueColumn, ...]
    head: NameColumn | None = None
    relation: NameColumn | None = None
    tail: NameColumn | None = None
    tail_kind: ColumnKind = "entity"
    unit: NameColumn | None = None
    node: NameColumn | None = None
    labels: NameColumn | None = None
    label: NameColumn | None = None  # what people call the entity of a row
    qualifiers: tuple[ValueColumn, ...] = ()  # of every fact of a row, where the other columns are relations


def choose_delimiter(path_name: str, header: str, options: ReadOptions) -> str:
    """The option's delimiter, a tab for .tsv, or the one of comma, semicolon and tab that the header has most of."""
    if options.delimiter:
        delimiter = DELIMITERS.get(options.delimiter, options.delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise UsageError(
                f"{options.delimiter!r} is not a delimiter.",
                where="--delimiter",
                advice=f"Give one character, or one of {', '.join(DELIMITERS)}.",
            )
        return delimiter
    if path_name.endswith((".tsv", ".tab")):
        return "\t"
    unquoted = re.sub(r'"[^"]*"', "", header)
    return max(",;\t", key=unquoted.count)


def read_header(header: list[str], options: ReadOptions, path: Path) -> FileColumns:
    """What each column means. DataError: the columns a fact needs are missing."""
    names = [name.strip() for name in header]
    found = {index: match for index, name in enumerate(names) if (match := _NEO4J.fullmatch(name)) is not None}
    if any(match[2].upper() in ("START_ID", "END_ID", "ID") for match in found.values()):
        layout = _neo4j(names, found, options)
    elif {"_start", "_end", "_type"} <= set(names):
        layout = _apoc(names, options)
    elif options.wide:
        layout = _wide(names, options, path)
    else:
        layout = _edge_list(names, options, path)
    if options.label:
        layout = replace(layout, label=NameColumn(_place(options.label, names, "--label", path)))
        layout = replace(layout, properties=tuple(one for one in layout.properties if one.name != options.label))
    _check(layout, names, options, path)
    return layout


def _wide(names: list[str], options: ReadOptions, path: Path) -> FileColumns:
    """One row per entity, or per entity and year: every column but these is a relation."""
    if not options.head:
        raise UsageError(
            "a wide table needs the column of its entities.",
            where="--head",
            advice=f"One of: {', '.join(names)[:200]}.",
        )
    head = _place(options.head, names, "--head", path)
    qualifiers = [_place(name, names, "--qualifier", path) for name in options.qualifier]
    columns = [_column(index, name, options) for index, name in enumerate(names) if name and index != head]
    return FileColumns(
        len(names),
        tuple(column for column in columns if column.position not in qualifiers),
        head=NameColumn(head),
        qualifiers=tuple(column for column in columns if column.position in qualifiers),
    )


def _place(name: str, names: list[str], option: str, path: Path) -> int:
    """Where the column stands that an option names."""
    if name not in names:
        raise UsageError(f"{path} has no column {name!r}.", where=option, advice=advice_on(name, names))
    return names.index(name)


def _neo4j(names: list[str], found: dict[int, re.Match[str]], options: ReadOptions) -> FileColumns:
    roles = dict(zip(("START_ID", "TYPE", "END_ID", "ID", "LABEL"), _ROLES, strict=True))
    places: dict[str, Any] = {
        roles[kind]: NameColumn(index, match[3] or "")
        for index, match in found.items()
        if (kind := match[2].upper()) in roles
    }
    columns = [_typed_column(index, name, options) for index, name in enumerate(names) if index not in found and name]
    return FileColumns(len(names), tuple(columns), **places)


def _apoc(names: list[str], options: ReadOptions) -> FileColumns:
    roles = dict(zip(("_start", "_type", "_end", "_id", "_labels"), _ROLES, strict=True))
    columns = [_column(index, name, options) for index, name in enumerate(names) if name not in roles]
    places: dict[str, Any] = {role: NameColumn(names.index(name)) for name, role in roles.items() if name in names}
    return FileColumns(len(names), tuple(columns), **places)


def _edge_list(names: list[str], options: ReadOptions, path: Path) -> FileColumns:
    lowered = [name.lower() for name in names]
    pair = next((pair for pair in ENDS if pair[0] in lowered and pair[1] in lowered), ("head", "tail"))
    relation = next((name for name in RELATIONS if name in lowered), "relation")
    found: dict[str, int] = {}
    for role, given, usual in (
        ("head", options.head, pair[0]),
        ("relation", options.relation, relation),
        ("tail", options.tail, pair[1]),
    ):
        if role == "relation" and options.relation_name:
            continue
        if given:
            found[role] = _place(given, names, f"--{role}", path)
        elif usual in lowered:
            found[role] = lowered.index(usual)
    roles = ("head", "tail") if options.relation_name else ("head", "relation", "tail")
    missing = [role for role in roles if role not in found]
    if missing:
        raise DataError(
            f"no column for the {' and the '.join(missing)} in the header: {', '.join(names)[:200]}.",
            where=f"{path}:1",
            advice="Name the columns with --head, --relation and --tail; or say --relation-name NAME for one relation, "
            "or --wide --head COLUMN where the columns are relations.",
        )
    for role in roles[:-1]:
        name = names[found[role]]
        if name in options.kinds:
            raise UsageError(
                f"the column {name!r} holds heads or relations, which are never numbers.",
                where="--numeric",
                advice="Name the tail, other columns, or relations whose tail is a number.",
            )
    unit = next((index for index, name in enumerate(lowered) if name == UNIT and index not in found.values()), None)
    taken = {*found.values(), unit}
    columns = [_column(index, name, options) for index, name in enumerate(names) if index not in taken and name]
    tail_kind: ColumnKind = options.kinds.get(names[found["tail"]], "entity")
    head, between, tail = (NameColumn(found[role]) if role in found else None for role in ("head", "relation", "tail"))
    return FileColumns(
        len(names), tuple(columns), head, between, tail, tail_kind, None if unit is None else NameColumn(unit)
    )


def _check(layout: FileColumns, names: list[str], options: ReadOptions, path: Path) -> None:
    ends = (layout.head, layout.relation, layout.tail)
    is_edge = layout.head and layout.tail and (layout.relation or options.relation_name)
    if any(ends) and not is_edge and not options.wide:
        wanted = dict(zip((":START_ID", ":TYPE", ":END_ID"), ends, strict=True))
        missing = [name for name, place in wanted.items() if place is None]
        raise DataError(
            f"the header lacks {' and '.join(missing)}.",
            where=f"{path}:1",
            advice="Add the column with a value in each row.",
        )
    main = {place.position for place in (*ends, layout.unit, layout.node, layout.labels, layout.label) if place}
    values = (*layout.properties, *layout.qualifiers)
    twice = named_twice([*(names[position] for position in main), *(column.name for column in values)])
    columns = [column.name for column in values]
    single = next((name for name in options.several if name not in columns), None)
    if single is not None:
        raise UsageError(
            f"{single!r} is not a column of values in {path}.", where="--several", advice=advice_on(single, columns)
        )
    if twice is not None:
        raise DataError(f"two columns are called {twice!r}.", where=f"{path}:1", advice="Rename one of them.")
    both = sorted(set(options.numeric) & set(options.dates))
    if both:
        raise UsageError(
            f"{both[0]!r} is named both as a number and as a date.", where="--numeric", advice="Name it once."
        )


def _typed_column(index: int, name: str, options: ReadOptions) -> ValueColumn:
    """A property of a Neo4j header: `name`, `name:type` or `name:type[]`."""
    found = _TYPED.fullmatch(name)
    known = found[2].lower() if found else ""
    if not found or known not in _NUMBER_TYPES | _DATE_TYPES | _TEXT_TYPES:
        return _column(index, name, options)
    kind: ColumnKind = "number" if known in _NUMBER_TYPES else "date" if known in _DATE_TYPES else "entity"
    return ValueColumn(index, found[1], options.kinds.get(found[1], kind), bool(found[3]))


def _column(index: int, name: str, options: ReadOptions) -> ValueColumn:
    return ValueColumn(index, name, options.kinds.get(name, "entity"))
