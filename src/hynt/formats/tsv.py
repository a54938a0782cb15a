r"""Our own table: tab-separated `head relation tail (qualifier-relation value)*`, each value with a mark of its kind.

==========================  ================================================================================
``Q42``                     an entity
``=80``, ``=80 kg``         a number, and its unit after one space
``=80.0 kg|176.4 lb``       the same, with the literal it came from after a bar
``@1922-01-28``             a date, a month or a year; it too may have a literal: ``@1922-01-28|28 Jan 1922``
``\=x``, ``\@x``            the entities ``=x`` and ``@x``
``\t \n \r \\ \|``          a tab, a line feed, a carriage return, a backslash, a bar inside a unit
==========================  ================================================================================

A first line that starts with the cells head, relation, tail is a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hynt.errors import RecordProblem
from hynt.formats.format import ReadOptions, ReadReport, write_text_folder
from hynt.formats.lines import facts_from_lines, number_as_head, wrong_shape
from hynt.formats.values import Remembered, parse_number, read_date, spell
from hynt.graph.fact import Fact, Number, Qualifier, Value
from hynt.names import shortened

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

HEADER = "head\trelation\ttail"
_NUMBER = re.compile(r"=([^ |\\]+)(?: ((?:[^|\\]|\\.)+))?(?:\|(.*))?")
_DATE = re.compile(r"@([^|\\]+)(?:\|(.*))?")
_ESCAPE = re.compile(r"\\(.?)")
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\", "=": "=", "@": "@", "|": "|"}
_NUMBER_ADVICE = "A number is written as =80 or =80 kg; an entity that starts with = as \\=."
_DATE_ADVICE = "A date is written as @1922-01-28, @1922-01 or @1922; an entity that starts with @ as \\@."


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    values = Remembered(read_cell)

    def parse(line: str) -> Fact | None:
        cells = line.split("\t")
        count = len(cells)
        if count < 3 or not count & 1 or "" in cells:
            if not line or _is_header(cells, report):
                return None
            raise wrong_shape(cells, "a tab")
        if cells[0] == "head" and _is_header(cells, report):
            return None
        head, relation = values[cells[0]], values[cells[1]]
        if isinstance(head, Number):
            raise number_as_head(cells[0])
        if isinstance(relation, Number):
            raise _number_as_relation(cells[1])
        if count == 3:
            return Fact(head, relation, values[cells[2]])
        qualifiers = []
        for index in range(3, count, 2):
            relation_name = values[cells[index]]
            if isinstance(relation_name, Number):
                raise _number_as_relation(cells[index])
            qualifiers.append(Qualifier(relation_name, values[cells[index + 1]]))
        return Fact(head, relation, values[cells[2]], tuple(qualifiers))

    return facts_from_lines(path, options, report, parse)


def _is_header(cells: list[str], report: ReadReport) -> bool:
    return report.line == 1 and cells[:3] == ["head", "relation", "tail"]


def read_cell(cell: str) -> Value:
    """The entity, number or date that a cell stands for."""
    first = cell[0]
    if first == "=":
        found = _NUMBER.fullmatch(cell)
        if found is None:
            raise RecordProblem("bad-number", f"{shortened(cell)!r} is not a number.", _NUMBER_ADVICE)
        text, unit, literal = found.groups()
        value = parse_number(text)
        return Number(value, text if literal is None else _unescaped(literal), _unescaped(unit or ""))
    if first == "@":
        found = _DATE.fullmatch(cell)
        if found is None:
            raise RecordProblem("bad-date", f"{shortened(cell)!r} is not a date.", _DATE_ADVICE)
        text, literal = found.groups()
        date = read_date(text)
        return date if literal is None else date._replace(literal=_unescaped(literal))
    return _unescaped(cell) if "\\" in cell else cell


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_unescape, text) if "\\" in text else text


def _unescape(found: re.Match[str]) -> str:
    character = _UNESCAPED.get(found[1])
    if character is None:
        what = f"\\{found[1]} is not an escape" if found[1] else "a backslash ends the cell"
        raise RecordProblem(
            "bad-escape", f"{what}.", "Write a backslash as \\\\; the others are \\t \\n \\r \\= \\@ \\|."
        )
    return character


def _number_as_relation(cell: str) -> RecordProblem:
    return RecordProblem(
        "number-as-relation",
        f"a relation is written as a number or a date: {shortened(cell)}",
        "A relation is a name; one that starts with = or @ is written with a backslash before it.",
    )


def write_graph(graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
    """A folder with a table for each split, and what is known of entities and relations beside them."""
    return write_text_folder(graph, path, ".tsv", write_fact, header=HEADER)


def write_fact(fact: Fact) -> str:
    cells = [_name(fact.head), _name(fact.relation), _cell(fact.tail)]
    for relation, value in fact.qualifiers:
        cells += (_name(relation), _cell(value))
    return "\t".join(cells)


def _cell(value: Value) -> str:
    if not isinstance(value, Number):
        return _name(value)
    text, is_date, unit, literal = spell(value)
    cell = f"@{text}" if is_date else f"={text}"
    if unit:
        cell += " " + _escaped(unit).replace("|", "\\|")
    return cell if literal is None else f"{cell}|{_escaped(literal)}"


def _name(name: str) -> str:
    return f"\\{name[0]}{_escaped(name[1:])}" if name[:1] in ("=", "@") else _escaped(name)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
