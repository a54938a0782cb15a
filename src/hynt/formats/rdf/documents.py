"""Turtle, TriG and RDF/XML as lines of N-Quads, written out in a process of its own whose memory is bounded.

In a document a few bytes can stand for gigabytes: entities of entities, prefixes, brackets in brackets. A parser that
runs out of memory ends its process without a word, so it gets one that may end. Only a small document, in which no
trick gets far, is read without. Its time is bounded as well, by what it has read: it compares each name of a tag with
all before it.

    parent                          child: python -m hynt.formats.rdf.documents FILE KIND MOST_EXPANSION BASE
    one frame at a time   ◀──────   a line of JSON, and the N-Quads it counts
"""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hynt.errors import DataError, UsageError, not_installed
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.opening import ByteStream, open_bytes
from hynt.limits import DEEPEST_RDF, PARSER_MEMORY, PARSER_SECONDS, SMALL_DOCUMENT, WATCHED_OUTPUT
from hynt.names import shortened

_READ_BYTES = 2**16
_QUADS_PER_BLOCK = 500
_SHARE_AT_ONCE = 64
"""Of what led to no statement yet, one part in so many comes at once: dozens of prefixes still come line by line."""
_PLACE = re.compile(r"^Parser error (?:at|between) line .*?: ", re.DOTALL)
_DECLARATION = re.compile(rb"<!(?!-|\[|\Z)")


def load_pyoxigraph() -> Any:
    """The library, or an error that names the extra to install."""
    try:
        import pyoxigraph
    except ImportError:
        raise not_installed("pyoxigraph", "rdf", what="reading and writing RDF") from None
    return pyoxigraph


class Block(NamedTuple):
    """Some statements of a document, in order."""

    lines: list[int]  # the line of each
    text: str  # a line of N-Quads for each
    bytes_read: int  # taken from the file so far


def blocks(path: Path, kind: str, options: ReadOptions, report: ReadReport) -> Iterator[Block]:
    """The statements of a document; `kind` is the name of a format of pyoxigraph."""
    try:
        load_pyoxigraph().NamedNode(options.base or "urn:none")
    except ValueError as problem:
        advice = "Give a whole address, such as http://example.org/."
        raise UsageError(f"{options.base!r} is not a base: {problem}.", where="--base", advice=advice) from None
    with closing(open_bytes(path, options, ReadReport())) as stream:
        start = b""
        while len(start) <= SMALL_DOCUMENT and (more := stream.read(SMALL_DOCUMENT + 1)):
            start += more
    if len(start) <= SMALL_DOCUMENT and start.count(b"<<") <= DEEPEST_RDF:
        yield from _written_out(path, io.BytesIO(start), kind, options, ReadReport(bytes_read=path.stat().st_size))
        return
    before = report.bytes_read
    for block in _from_child(path, kind, options):
        report.bytes_read = before + block.bytes_read
        yield block


def _from_child(path: Path, kind: str, options: ReadOptions) -> Iterator[Block]:
    command = [
        sys.executable,
        "-P",
        "-m",
        __name__,
        str(path.absolute()),
        kind,
        str(options.max_expansion),
        options.base,
    ]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        try:
            while header := child.stdout.readline():
                frame = json.loads(header)
                if "what" in frame:
                    where = frame["where"].replace(str(path.absolute()), str(path), 1)
                    raise DataError(frame["what"], where=where, advice=frame["advice"])
                yield Block(frame["lines"], child.stdout.read(frame["bytes"]).decode(), frame["bytes_read"])
        finally:
            if sys.exc_info()[0] is not None:
                child.kill()
            child.stdout.close()
    if child.returncode:
        memory = f"{PARSER_MEMORY // 2**20:,} MiB of memory, or is nested without end"
        too_slow = child.returncode == -getattr(signal, "SIGXCPU", 0)
        raise DataError(
            f"reading it takes more than {'its size accounts for' if too_slow else memory}: it is taken for a bomb.",
            where=str(path),
            advice="If you trust it, write it as N-Triples with another tool and give that.",
        )


def _written_out(
    path: Path, stream: ByteStream, kind: str, options: ReadOptions, report: ReadReport
) -> Iterator[Block]:
    pyoxigraph = load_pyoxigraph()
    lines = _OneLineAtATime(stream, path, is_xml=kind == "RDF_XML")
    parsed = pyoxigraph.parse(lines, format=getattr(pyoxigraph.RdfFormat, kind), base_iri=options.base or None)
    quads = _with_lines(path, parsed, lines)
    given = 0
    while block := list(islice(quads, _QUADS_PER_BLOCK)):
        text = pyoxigraph.serialize((quad for _, quad in block), format=pyoxigraph.RdfFormat.N_QUADS).decode()
        given += len(text)
        if given > WATCHED_OUTPUT and given > options.max_expansion * lines.taken:
            raise DataError(
                f"its statements are more than {options.max_expansion} times as long as the file itself, written out: "
                "it is taken for a bomb.",
                where=f"{path}:{lines.line}",
                advice="If you trust it, write it as N-Triples with another tool and give that.",
            )
        yield Block([line for line, _ in block], text, report.bytes_read)


