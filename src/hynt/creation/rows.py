"""What a parser makes of a line, whatever the source: rows of one table, and the names it met.

A candidate fact is a row with a head at place 0; its qualifiers are rows of the same statement at places from 1 on. A
row without a statement belongs to a named node instead: a YAGO fact id or a Freebase mediator, joined later in SQL.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

Kind: TypeAlias = Literal["entity", "number", "text"]
"""What a value is. Text stands for itself: it passes where an entity would have to be in the set."""

Scope: TypeAlias = Literal["lines", "facts", "qualifiers", "nodes", "notes"]
Counts: TypeAlias = "Counter[tuple[Scope, str]]"
"""How often each thing happened: ("lines", "parsed"), ("facts", "deprecated"), …"""


class ParsedValue(NamedTuple):
    """A value as the dump has it. `number` is None for anything but a number; `unit` is the dump's own name for it."""

    kind: Kind
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
