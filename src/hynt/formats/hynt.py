"""The folders of the HyNT paper, raw and normalised: tab-separated `head relation tail (qualifier-relation value)*`.

The first line may hold the number of facts. Which values are numbers is said by their spelling: see
`hynt.formats.literals`. Odd but published things, such as an impossible date, are kept as the authors did and noted;
`strict` refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hynt.errors import DataError
from hynt.formats.cells import number_as_head, wrong_shape
from hynt.formats.format import ReadOptions
from hynt.formats.literals import TokenValues, write_token
from hynt.formats.names import shortened
from hynt.formats.opening import facts_from_lines
from hynt.formats.report import ReadReport
from hynt.formats.writing import write_folder
from hynt.graph.fact import Fact, Number, Qualifier, Value

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of one file."""
    parser = _Parser(options, report)
    before = report.read
    yield from facts_from_lines(path, options, report, parser.parse)
    parser.check_count(path, report.read - before)


class _Parser:
    """Turns lines into facts, and remembers the count that the first line may give."""

    def __init__(self, options: ReadOptions, report: ReadReport) -> None:
        self._values = TokenValues(report, strict=options.strict)
        self._report = report
        self._strict = options.strict
        self._count: int | None = None

    def parse(self, line: str) -> Fact | None:
        cells = line.split("\t")
        count = len(cells)
        if count < 3 or not count & 1 or "" in cells:
            if not line or self._is_count(line):
                return None
            raise wrong_shape(cells, "a tab")
        values = self._values
        head = values[cells[0]]
        if isinstance(head, Number):
            raise number_as_head(cells[0])
        if count == 3:
            return Fact(head, cells[1], values[cells[2]])
        qualifiers = [Qualifier(cells[index], values[cells[index + 1]]) for index in range(3, count, 2)]
        return Fact(head, cells[1], values[cells[2]], tuple(qualifiers))

    def check_count(self, path: Path, found: int) -> None:
        """Note, or refuse, a first line that gives another number of facts than there are."""
        if self._count is None or self._count == found:
            return
        what = f"the first line says {self._count:,} facts, but there are {found:,}."
        if self._strict:
            raise DataError(
                what, where=f"{path}:1", advice="The file may be cut short: get it again or correct the line."
            )
        self._report.line = 1
        self._report.note("wrong-count", what, "The file may be cut short: compare it with its source.")

    def _is_count(self, line: str) -> bool:
        if self._report.line == 1 and len(line) <= 18 and line.isascii() and line.isdigit():
            self._count = int(line)
            return True
        return False


def write_graph(graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
    """A folder in the raw style: a count line and the facts of each split, with literals as they were written."""
    return write_folder(graph, path, ".txt", write_fact, count_line=True)


def write_fact(fact: Fact) -> str:
    """A fact as a line; a `DataError` where the format cannot say it."""
    cells = [_cell(fact.head, fact), _cell(fact.relation, fact, is_relation=True), _cell(fact.tail, fact)]
    for relation, value in fact.qualifiers:
        cells += (_cell(relation, fact, is_relation=True), _cell(value, fact))
    return "\t".join(cells)


def _cell(value: Value, fact: Fact, *, is_relation: bool = False) -> str:
    if is_relation and isinstance(value, str) and value and not any(mark in value for mark in "\t\n\r"):
        return value
    token = None if is_relation else write_token(value)
    if token is None:
        raise DataError(
            f"the format hynt cannot write {shortened(repr(value))} of {shortened(repr(fact), 300)}: "
            "it would be read back as something else.",
            advice="Export to tsv or jsonl, which can write every fact.",
        )
    return token
