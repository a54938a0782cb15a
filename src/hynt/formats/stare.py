"""The folders of the StarE paper, such as WD50K: comma-separated, no count line, entities only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hynt.errors import DataError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.names import shortened
from hynt.formats.opening import facts_from_lines, wrong_shape
from hynt.formats.writing import write_folder
from hynt.graph.fact import Fact, Number, Qualifier

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of one file."""
    return facts_from_lines(path, options, report, _parse)


def _parse(line: str) -> Fact | None:
    cells = line.split(",")
    count = len(cells)
    if count < 3 or not count & 1 or "" in cells:
        if not line:
            return None
        raise wrong_shape(cells, "a comma")
    if count == 3:
        return Fact(cells[0], cells[1], cells[2])
    qualifiers = [Qualifier(cells[index], cells[index + 1]) for index in range(3, count, 2)]
    return Fact(cells[0], cells[1], cells[2], tuple(qualifiers))


def write_graph(graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
    """A folder of comma-separated files; a graph with numbers, or with a comma in a name, is refused."""
    return write_folder(graph, path, ".txt", write_fact)


def write_fact(fact: Fact) -> str:
    """A fact as a line; a `DataError` where the format cannot say it."""
    cells: list[str] = []
    for value in (fact.head, fact.relation, fact.tail, *(part for pair in fact.qualifiers for part in pair)):
        if isinstance(value, Number):
            raise DataError(
                f"the format stare cannot write numbers, and a fact of {shortened(fact.head, 100)!r} has one.",
                advice="Export to tsv, jsonl or hynt.",
            )
        if any(mark in value for mark in ",\n\r") or value.startswith("\ufeff"):
            raise DataError(
                f"the format stare cannot write the name {shortened(value)!r}: "
                "it has no way to write a comma, a line end or a byte order mark.",
                advice="Export to tsv or jsonl, which can write every fact.",
            )
        cells.append(value)
    return ",".join(cells)
