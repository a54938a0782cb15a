"""Every format by its name, in one place.

A format's module is imported when the format is first used, so that listing the formats costs nothing. Each module has
`read_facts(path, options, report)` and, where the format can be written, `write_graph(graph, path)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hynt.errors import UsageError
from hynt.formats.format import Format, Reader, ReadOptions, ReadReport, Writer
from hynt.formats.parts import bare_name
from hynt.graph.fact import Fact
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


def _reader(module: str, function: str = "read_facts") -> Reader:
    def read(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
        return cast(Iterator[Fact], getattr(import_module(f"hynt.formats.{module}"), function)(path, options, report))

    return read


def _writer(module: str) -> Writer:
    def write(graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
        return cast(Iterable[Path], import_module(f"hynt.formats.{module}").write_graph(graph, path))

    return write


_PLAIN = (".txt", ".tsv", ".tab", ".triples", ".del")

_ALL = (
    Format(
        "hynt",
        "the folders of the HyNT paper, raw or normalised: tab-separated, numbers by their spelling",
        (".txt",),
        _reader("hynt"),
        _writer("hynt"),
        units="keep",
    ),
    Format(
        "stare",
        "the folders of the StarE paper, such as WD50K: comma-separated, entities only",
        (".txt", ".csv"),
        _reader("stare"),
        _writer("stare"),
    ),
    Format(
        "nary-json",
        "JF17K and WikiPeople as the NaLP paper has them: one JSON object of roles a line",
        (".json", ".jsonl"),
        _reader("nary_json"),
        units="keep",
    ),
    Format(
        "triples",
        "head, relation, tail by tabs or spaces, then pairs of a qualifier and its value; no header, entities only",
        _PLAIN,
        _reader("plain", "read_triples"),
    ),
    Format(
        "hype",
        "the folders of the HypE paper: a relation, then its entities in order; entities only",
        _PLAIN,
        _reader("plain", "read_hype"),
    ),
    Format(
        "temporal",
        "head, relation, tail and a time, or a start and an end, as ICEWS and YAGO11k have them; no header",
        _PLAIN,
        _reader("plain", "read_temporal"),
    ),
    Format(
        "openke",
        "OpenKE's folders: head, tail, relation as ids of entity2id.txt and relation2id.txt",
        ("2id.txt",),
        _reader("plain", "read_openke"),
    ),
    Format(
        "tsv",
        "our own table: tab-separated, numbers as =80 kg, dates as @1922-01-28",
        (".tsv",),
        _reader("tsv"),
        _writer("tsv"),
    ),
    Format(
        "jsonl",
        "our own JSON lines: numbers as JSON numbers or with a unit, dates as objects",
        (".jsonl", ".ndjson"),
        _reader("jsonl"),
        _writer("jsonl"),
    ),
    Format(
        "graph-json",
        "property graphs as JSON: apoc.export.json, or lists of nodes and edges",
        (".json", ".jsonl", ".ndjson"),
        _reader("graph_json"),
        options=frozenset({"numeric", "dates", "date_format", "label"}),
    ),
    Format("parquet", "Parquet tables of facts", (".parquet",), _reader("parquet"), _writer("parquet")),
    Format(
        "csv-edges",
        "edge lists with a header, and property graphs exported by Neo4j; other columns become qualifiers",
        (".csv", ".tsv"),
        _reader("csv_edges"),
        options=frozenset(
            {"numeric", "dates", "date_format", "head", "relation", "tail", "delimiter", "label"}
            | {"relation_name", "wide", "qualifier"}
        ),
    ),
    Format(
        "rdf",
        "N-Triples, N-Quads, Turtle, TriG, RDF/XML; RDF 1.2 annotations, RDF-star, Wikidata statements",
        (".nt", ".nq", ".ttl", ".trig", ".rdf", ".owl", ".ntx", ".nts", ".ttls"),
        _reader("rdf.format"),
        _writer("rdf.format"),
        options=frozenset({"string_literals", "label_language", "base", "named_graphs"}),
        extra="rdf",
    ),
)

FORMATS: dict[str, Format] = {known.name: known for known in _ALL}


def get_format(name: str, file: str = "") -> Format:
    """The format of that name; a `UsageError` names all of them, and the nearest, or those that fit the file's name."""
    if not name:
        fitting = [f"--format {known.name}" for known in _ALL if bare_name(file).lower().endswith(known.suffixes)]
        advice = f"By the name of {file}, say {' or '.join(fitting)}. " if fitting else ""
        raise UsageError("no format was given.", where="--format", advice=f"{advice}Known here: {', '.join(FORMATS)}.")
    if name not in FORMATS:
        begun = next((known for known in FORMATS if known.startswith(f"{name}-")), name)  # csv: csv-edges, not tsv
        raise UsageError(f"unknown format {name!r}.", where="--format", advice=advice_on(begun, FORMATS))
    return FORMATS[name]
