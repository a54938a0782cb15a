"""The contract of a dump: which files it consists of, which lines are wanted, and what a line says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from hynt.creation.reading import Scan
from hynt.creation.selection import Selection
from hynt.errors import UsageError
from hynt.formats.format import UnitRule
from hynt.names import advice_on

# What a parser makes of a line, whatever the source: rows of one table, and the names it met.
#
# A candidate fact is a row with a head at place 0; its qualifiers are rows of the same statement at places from 1 on. A
# row without a statement belongs to a named node instead: a YAGO fact id or a Freebase mediator, joined later in SQL.

ValueKind: TypeAlias = Literal["entity", "number", "text"]
"""What a value is. Text stands for itself: it passes where an entity would have to be in the set."""

AccountScope: TypeAlias = Literal["lines", "facts", "qualifiers", "nodes", "notes"]
Counts: TypeAlias = "Counter[tuple[AccountScope, str]]"
"""How often each thing happened: ("lines", "parsed"), ("facts", "deprecated"), …"""


class ParsedValue(NamedTuple):
    """A value as the dump has it. `number` is None for anything but a number; `unit` is the dump's own name for it."""

    kind: ValueKind
    value: str  # an entity id, the number as written, or the text
    number: float | None = None
    unit: str = ""


class ParsedFact(NamedTuple):
    """A candidate fact; `node` is the name that other lines know it by, where there is one."""

    head: str
    relation: str
    value: ParsedValue
    qualifiers: tuple[tuple[str, ParsedValue], ...] = ()
    node: str | None = None


class NodeValue(NamedTuple):
    """Something that a line says about a fact id or a mediator."""

    node: str
    relation: str
    value: ParsedValue


class Named(NamedTuple):
    """A name for people. `what` tells entities from relations."""

    what: Literal["entity", "relation"]
    identity: str
    label: str = ""
    type: str = ""


class Parsed(NamedTuple):
    """Everything that one line says."""

    facts: list[ParsedFact]
    node_values: list[NodeValue]
    names: list[Named]
    redirects: list[tuple[str, str]]  # (old id, id it leads to)
    counts: Counts


def nothing(reason: str) -> Parsed:
    """A line that was understood and says nothing."""
    return Parsed([], [], [], [], Counter({("lines", reason): 1}))


ROWS = pa.schema(
    [
        ("statement", pa.int64()),  # null: the row belongs to a node
        ("place", pa.int64()),  # 0: the tail; else the order among the qualifiers of a statement
        ("head", pa.string()),  # null unless place is 0
        ("relation", pa.string()),
        ("kind", pa.string()),
        ("value", pa.string()),
        ("number", pa.float64()),  # in the reference unit of `unit`, unless units are kept or this one is unknown
        ("unit", pa.string()),  # as the dump names it
        ("node", pa.string()),
    ]
)
NAMES = pa.schema([("what", pa.string()), ("name", pa.string()), ("label", pa.string()), ("type", pa.string())])
REDIRECTS = pa.schema([("source", pa.string()), ("target", pa.string())])
PRIMARIES = pa.schema([("link", pa.string()), ("property", pa.string())])

PART_TABLES: dict[str, pa.Schema] = {"parsed": ROWS, "names": NAMES, "redirects": REDIRECTS}
"""The tables of a part, each a Parquet file of its own where it is not empty."""


@dataclass(frozen=True)
class ParseSettings:
    """What a source's parser is told; part of the identity of a build's parts."""

    language: str = "en"
    keep_text: bool = False
    preferred_only: bool = False
    subclasses: bool = False  # Wikidata: types stand for their subclasses too
    mediator_types: frozenset[str] = frozenset()  # Freebase: types whose nodes only hold other values together
    units: UnitRule = "si"  # what becomes of numbers in other units
    number_properties: frozenset[str] = frozenset()  # Freebase: whose plain strings are numbers, by its schema


class Selected(NamedTuple):
    """The wanted lines of a block, each with its offset, and what became of the others."""

    lines: list[tuple[int, bytes]]
    counts: Counts


def selected(lines: list[tuple[int, bytes]], others: Mapping[str, int]) -> Selected:
    """Wanted lines, and how many others there were, by reason."""
    return Selected(lines, Counter({("lines", reason): number for reason, number in others.items() if number}))


Selector = Callable[[bytes, int], Selected]
"""Takes a block of whole lines and its offset. Fast: it looks at the start of a line and no further."""

Parser = Callable[[bytes], Parsed]
"""Takes a line; raises RecordProblem where it cannot be read. Pure: the same line always gives the same rows."""


class DumpSource(Protocol):
    """A kind of dump that graphs can be created from: how its lines are chosen and parsed."""

    name: str
    suffixes: tuple[str, ...]  # of its files, before any compression suffix

    def prepare(self, dump: Scan, selection: Selection, settings: ParseSettings, /) -> tuple[Selection, ParseSettings]:
        """What has to be known of the whole dump before a line of it can be parsed."""
        ...

    def selector(self, selection: Selection, settings: ParseSettings) -> Selector: ...

    def parser(self, selection: Selection, settings: ParseSettings) -> Parser: ...

    def is_document(self, start: bytes) -> bool:
        """Whether a file that starts so is one document and not lines."""
        ...

    def document_lines(self, data: bytes) -> list[tuple[int, bytes]]:
        """The entities of such a document."""
        ...


# Every kind of dump by its name, in one place; a parser's module is imported when its dump is first read.

SOURCES = {
    "wikidata": ("wikidata", "WikidataDump"),
    "yago": ("yago", "YagoDump"),
    "freebase": ("freebase", "FreebaseDump"),
}
"""Name → (module in this room, class)."""


def get_source(name: str) -> DumpSource:
    """The kind of dump of that name."""
    if name not in SOURCES:
        raise UsageError(f"unknown source {name!r}.", advice=advice_on(name, SOURCES))
    module, kind = SOURCES[name]
    try:
        source: DumpSource = getattr(import_module(f"hynt.creation.sources.{module}"), kind)()
    except ModuleNotFoundError as problem:
        raise UsageError(
            f"{name} dumps need the package {problem.name}.", advice="Install it with: pip install 'hynt[create]'."
        ) from None
    return source


def prelude_of(name: str) -> str | None:
    """The SQL file that joins a dump's lines before the recipe; None where a line says all there is to say."""
    return None if name == "wikidata" else f"sources/{name}.sql"
