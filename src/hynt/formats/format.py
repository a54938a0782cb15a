"""The contract of a format: a function that reads facts from one file, and where it makes sense one that writes them.

A reader is a generator of `Fact`. It counts every record into the report (`read`, then `kept` or `reject`), keeps
`report.line` current so that whoever consumes the facts can name the place, holds bounded memory, and raises
`DataError` only where the file as a whole cannot be read on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from hynt.formats.report import ReadReport
from hynt.graph.fact import Fact

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

UnitRule: TypeAlias = Literal["si", "keep"]


@dataclass(frozen=True)
class ReadOptions:
    """What a caller may say about a source. A format lists the options it knows; any other given to it is an error."""

    strict: bool = False  # refuse odd but published things instead of keeping and noting them
    numeric: tuple[str, ...] = ()  # csv-edges: the columns (or relations) that hold numbers
    dates: tuple[str, ...] = ()  # csv-edges: the columns (or relations) that hold dates
    head: str = ""  # csv-edges: names of the three main columns, "" to find them
    relation: str = ""
    tail: str = ""
    delimiter: str = ""  # csv-edges: "" to take it from the file name and the header
    string_literals: Literal["drop", "keep"] = "drop"  # rdf: text literals are dropped and counted, or become entities
    label_language: str = "en"  # rdf: rdfs:label in this language, or without one, names entities and relations
    max_line_bytes: int = 16 * 2**20  # a longer line is an error, so memory stays bounded
    max_expansion: int = 200  # decompressed bytes per compressed byte beyond which a file is taken for a bomb


class Reader(Protocol):
    def __call__(self, path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]: ...


class Writer(Protocol):
    def __call__(self, graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
        """Write the graph to a file or folder that does not exist yet; the files written."""
        ...


@dataclass(frozen=True)
class Format:
    """A format in the registry."""

    name: str
    summary: str  # one line for `hynt data list`
    suffixes: tuple[str, ...]  # of its files, before any compression suffix: (".txt",)
    read: Reader
    write: Writer | None = None
    units: UnitRule = "si"  # whether numbers with units are converted to SI by default
    options: frozenset[str] = field(default_factory=frozenset)  # the ReadOptions it knows beyond strict and the limits
    extra: str = ""  # the extra to install, such as "rdf"
