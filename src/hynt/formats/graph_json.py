"""Property graphs as JSON: `apoc.export.json`'s lines, and documents with a list of nodes and a list of edges.

    {"type": "node", "id": "1", "labels": ["Person"], "properties": {"name": "Keanu Reeves", "born": 1964}}
    {"type": "relationship", "label": "ACTED_IN", "start": {"id": "1"}, "end": {"id": "2"}, "properties": {"since": 9}}

    {"nodes": [{"id": "1", "name": "Keanu Reeves"}], "edges": [{"source": "1", "target": "2", "type": "ACTED_IN"}]}

A node's labels and numbers are facts, its name is what people call it, and its other texts are left out and counted. An
edge is a fact, its properties are qualifiers. A JSON number is a number; a text is one where the user says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from hynt.errors import DataError, RecordProblem
from hynt.formats.csv_edges import LABEL_COLUMNS, NODE_LABEL, read_value
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.lines import decoded_json, kind_of, quoted, read_object, text_lines
from hynt.formats.opening import open_bytes
from hynt.formats.values import check_name
from hynt.graph.fact import Fact, Number, Qualifier, Value

LARGEST_DOCUMENT = 64 * 2**20
"""Bytes of a document, which has to be held whole; lines have no such bound."""

_NODES = ("nodes", "vertices")
_EDGES = ("edges", "links", "relationships", "rels")
_IDS = ("id", "_id", "key", "identity")
_LABELS = ("labels", "label", "type", "group", "category")
_HEADS = ("start", "source", "from", "head", "subject", "src")
_TAILS = ("end", "target", "to", "tail", "object", "dst")
_RELATIONS = ("label", "type", "relation", "relationship", "predicate", "name")


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    reader = _PropertyGraph(options, report)
    with closing(open_bytes(path, options, ReadReport())) as stream:
        start = stream.read(2**16).decode("utf-8", "ignore").lstrip("\ufeff \t\r\n")
    first = start.partition("\n")[0]
    if first.startswith("{") and first.rstrip().endswith("}") and '"type"' in first and '"nodes"' not in first:
        for line in text_lines(path, options, report):
            if line.strip():
                yield from reader.counted(lambda record: reader.record(read_object(record)), line)
        return
    yield from reader.document(_document(path, options, report))


def _document(path: Path, options: ReadOptions, report: ReadReport) -> Any:
    report.file, report.line = str(path), 1
    with closing(open_bytes(path, options, report)) as stream:
        data = b"".join(iter(lambda: stream.read(2**20) if report.bytes_read <= LARGEST_DOCUMENT else b"", b""))
    if len(data) > LARGEST_DOCUMENT or report.bytes_read > LARGEST_DOCUMENT:
        raise DataError(
            f"the document has more than {LARGEST_DOCUMENT // 2**20} MiB, and it has to be held whole.",
            where=str(path),
            advice="Export it as JSON lines, one node or relationship each, as apoc.export.json does.",
        )
    try:
        return decoded_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text.", where=str(path), advice="Save it as UTF-8.") from None
    except RecordProblem as problem:
        raise DataError.of(problem, str(path)) from None


class _PropertyGraph:
    """Turns nodes and edges into facts, each counted as read and kept or rejected."""

    def __init__(self, options: ReadOptions, report: ReadReport) -> None:
        self._options, self._report = options, report
        self._label = (options.label,) if options.label else LABEL_COLUMNS

    def document(self, record: Any) -> Iterator[Fact]:
        """Nodes and edges wherever a document keeps them; `report.line` counts them."""
        if isinstance(record, list):
            for place, one in enumerate(record, start=1):
                self._report.line = place
                yield from self.counted(self.record, one)
            return
        for outer in ("graph", "elements", "data"):
            if (
                isinstance(record, dict)
                and isinstance(record.get(outer), dict)
                and not record.keys() & {*_NODES, *_EDGES}
            ):
                record = record[outer]
        if not isinstance(record, dict) or not record.keys() & {*_NODES, *_EDGES}:
            raise DataError(
                "the document has no list of nodes or edges.",
                where=self._report.file,
                advice=f"Call them {', '.join(_NODES)} and {', '.join(_EDGES)}.",
            )
        for names, make in ((_NODES, self._node), (_EDGES, self._edge)):
            for place, one in enumerate(_first(record, names) or (), start=1):
                self._report.line = place
                yield from self.counted(make, one)

    def record(self, record: Any) -> Iterator[Fact]:
        """One line of `apoc.export.json`: its type says what it is."""
        if not isinstance(record, dict) or record.get("type") not in ("node", "relationship"):
            raise RecordProblem(
                "not-an-element", "neither a node nor a relationship.", 'Say "type": "node" or "relationship".'
            )
        plain = {key: value for key, value in record.items() if key != "type"}
        return self._node(plain) if record["type"] == "node" else self._edge(plain)

    def counted(self, make: Callable[[Any], Iterator[Fact]], record: Any) -> Iterator[Fact]:
        """The facts of one node or edge."""
        report = self._report
        try:
            for fact in make(record):
                report.read += 1
                report.kept += 1
                yield fact
        except RecordProblem as problem:
            report.read += 1
            report.reject(problem)

    def _node(self, given: Any) -> Iterator[Fact]:
        record = _inner(given)
        node = _name(_first(record, _IDS), "node's id")
        labels = next((key for key in _LABELS if key in record and key not in self._label), "")
        listed = record.get(labels, ())
        for label in listed if isinstance(listed, list) else [listed] if listed else ():
            yield Fact(node, NODE_LABEL, _name(label, "label"))
        called = next((key for key in self._label if isinstance(_properties(record, ()).get(key), str)), None)
        for key, value in _properties(record, (*_IDS, labels)).items():
            if key == called:
                self._report.labels.setdefault(node, check_name(value, "name"))
                continue
            for one in value if isinstance(value, list) else [value]:
                read = self._value(key, one)
                if isinstance(read, Number):
                    yield Fact(node, key, read)
                elif one is not None:
                    self._report.leave_out("text-property", f"the property {quoted(key)} of a node is {kind_of(one)}.")

    def _edge(self, given: Any) -> Iterator[Fact]:
        record = _inner(given)
        head, tail = (_end(_first(record, names), what) for names, what in ((_HEADS, "head"), (_TAILS, "tail")))
        own = next((key for key in _RELATIONS if isinstance(record.get(key), str)), "")
        relation = _name(record.get(own), "relation")
        pairs = []
        for key, value in _properties(record, (*_HEADS, *_TAILS, *_IDS, own)).items():
            for one in value if isinstance(value, list) else [value]:
                read = self._value(key, one)
                if read is not None:
                    pairs.append(Qualifier(check_name(key, "qualifier relation"), read))
                elif one is not None:
                    self._report.leave_out("qualifier-bad-value", f"the property {quoted(key)} is {kind_of(one)}.")
        yield Fact(head, relation, tail, tuple(pairs))

    def _value(self, key: str, value: Any) -> Value | None:
        """A value as its JSON type or the user says; None for what no fact holds."""
        if isinstance(value, Number):
            return value
        if not isinstance(value, str) or not value:
            return None
        return read_value(value, self._options.kinds.get(key, "entity"), self._options)


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if name in record), None)


def _inner(record: Any) -> Mapping[str, Any]:
    """What is said of an element; Cytoscape keeps it one level down."""
    if isinstance(record, dict) and isinstance(record.get("data"), dict):
        record = record["data"]
    if not isinstance(record, dict):
        raise RecordProblem(
            "not-an-object", f"{kind_of(record)} instead of an object.", "Give each element as an object."
        )
    return record


def _properties(record: Mapping[str, Any], own: tuple[str, ...]) -> Mapping[str, Any]:
    held = record.get("properties")
    return held if isinstance(held, dict) else {key: value for key, value in record.items() if key not in own}


def _end(given: Any, what: str) -> str:
    return _name(_first(given, _IDS) if isinstance(given, dict) else given, what)


def _name(given: Any, what: str) -> str:
    return check_name(given.literal if isinstance(given, Number) else given if isinstance(given, str) else "", what)
