"""RDF files as a stream of triples with the line each stands on. pyoxigraph does the parsing.

Line formats (N-Triples, N-Quads) are parsed a block of lines at a time; only a block with something wrong in it is
parsed line by line, so one bad line costs one record and is named. In Turtle, TriG and RDF/XML a syntax error ends
the reading.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hynt.errors import DataError, RecordProblem
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.lines import text_lines
from hynt.formats.rdf.documents import blocks, load_pyoxigraph, what_is_wrong
from hynt.formats.rdf.terms import GRAPH, REIFIES, TEXT_FOR_PEOPLE
from hynt.formats.source_files import bare_name
from hynt.limits import DEEPEST_RDF, LONGEST_LINE, SMALL_DOCUMENT

if TYPE_CHECKING:
    from pyoxigraph import Literal, Triple

Object: TypeAlias = "str | Literal | Triple"
"""An IRI or blank node (`_:b1`) is a string."""


class TripleTerm(NamedTuple):
    """A triple that is spoken about."""

    subject: str
    predicate: str
    object: Object | TripleTerm


class RdfTriple(NamedTuple):
    """A triple of a file."""

    line: int
    subject: str
    predicate: str
    object: Object | TripleTerm


SUFFIXES = {
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".ttl": "TURTLE",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
}
"""What a file holds, by the end of its name. `.ntx` and `.nts` are N-Triples-star, as YAGO names it."""
STAR_SUFFIXES = {".ntx": "N_TRIPLES", ".nts": "N_TRIPLES", ".ttls": "TURTLE"}
LINES_PER_BLOCK = 2_000


def statements(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[RdfTriple]:
    """Every triple of a file, of all its graphs, with its line."""
    pyoxigraph = load_pyoxigraph()
    name = bare_name(path.name).lower()
    known = SUFFIXES | STAR_SUFFIXES
    kind = next((kind for suffix, kind in known.items() if name.endswith(suffix)), None)
    if kind is None:
        raise DataError(
            "the end of the file's name does not say which RDF it holds.",
            where=str(path),
            advice=f"Name it with one of {', '.join(known)}, compressed or not.",
        )
    reader = _LineReader if kind in ("N_TRIPLES", "N_QUADS") else _DocumentReader
    yield from reader(pyoxigraph, kind, options, report).read(path, options)


class _LineReader:
    """Reads lines, and turns pyoxigraph's terms into ours."""

    def __init__(self, pyoxigraph: Any, kind: str, options: ReadOptions, report: ReadReport) -> None:
        self.pyoxigraph, self.kind, self.report = pyoxigraph, kind, report
        self._graphs_qualify = options.named_graphs == "qualifier"
        self._lines = pyoxigraph.RdfFormat.N_TRIPLES if kind == "N_TRIPLES" else pyoxigraph.RdfFormat.N_QUADS
        self._named, self._blank, self._triple = pyoxigraph.NamedNode, pyoxigraph.BlankNode, pyoxigraph.Triple
        self._default_graph = pyoxigraph.DefaultGraph()

    def triples(self, line: int, quad: Any) -> Iterator[RdfTriple]:
        """The triple of a quad; where its graph is to be a qualifier, an annotation of the triple with it as well."""
        subject, predicate, object_, graph = quad
        triple = RdfTriple(line, self._node(subject), predicate.value, self._term(object_))
        yield triple
        if graph == self._default_graph or triple.predicate in (REIFIES, *TEXT_FOR_PEOPLE):
            return
        if self._graphs_qualify:
            name = "_:graph" + hashlib.blake2b(repr((triple[1:], str(graph))).encode(), digest_size=12).hexdigest()
            yield RdfTriple(line, name, REIFIES, TripleTerm(*triple[1:]))
            yield RdfTriple(line, name, GRAPH, self._node(graph))
        else:
            self.report.line = line
            advice = "It is read like any other; with --named-graphs qualifier the graph becomes a qualifier."
            self.report.note("named-graph", f"the triple is in the graph {graph}.", advice)

    def _node(self, term: Any) -> str:
        return str(term.value) if term.__class__ is self._named else f"_:{term.value}"

    def _term(self, term: Any) -> Object | TripleTerm:
        kind = term.__class__
        if kind is self._named or kind is self._blank:
            return self._node(term)
        if kind is self._triple:
            return TripleTerm(self._node(term.subject), term.predicate.value, self._term(term.object))
        return term  # type: ignore[no-any-return]

    def read(self, path: Path, options: ReadOptions) -> Iterator[RdfTriple]:
        block: list[tuple[int, str]] = []
        size = 0
        for line in text_lines(path, options, self.report):
            text = line.strip(" \t")
            if not text or text[0] == "#":
                continue
            here = self.report.line
            is_star = text.startswith("<<") and not text.startswith("<<(")
            if not is_star:
                block.append((here, text))
                size += len(text)
            if is_star or len(block) == LINES_PER_BLOCK or size > LONGEST_LINE:
                yield from self._block(block)
                block, size = [], 0
            if is_star:
                yield from self._star_line(here, text)
            self.report.line = here  # whoever took the statements may have moved it
        yield from self._block(block)

    def _block(self, block: list[tuple[int, str]]) -> Iterator[RdfTriple]:
        together = "\n".join(text for _, text in block)
        is_flat = together.count("<<") <= DEEPEST_RDF or not any(_is_too_deep(text) for _, text in block)
        try:
            quads = list(self.pyoxigraph.parse(together, format=self._lines)) if is_flat else []
        except (SyntaxError, MemoryError):
            quads = []
        if len(quads) == len(block):  # else a line is bad, or its text ran into the next line
            for (line, _), quad in zip(block, quads, strict=True):
                yield from self.triples(line, quad)
            return
        for line, text in block:
            yield from self._line(line, text, self._lines)

    def _line(self, line: int, text: str, format: Any) -> list[RdfTriple]:  # noqa: A002 - pyoxigraph's word
        try:
            if _is_too_deep(text):
                raise SyntaxError(f"statements are nested more than {DEEPEST_RDF} deep")
            quads = self.pyoxigraph.parse(text, format=format)
            return [triple for quad in quads for triple in self.triples(line, quad)]
        except (SyntaxError, MemoryError) as problem:
            what = what_is_wrong(problem)
            self.report.line = line
            self.report.read += 1
            self.report.reject(RecordProblem("syntax", what, "Correct the line: one triple and a full stop."))
            return []

    def _star_line(self, line: int, text: str) -> Iterator[RdfTriple]:
        """`<< s p o >> q v .`: in RDF-star all lines about one triple speak of the same statement."""
        if len(text) > SMALL_DOCUMENT:  # it is Turtle, in which much may be meant by few words
            what = f"a line about a triple is longer than {SMALL_DOCUMENT:,} characters."
            self.report.read += 1
            self.report.reject(RecordProblem("syntax", what, "Write it as <<( subject predicate object )>>."))
            return
        found = self._line(line, text, self.pyoxigraph.RdfFormat.TURTLE)
        names = {
            statement.subject: "_:star" + hashlib.blake2b(repr(statement.object).encode(), digest_size=12).hexdigest()
            for statement in found
            if statement.predicate == REIFIES and isinstance(statement.object, TripleTerm)
        }
        for statement in found:
            yield statement._replace(subject=names.get(statement.subject, statement.subject))


class _DocumentReader(_LineReader):
    """Reads what `documents` writes out as lines; a line of these is never bad."""

    def read(self, path: Path, options: ReadOptions) -> Iterator[RdfTriple]:
        self.report.file, self.report.line = str(path), 0
        for block in blocks(path, self.kind, options, self.report):
            yield from self._block(list(zip(block.lines, block.text.removesuffix("\n").split("\n"), strict=True)))


def _is_too_deep(text: str) -> bool:
    """Whether a line may be nested so deep that the parser would crash."""
    return text.count("<<") > DEEPEST_RDF
