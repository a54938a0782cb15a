"""Every format by its name, in one place, and the published graphs that go by names.

A format's module is imported when the format is first used, so that listing the formats costs nothing. Each module has
`read_facts(path, options, report)` and, where the format can be written, `write_graph(graph, path)`.

A published graph says how its folder is laid out, under which licence it is, and what its paper counts. An import says
where the files that it was given differ: other releases and other rounds of cleaning go by the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hynt.errors import DataError, UsageError
from hynt.formats.format import FactReader, Format, ReadOptions, ReadReport, Writer
from hynt.formats.source_files import bare_name, split_of
from hynt.graph.fact import Fact
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


def _reader(module: str, function: str = "read_facts") -> FactReader:
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
        _reader("plain", "read_stare"),
        _writer("plain"),
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
        options=frozenset({"numeric", "dates", "date_format", "number_format", "label"}),
    ),
    Format("parquet", "Parquet tables of facts", (".parquet",), _reader("parquet"), _writer("parquet")),
    Format(
        "csv-edges",
        "edge lists with a header, and property graphs exported by Neo4j; other columns become qualifiers",
        (".csv", ".tsv"),
        _reader("csv_edges"),
        options=frozenset(
            {"numeric", "dates", "date_format", "number_format", "head", "relation", "tail", "delimiter", "label"}
            | {"relation_name", "wide", "qualifier", "several", "several_by"}
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


_HYNT, _FREEBASE = "CC BY-NC-SA 4.0", "CC BY 2.5 (Freebase)"


class Published(NamedTuple):
    """A graph that somebody published."""

    format: str
    licence: str
    counts: Mapping[str, int]  # train, valid, test; or facts in all; entities, relations, number_relations
    places: tuple[str, ...] = ("",)  # the folder inside the folder that holds its splits: the first that is there
    further: tuple[str, ...] = ()  # folders inside that whose splits belong to it too
    train_file: str = ""  # the file of its training split, where it is not called so


PUBLISHED: Mapping[str, Published] = {
    "HN-WK": Published(
        "hynt", _HYNT, {"facts": 296_783, "entities": 13_655, "relations": 357, "number_relations": 157}
    ),
    "HN-YG": Published(
        "hynt",
        _HYNT,
        {"train": 61_105, "valid": 7_639, "test": 7_639, "entities": 12_439, "relations": 57, "number_relations": 26},
        ("raw", ""),
    ),
    "HN-FB": Published("hynt", _HYNT, {"facts": 284_288, "entities": 14_284, "relations": 361, "number_relations": 83}),
    "HN-FB-S": Published(
        "hynt", _HYNT, {"facts": 108_140, "entities": 5_510, "relations": 208, "number_relations": 47}
    ),
    "WD50K": Published(
        "stare",
        "CC BY 4.0",
        {"train": 166_435, "valid": 23_913, "test": 46_159, "entities": 47_155, "relations": 531},
        ("statements", ""),
    ),
    "WikiPeople-": Published("hynt", _HYNT, {"entities": 34_825, "relations": 178}),
    "FB15k": Published(
        "triples",
        _FREEBASE,
        {"train": 483_142, "valid": 50_000, "test": 59_071, "entities": 14_951, "relations": 1_345},
    ),
    "FB15k-237": Published(
        "triples", _FREEBASE, {"train": 272_115, "valid": 17_535, "test": 20_466, "entities": 14_541, "relations": 237}
    ),
    "FB15K-237-numeric": Published(
        "hynt",
        _FREEBASE,
        {
            "train": 290_730,
            "valid": 19_841,
            "test": 22_795,
            "entities": 14_541,
            "relations": 248,
            "number_relations": 11,
        },
        further=("numbers",),
    ),
    "WD20K100-v1-asked": Published("triples", _HYNT, {"train": 2_667, "valid": 295, "test": 365}, train_file="msg.txt"),
    "WN18": Published(
        "triples",
        "WordNet licence",
        {"train": 141_442, "valid": 5_000, "test": 5_000, "entities": 40_943, "relations": 18},
        ("text", ""),
    ),
    "WN18RR": Published(
        "triples",
        "WordNet licence",
        {"train": 86_835, "valid": 3_034, "test": 3_134, "entities": 40_943, "relations": 11},
        ("text", ""),
    ),
    "YAGO3-10": Published(
        "triples",
        "CC BY 3.0 (YAGO)",
        {"train": 1_079_040, "valid": 5_000, "test": 5_000, "entities": 123_182, "relations": 37},
    ),
    "ICEWS14": Published(
        "temporal",
        "terms of the ICEWS Dataverse",
        {"train": 72_826, "valid": 8_941, "test": 8_963, "entities": 7_128, "relations": 230},
    ),
}


def published(name: str) -> tuple[str, Published]:
    """The graph of that name, in any case, and the name as it is written."""
    by_name = {known.lower(): known for known in PUBLISHED}
    if name.lower() not in by_name:
        raise UsageError(
            f"no published graph {name!r} is known.", where="--published", advice=advice_on(name, PUBLISHED)
        )
    written = by_name[name.lower()]
    return written, PUBLISHED[written]


def places_of(graph: Published, folder: Path) -> list[Path]:
    """The folders with the splits of a published graph, inside the one that was given."""
    for place in graph.places:
        inside = [folder / place, *(folder / place / further for further in graph.further)]
        if all(one.is_dir() and any(map(split_of, one.iterdir())) for one in inside):
            return inside
    looked = ", ".join(str(folder / place) for place in graph.places)
    raise DataError(
        "there are no splits of the graph here.", where=looked, advice="Give the folder as its authors published it."
    )


def differences(graph: Published, counts: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Where a graph's counts are not those that were published, and by how much."""
    found = {"facts": sum(counts.get(split, 0) for split in ("train", "valid", "test")), **counts}
    return {
        name: {"published": count, "here": found.get(name, 0)}
        for name, count in graph.counts.items()
        if found.get(name, 0) != count
    }
