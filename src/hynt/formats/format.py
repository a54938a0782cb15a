"""The contract of a format: a function that reads facts from one file, and where it makes sense one that writes them.

A reader is a generator of `Fact`. It counts every record into the report (`read`, then `kept` or `reject`), keeps
`report.line` current so that whoever consumes the facts can name the place, holds bounded memory, and raises
`DataError` only where the file as a whole cannot be read on. `write_folder` writes all of a graph, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from hynt.errors import RecordProblem
from hynt.files import new_folder
from hynt.formats.values import check_writable
from hynt.graph.fact import Fact
from hynt.limits import LONGEST_LINE, MOST_EXPANSION
from hynt.names import plural

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

UnitRule: TypeAlias = Literal["si", "keep"]


@dataclass(frozen=True)
class ReadOptions:
    """What a caller may say about a source. A format lists the options it knows; any other given to it is an error."""

    strict: bool = False  # refuse odd but published things instead of keeping and noting them
    numeric: tuple[str, ...] = ()  # the relations (in tables: or columns) that hold numbers
    dates: tuple[str, ...] = ()  # the relations (in tables: or columns) that hold dates
    head: str = ""  # csv-edges: names of the three main columns, "" to find them
    relation: str = ""
    tail: str = ""
    relation_name: str = ""  # csv-edges: the relation of all rows, where no column holds it
    label: str = ""  # csv-edges, graph-json: the column or property with an entity's name for people, "" to find it
    wide: bool = False  # csv-edges: every column but the head and the qualifiers is a relation
    qualifier: tuple[str, ...] = ()  # csv-edges, wide: the columns that qualify the facts of their row
    date_format: str = ""  # of dates that are not written as 1922-01-28, as in Python: %d/%m/%Y
    number_format: str = ""  # of numbers that are not written as 1234.5, by an example: 1,234.5
    several: tuple[str, ...] = ()  # csv-edges: the columns whose cells hold several values
    several_by: str = ""  # csv-edges: what stands between them, "" for a semicolon
    delimiter: str = ""  # csv-edges: "" to take it from the file name and the header
    string_literals: Literal["drop", "keep"] = "drop"  # rdf: text literals are dropped and counted, or become entities
    base: str = ""  # rdf: what relative addresses stand under
    named_graphs: Literal["ignore", "qualifier"] = "ignore"  # rdf: the graph of a triple becomes a qualifier
    label_language: str = "en"  # rdf: rdfs:label in this language, or without one, names entities and relations
    max_line_bytes: int = LONGEST_LINE  # a longer line is an error, so memory stays bounded
    max_expansion: int = MOST_EXPANSION  # decompressed bytes per byte, beyond which a file is taken for a bomb

    @cached_property
    def kinds(self) -> Mapping[str, Literal["number", "date"]]:
        """What the user said that relations, or columns, hold."""
        numbers: dict[str, Literal["number", "date"]] = dict.fromkeys(self.numeric, "number")
        return numbers | dict.fromkeys(self.dates, "date")


EVERYWHERE = frozenset(
    {"strict", "max_line_bytes", "max_expansion", "numeric", "dates", "date_format", "number_format"}
)
"""Options that mean the same whatever the format."""


def changed_options(options: ReadOptions) -> list[str]:
    default = ReadOptions()
    return [item.name for item in fields(ReadOptions) if getattr(options, item.name) != getattr(default, item.name)]


class FactReader(Protocol):
    def __call__(self, path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]: ...


class Writer(Protocol):
    def __call__(self, graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
        """Write the graph to a file or folder that does not exist yet; the files written."""


@dataclass(frozen=True)
class Format:
    """A format in the registry."""

    name: str
    summary: str  # one line for `hynt data list`
    suffixes: tuple[str, ...]  # of its files, before any compression suffix: (".txt",)
    read: FactReader
    write: Writer | None = None
    units: UnitRule = "si"  # whether numbers with units are converted to SI by default
    options: frozenset[str] = field(default_factory=frozenset)  # the ReadOptions it knows beyond strict and the limits
    extra: str = ""  # the extra to install, such as "rdf"


# What happened while reading: how much was read, kept and rejected, why, and where.
#
# read = kept + rejected          always, and a test holds it

__all__ = ["PROBLEMS_SHOWN", "ReadReport", "RecordProblem", "ReportedProblem"]

PROBLEMS_SHOWN = 20


class ReportedProblem(NamedTuple):
    """A rejected record, or an odd one that was kept."""

    where: str  # file:line
    reason: str
    what: str
    advice: str


class FileBeside(NamedTuple):
    """A file in the folder of a source that was not read."""

    file: str  # its path, as the user named the folder
    what: str  # what it seems to hold
    option: str  # what to add to the command so that it is read; "" where nothing reads it


@dataclass
class ReadReport:
    """Counts, and the first problems with their places. One report serves all files of a source."""

    read: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)  # odd but kept, or left out on purpose, by reason
    left_out: set[str] = field(default_factory=set)  # which of these reasons leave something out
    problems: list[ReportedProblem] = field(default_factory=list)  # the first rejected ones
    notes: list[ReportedProblem] = field(default_factory=list)  # the first noted ones
    hints: list[str] = field(default_factory=list)  # what a user may have forgotten to say
    beside: list[FileBeside] = field(default_factory=list)  # files in the folders that were not read
    inferred: list[str] = field(default_factory=list)  # the formats of sources whose format nobody gave
    file: str = ""  # the file being read, as the user named it
    line: int = 0  # the line or record being read, from 1
    labels: dict[str, str] = field(default_factory=dict)  # names for people that stand among the facts, by id
    descriptions: dict[str, str] = field(default_factory=dict)  # what relations mean, where it stands among the facts
    bytes_read: int = 0  # taken from the files so far, before decompression: what a progress bar shows

    @property
    def where(self) -> str:
        """The place being read now."""
        return f"{self.file}:{self.line}"

    def reject(self, problem: RecordProblem, *, where: str = "") -> None:
        """Count a record that was read and cannot be kept."""
        self.rejected[problem.reason] += 1
        told = ReportedProblem(where or self.where, problem.reason, problem.what, problem.advice)
        _list(told, self.problems, is_first=self.rejected[problem.reason] == 1)

    def note(self, reason: str, what: str, advice: str = "") -> None:
        """Count something odd about a record that is kept all the same."""
        self.noted[reason] += 1
        _list(ReportedProblem(self.where, reason, what, advice), self.notes, is_first=self.noted[reason] == 1)

    def leave_out(self, reason: str, what: str, advice: str = "It is left out.") -> None:
        """Count something that the source says and a graph does not hold."""
        self.left_out.add(reason)
        self.note(reason, what, advice)

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON and the manifest."""
        return {
            "read": self.read,
            "kept": self.kept,
            "rejected": dict(sorted(self.rejected.items())),
            "noted": dict(sorted(self.noted.items())),
        }

    def told(self, source: str) -> list[str]:
        """In words, a line each: the counts, the first problems with their places, and the hints."""
        lines = [f"<{plural(self.read, 'record')} of {source}: {self.kept:,} kept, {self.rejected.total():,} rejected>"]
        lines += [f"{one.where}: {one.what}" for one in self.problems]
        return [*lines, *(f"note: {hint}" for hint in dict.fromkeys(self.hints))]

    def findings(self) -> dict[str, Any]:
        """The first rejected records, the first odd ones that were kept, and hints, as plain values."""
        return {
            "problems": [problem._asdict() for problem in self.problems],
            "notes": [note._asdict() for note in self.notes],
            "left_out": sorted(self.left_out),
            "hints": list(dict.fromkeys(self.hints)),
            "beside": [beside._asdict() for beside in self.beside],
        }


