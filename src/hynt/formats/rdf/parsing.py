"""RDF files as a stream of triples with the line each stands on. pyoxigraph does the parsing.

Line formats (N-Triples, N-Quads) are parsed a block of lines at a time; only a block with something wrong in it is
parsed line by line, so one bad line costs one record and is named. In Turtle, TriG and RDF/XML a syntax error ends
the reading.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.opening import open_bytes, text_lines
from hynt.formats.parts import bare_name
from hynt.formats.rdf.terms import REIFIES

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
_PLACE = re.compile(r"^Parser error (?:at|between) line .*?: ", re.DOTALL)
_READ_BYTES = 2**16


def load_pyoxigraph() -> Any:
    """The library, or an error that names the extra to install."""
    try:
        import pyoxigraph
    except ImportError:
        raise UsageError(
            "reading and writing RDF needs pyoxigraph, which is not installed.", advice="Run: pip install 'hynt[rdf]'"
        ) from None
    return pyoxigraph


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
    yield from reader(pyoxigraph, getattr(pyoxigraph.RdfFormat, kind), report).read(path, options)


class _Reader:
    """Turns pyoxigraph's terms into ours."""

    def __init__(self, pyoxigraph: Any, format: Any, report: ReadReport) -> None:  # noqa: A002 - pyoxigraph's word
        self.pyoxigraph, self.format, self.report = pyoxigraph, format, report
        self._named, self._blank, self._triple = pyoxigraph.NamedNode, pyoxigraph.BlankNode, pyoxigraph.Triple
        self._default_graph = pyoxigraph.DefaultGraph()

    def statement(self, line: int, quad: Any) -> RdfTriple:
        subject, predicate, object_, graph = quad
        if graph != self._default_graph:
            self.report.line = line
            self.report.note("named-graph", f"the triple is in the graph {graph}.", "It is read like any other.")
        return RdfTriple(line, self._node(subject), predicate.value, self._term(object_))

    def _node(self, term: Any) -> str:
        return str(term.value) if term.__class__ is self._named else f"_:{term.value}"

    def _term(self, term: Any) -> Object | TripleTerm:
        kind = term.__class__
        if kind is self._named or kind is self._blank:
            return self._node(term)
        if kind is self._triple:
            return TripleTerm(self._node(term.subject), term.predicate.value, self._term(term.object))
        return term  # type: ignore[no-any-return]


class _LineReader(_Reader):
    def read(self, path: Path, options: ReadOptions) -> Iterator[RdfTriple]:
        block: list[tuple[int, str]] = []
        for line in text_lines(path, options, self.report):
            text = line.strip(" \t")
            if not text or text[0] == "#":
                continue
            if text.startswith("<<") and not text.startswith("<<("):
                here = self.report.line
                yield from self._block(block)
                block = []
                yield from self._star_line(here, text)
                self.report.line = here  # whoever took the statements may have moved it
                continue
            block.append((self.report.line, text))
            if len(block) == LINES_PER_BLOCK:
                here = self.report.line
                yield from self._block(block)
                block = []
                self.report.line = here
        yield from self._block(block)

    def _block(self, block: list[tuple[int, str]]) -> Iterator[RdfTriple]:
        try:
            quads = list(self.pyoxigraph.parse("\n".join(text for _, text in block), format=self.format))
        except (SyntaxError, MemoryError):
            quads = []
        if len(quads) == len(block):  # else a line is bad, or its text ran into the next line
            for (line, _), quad in zip(block, quads, strict=True):
                yield self.statement(line, quad)
            return
        for line, text in block:
            yield from self._line(line, text, self.format)

    def _line(self, line: int, text: str, format: Any) -> list[RdfTriple]:  # noqa: A002
        try:
            return [self.statement(line, quad) for quad in self.pyoxigraph.parse(text, format=format)]
        except (SyntaxError, MemoryError) as problem:
            self.report.line = line
            self.report.read += 1
            self.report.reject(RecordProblem("syntax", _what(problem), "Correct the line: one triple and a full stop."))
            return []

    def _star_line(self, line: int, text: str) -> Iterator[RdfTriple]:
        """`<< s p o >> q v .`: in RDF-star all lines about one triple speak of the same statement."""
        found = self._line(line, text, self.pyoxigraph.RdfFormat.TURTLE)
        names = {
            statement.subject: "_:star" + hashlib.blake2b(repr(statement.object).encode(), digest_size=12).hexdigest()
            for statement in found
            if statement.predicate == REIFIES and isinstance(statement.object, TripleTerm)
        }
        for statement in found:
            yield statement._replace(subject=names.get(statement.subject, statement.subject))


class _DocumentReader(_Reader):
    def read(self, path: Path, options: ReadOptions) -> Iterator[RdfTriple]:
        self.report.file, self.report.line = str(path), 0
        with closing(open_bytes(path, options, self.report)) as stream:
            lines = _OneLineAtATime(stream)
            quads = self.pyoxigraph.parse(lines, format=self.format)
            while True:
                try:
                    quad = next(quads)
                except StopIteration:
                    return
                except SyntaxError as problem:
                    raise DataError(
                        f"the RDF is broken here: {_what(problem)}",
                        where=f"{path}:{problem.lineno or lines.line}",
                        advice="Correct it, or write the file again as N-Triples, where a bad line costs one triple.",
                    ) from None
                except MemoryError:
                    raise DataError(
                        "a single text or name is longer than 16 MiB.",
                        where=f"{path}:{lines.line}",
                        advice="Check that a quote or a bracket is closed.",
                    ) from None
                yield self.statement(lines.line, quad)


class _OneLineAtATime:
    """A stream that gives its reader at most one line a call, so that the line being parsed is known."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._held = b""
        self._start = 0
        self._line_ended = True
        self._first = True
        self.line = 0

    def read(self, size: int = _READ_BYTES) -> bytes:
        if self._start == len(self._held):
            self._held, self._start = self._stream.read(_READ_BYTES), 0
            if self._first:
                self._held = self._held.removeprefix(b"\xef\xbb\xbf")
                self._first = False
        if self._line_ended and self._held:
            self.line += 1
        end = self._held.find(b"\n", self._start, self._start + size) + 1
        self._line_ended = end > 0
        piece = self._held[self._start : end or self._start + size]
        self._start += len(piece)
        return piece


def _what(problem: SyntaxError | MemoryError) -> str:
    if isinstance(problem, MemoryError):
        return "a single text or name is too long."
    text = _PLACE.sub("", problem.msg)
    return (text if len(text) <= 200 else text[:197] + "...").rstrip(".") + "."