def _with_lines(path: Path, quads: Iterator[Any], lines: _OneLineAtATime) -> Iterator[tuple[int, Any]]:
    while True:
        try:
            quad = next(quads)
        except StopIteration:
            return
        except SyntaxError as problem:
            raise DataError(
                f"the RDF is broken here: {what_is_wrong(problem)}",
                where=f"{path}:{problem.lineno or lines.line}",
                advice="Give what relative addresses stand under, with --base http://example.org/."
                if "No scheme found" in problem.msg
                else "Correct it, or write the file again as N-Triples, where a bad line costs one triple.",
            ) from None
        except MemoryError:
            raise DataError(
                "a single text or name is longer than 16 MiB.",
                where=f"{path}:{lines.line}",
                advice="Check that a quote or a bracket is closed.",
            ) from None
        lines.waiting = 0
        yield lines.line, quad


def what_is_wrong(problem: SyntaxError | MemoryError) -> str:
    """The parser's words for it, without the place."""
    if isinstance(problem, MemoryError):
        return "a single text or name is too long."
    return shortened(_PLACE.sub("", problem.msg), 200).rstrip(".") + "."


class _OneLineAtATime:
    """A stream that gives its reader one line per call, so that the line being parsed is known.

    A parser starts a text of many lines over with each call: the longer it has found nothing, the more it is given.

    A declaration in XML, of a document type or an entity, is refused before the parser sees it.
    """

    def __init__(self, stream: ByteStream, path: Path, *, is_xml: bool) -> None:
        self._stream, self._path, self._is_xml = stream, path, is_xml
        self._held, self._start = b"", 0
        self._line_ended = self._first = True
        self.line = self.taken = 0
        self.waiting = 0  # bytes given since the last statement

    def read(self, size: int = _READ_BYTES) -> bytes:
        if self._start == len(self._held):
            self._held, self._start = self._stream.read(_READ_BYTES), 0
            self.taken += len(self._held)
            if self._first:
                self._held = self._held.removeprefix(b"\xef\xbb\xbf")
                self._first = False
            if self._is_xml:
                self._refuse_declarations()
        least = min(self.waiting // _SHARE_AT_ONCE, size - 1)
        end = self._held.find(b"\n", self._start + least, self._start + size) + 1
        piece = self._held[self._start : end or self._start + size]
        if piece:
            self.line += self._line_ended + piece.count(b"\n", 0, -1)
            self._line_ended = piece.endswith(b"\n")
        self._start += len(piece)
        self.waiting += len(piece)
        return piece

    def _refuse_declarations(self) -> None:
        while self._held.endswith((b"<", b"<!")) and (more := self._stream.read(_READ_BYTES)):  # the rest decides
            self._held += more
            self.taken += len(more)
        found = _DECLARATION.search(self._held)
        if found is not None:
            line = self.line + self._held.count(b"\n", 0, found.start()) + self._line_ended
            raise DataError(
                "the XML declares a document type or entities, which can stand for any amount of text.",
                where=f"{self._path}:{line}",
                advice="Write it without, or as Turtle or N-Triples; most tools for RDF can.",
            )


def _main(path: Path, kind: str, max_expansion: int, base: str) -> None:
    _bound_memory()
    options, report = ReadOptions(max_expansion=max_expansion, base=base), ReadReport()
    out = sys.stdout.buffer
    try:
        with closing(_Timed(open_bytes(path, options, report))) as stream:
            for block in _written_out(path, stream, kind, options, report):
                content = block.text.encode()
                frame = {"lines": block.lines, "bytes": len(content), "bytes_read": block.bytes_read}
                out.write(json.dumps(frame).encode() + b"\n" + content)
                out.flush()
    except DataError as problem:
        frame = {"what": problem.what, "where": problem.where, "advice": problem.advice}
        out.write(json.dumps(frame).encode() + b"\n")
        out.flush()


class _Timed:
    """A stream that gives this process time for what was read from it, and no more."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._taken = stream, 0
        self.close = stream.close

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self._taken += len(content)
        with suppress(ImportError, ValueError):  # not every system has it, or somebody bounds it more
            import resource

            seconds = PARSER_SECONDS * (1 + self._taken // 2**20)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        return content


def _bound_memory() -> None:
    try:
        import resource
    except ImportError:  # not every system has it; then the child still ends alone
        return
    resource.setrlimit(resource.RLIMIT_AS, (PARSER_MEMORY, PARSER_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
