"""The contract of a dump: which files it consists of, which lines are wanted, and what a line says.

Literals of YAGO and Freebase are read here too: what is in the quotes, and the datatype or language behind them. The
datatype says what a value is; nothing is a number because it looks like one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from hynt.creation.options import Selection
from hynt.creation.reading import Scan
from hynt.errors import RecordProblem, UsageError, not_installed
from hynt.formats.format import UnitRule
from hynt.formats.values import DATES, NUMBERS, check_name, parse_number, schema_type
from hynt.graph.fact import DATE_UNIT
from hynt.graph.units.dates import UnreadableDate, parse_iso_date
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
    description: str = ""  # of relations: what their facts say


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


def one_value(head: str, relation: str, read: Callable[[], ParsedValue], *, of_node: bool) -> Parsed:
    """A line that says one thing about an entity or a node; a value that is none is counted by its reason."""
    counts: Counts = Counter({("lines", "parsed"): 1})
    try:
        value = read()
    except RecordProblem as problem:
        counts["nodes" if of_node else "facts", problem.reason] += 1
        return Parsed([], [], [], [], counts)
    if of_node:
        return Parsed([], [NodeValue(head, relation, value)], [], [], counts)
    return Parsed([ParsedFact(head, relation, value)], [], [], [], counts)


def line_text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise RecordProblem("not-utf8", f"byte {problem.start + 1} is not UTF-8.", "Get the dump again.") from None


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
NAMES = pa.schema([(name, pa.string()) for name in ("what", "name", "label", "type", "description")])
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


class DumpSource(ABC):
    """A kind of dump that graphs can be created from: how its lines are chosen and parsed."""

    name: str
    suffixes: tuple[str, ...]  # of its files, before any compression suffix

    @abstractmethod
    def prepare(self, dump: Scan, selection: Selection, settings: ParseSettings, /) -> tuple[Selection, ParseSettings]:
        """What has to be known of the whole dump before a line of it can be parsed."""

    @abstractmethod
    def selector(self, selection: Selection, settings: ParseSettings) -> Selector: ...

    @abstractmethod
    def parser(self, selection: Selection, settings: ParseSettings) -> Parser: ...

    def is_document(self, start: bytes) -> bool:  # noqa: ARG002
        """Whether a file that starts so is one document and not lines."""
        return False

    def document_lines(self, data: bytes) -> list[tuple[int, bytes]]:  # noqa: ARG002
        """The entities of such a document."""
        raise AssertionError(f"never asked: no part of a {self.name} dump is a document")


# Every kind of dump by its name, in one place; a parser's module is imported when its dump is first read.

SOURCES = {
    "wikidata": ("wikidata", "WikidataDump"),
    "yago": ("yago", "YagoDump"),
    "freebase": ("freebase", "FreebaseDump"),
}
"""Name → (module in this room, class)."""


def get_source(name: str) -> DumpSource:
    if name not in SOURCES:
        raise UsageError(f"unknown source {name!r}.", advice=advice_on(name, SOURCES))
    module, kind = SOURCES[name]
    try:
        source: DumpSource = getattr(import_module(f"hynt.creation.sources.{module}"), kind)()
    except ModuleNotFoundError as problem:
        raise not_installed(problem.name or module, "create", what=f"a dump of {name}") from None
    return source


def prelude_of(name: str) -> str | None:
    """The SQL file that joins a dump's lines before the recipe; None where a line says all there is to say."""
    return None if name == "wikidata" else f"sources/{name}.sql"


_LITERAL = re.compile(r'"(.*)"(?:@([A-Za-z0-9-]+)|\^\^(?:<([^<>]*)>|([A-Za-z0-9_]+:[A-Za-z0-9_.-]+)))?', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


class TypedLiteral(NamedTuple):
    """A literal, taken apart. `datatype` is the name of an XML Schema type (`date`) or another type's own name."""

    text: str
    language: str = ""
    datatype: str = ""
    is_schema_type: bool = False


def read_literal(token: str) -> TypedLiteral:
    """Take a literal apart; a RecordProblem "bad-literal" where it is none."""
    found = _LITERAL.fullmatch(token)
    if found is None:
        raise RecordProblem("bad-literal", f"{token[:40]!r} is not a literal.", "Get the dump again.")
    text, language, address, prefixed = found.groups()
    known = schema_type(address, prefixed)
    if known is not None:
        return TypedLiteral(text, "", known, True)
    return TypedLiteral(text, language or "", address or prefixed or "")


def literal_value(
    token: str, keep_text: bool, *, bare_is_number: bool = False, types_are_units: bool = False
) -> ParsedValue:
    """A date or a number as written and by its value, or text, whose quotes tell it from an id."""
    literal = read_literal(token)
    of_schema = literal.datatype if literal.is_schema_type else ""
    if of_schema in DATES:
        written = check_name(token, "date")
        try:
            value, _ = parse_iso_date(literal.text)
        except UnreadableDate as problem:
            raise RecordProblem("bad-date", problem.what, problem.advice) from None
        return ParsedValue("number", written, value + 0.0, DATE_UNIT)
    unit = literal.datatype if types_are_units and not of_schema else ""
    if of_schema in NUMBERS or unit or (bare_is_number and not literal.language and not literal.datatype):
        return ParsedValue("number", check_name(token, "number"), parse_number(literal.text) + 0.0, unit)
    if not keep_text:
        raise RecordProblem("text", "text is dropped.")
    language = f"@{literal.language}" if literal.language else ""
    return ParsedValue("text", check_name(f'"{unescaped(literal.text)}"{language}', "text"))


def entity_name(identity: str, literal: TypedLiteral) -> Parsed:
    """A line that says what people call an entity."""
    name = Named("entity", identity, check_name(unescaped(literal.text), "name"))
    return Parsed([], [], [name], [], Counter({("lines", "name"): 1}))


def unescaped(text: str) -> str:
    """The characters that N-Triples and Turtle write with a backslash; anything unknown is a RecordProblem."""
    if "\\" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "uU" and len(code) > 1:
            number = int(code[1:], 16)
            if number < 0x110000 and not 0xD800 <= number < 0xE000:
                return chr(number)
        elif code in _ESCAPED:
            return _ESCAPED[code]
        raise RecordProblem("bad-literal", f"\\{code} is not an escape.", "Get the dump again.")

    return _ESCAPE.sub(character, text)