def _list(told: ReportedProblem, listed: list[ReportedProblem], *, is_first: bool) -> None:
    """Adds it while there is room; the first of its reason is always shown, and one of a reason with several goes."""
    if len(listed) == PROBLEMS_SHOWN and is_first:
        reasons = Counter(shown.reason for shown in listed)
        listed.remove(next(one for one in reversed(listed) if reasons[one.reason] > 1))
    if len(listed) < PROBLEMS_SHOWN:
        listed.append(told)


def write_folder(
    graph: KnowledgeGraph,
    path: Path,
    suffix: str,
    write_split: Callable[[str, Path, str], None],
    describe: Callable[[Path], str] | None = None,
) -> list[Path]:
    """A folder with a file for each split, and what is known of entities and relations beside them. `write_split` fills
    the file of a split, whose name-to-be it is told for errors; `describe` adds a file about them, before the folder
    has its name, and says which.
    """
    from hynt.formats.declarations import write_declarations

    with new_folder(path) as folder:
        for split in graph.splits:
            write_split(split, folder / f"{split}{suffix}", str(path / f"{split}{suffix}"))
        names = [f"{split}{suffix}" for split in graph.splits]
        names += [made.name for made in write_declarations(graph, folder)]
        names += [] if describe is None else [describe(folder)]
    return [path / name for name in names]


def write_text_folder(
    graph: KnowledgeGraph,
    path: Path,
    suffix: str,
    written: Callable[[Fact], str],
    *,
    header: str = "",
    count_line: bool = False,
) -> list[Path]:
    """Write each split as one file of lines."""

    def write_split(split: str, file: Path, where: str) -> None:
        first = f"{len(graph.splits[split])}" if count_line else header
        write_lines(file, _lines(graph.facts(split), written, first, where))

    return write_folder(graph, path, suffix, write_split)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8 with \\n ends."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _lines(facts: Iterable[Fact], written: Callable[[Fact], str], first: str, where: str) -> Iterator[str]:
    if first:
        yield first
    for fact in facts:
        check_writable(fact, where=where)
        yield written(fact)
