"""Small builds for tests, and what their graphs hold."""

from __future__ import annotations

from pathlib import Path

from hynt.creation.building import create_graph
from hynt.creation.options import CreationOptions, EngineOptions
from hynt.graph.storage import load_graph

ALONE = EngineOptions(workers=1)


def make(folder: Path, data: bytes, name: str = "dump.json", **options):
    """Build a graph from these bytes; the graph and what the manifest tells of its making."""
    path = folder / name
    path.write_bytes(data)
    options = {"engine": ALONE, "everything": "entities" not in options and "types" not in options, **options}
    result = create_graph("wikidata", path, folder / "graph", CreationOptions(**options), overwrite=True)
    graph = load_graph(folder / "graph")
    assert sum(len(table) for table in graph.splits.values()) == result.manifest.importing["facts"]["kept"]
    told = result.manifest.importing
    assert sum(table.qualifier_total for table in graph.splits.values()) == told["qualifiers"]["kept"]
    return graph, told


def facts_of(graph):
    return [fact for split in graph.splits for fact in graph.facts(split)]


def keys_of(facts):
    return sorted(fact.key() for fact in facts)


def balanced(account):
    return account["read"] == account["kept"] + sum(account["dropped"].values())


def ids(folder, *names):
    path = folder / "ids.txt"
    path.write_text("\n".join(names) + "\n", encoding="utf-8")
    return path
