"""The format `rdf`: N-Triples, N-Quads, Turtle, TriG and RDF/XML, with annotations and Wikidata's statements.

A record is a candidate fact: an ordinary triple, a reified triple (one for each reifier; the plain triple beside it
is the same record), or a statement of Wikidata. Names and descriptions for people are no records.
`docs/formats-tables-and-rdf.md` says more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hynt.formats.format import ReadOptions
from hynt.formats.rdf.names import ENTITY_BASE, LABEL, entity_name, settled_name
from hynt.formats.rdf.parsing import Statement, TripleTerm, statements
from hynt.formats.rdf.statements import StatementJoiner
from hynt.formats.rdf.writing import write_graph
from hynt.formats.report import ReadReport
from hynt.graph.fact import Fact, Number

__all__ = ["read_facts", "write_graph"]


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of an RDF file. Its rdfs:labels in the wanted language go to `report.labels`."""
    joiner = StatementJoiner(report, options)
    blank_nodes = _BlankNodes(path.name)
    for statement in statements(path, options, report):
        label = _label(statement, options.label_language)
        if label is not None:
            report.labels.setdefault(*label)
        if joiner.add(statement):
            for fact in joiner.release():
                yield blank_nodes.renamed(fact)
    for fact in joiner.finish():
        yield blank_nodes.renamed(fact)


def _label(statement: Statement, language: str) -> tuple[str, str] | None:
    """(name, label) where the statement is an rdfs:label in the language, or in none."""
    _, subject, predicate, value = statement
    if predicate != LABEL or isinstance(value, str | TripleTerm):
        return None
    spoken = getattr(value, "language", None)
    if subject.startswith("_:") or not (spoken is None or spoken.split("-")[0] == language):
        return None
    return settled_name(entity_name(subject)), str(getattr(value, "value", ""))


class _BlankNodes:
    """Gives blank nodes names that hold: their own are local to a file, and random where the file gives none."""

    def __init__(self, file_name: str) -> None:
        self._file_name = file_name
        self._names: dict[str, str] = {}

    def renamed(self, fact: Fact) -> Fact:
        """The fact, with its blank nodes numbered in the order they are met in facts."""
        head, _, tail, qualifiers = fact
        if not (_may_change(head) or _may_change(tail) or any(_may_change(value) for _, value in qualifiers)):
            return fact
        pairs = tuple(pair._replace(value=self._settled(pair.value)) for pair in qualifiers)
        return fact._replace(head=self._name(head), tail=self._settled(tail), qualifiers=pairs)

    def _settled(self, value: str | Number) -> str | Number:
        return self._name(value) if isinstance(value, str) else value

    def _name(self, node: str) -> str:
        if not node.startswith("_:"):
            return settled_name(node)
        return self._names.setdefault(node, f"_:{self._file_name}:{len(self._names) + 1}")


def _may_change(value: str | Number) -> bool:
    return isinstance(value, str) and value.startswith(("_:", ENTITY_BASE))
