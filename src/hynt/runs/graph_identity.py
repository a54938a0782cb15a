"""Whether two graphs are the same, by content: not by their files, whose bytes depend on who wrote them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hynt.errors import DataError
from hynt.files import RESTORE
from hynt.graph.fact_table import NUMERIC_COLUMNS, FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph


def fingerprints(graph: KnowledgeGraph) -> dict[str, str]:
    """A hash for each part of a graph: its entities, its relations, and the facts of each split."""
    vocabulary = graph.vocabulary
    parts = {
        "entities": _texts(vocabulary.entities),
        "relations": _texts(text for r in vocabulary.relations for text in (r.name, r.kind, r.unit)),
    }
    return parts | {split: _facts(table) for split, table in graph.splits.items()}


def graph_differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """One line per part that differs; empty when the graphs are the same."""
    lines = []
    for part in [*old, *(name for name in new if name not in old)]:
        if part not in new:
            lines.append(f"{part}: no longer there")
        elif part not in old:
            lines.append(f"{part}: was not there")
        elif old[part] != new[part]:
            lines.append(f"{part}: changed")
    return lines


def _texts(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def _facts(table: FactTable) -> str:
    digest = hashlib.sha256()
    for name in NUMERIC_COLUMNS:
        column = np.ascontiguousarray(getattr(table, name))
        digest.update(f"{name} {column.dtype} {len(column)} ".encode())
        digest.update(column.data)
    for literals in (table.tail_literal, table.qualifier_literal):
        digest.update(_texts(text or "" for text in literals.to_pylist()).encode())
    return digest.hexdigest()


def graph_of_run(run: Path, entry: Mapping[str, Any]) -> KnowledgeGraph:
    """The graph that a run's manifest names in `entry`, refused when it is not there or is another one."""
    folder = Path(os.path.normpath(run / entry["path"]))
    if not folder.is_dir():
        raise DataError(
            f"the graph of this run is not at {entry['path']!r}, seen from the run.",
            where=str(run),
            advice="It was too large to keep in the run: move the two together.",
        )
    graph = load_graph(folder.resolve())
    changed = graph_differences(entry["fingerprints"], fingerprints(graph))
    if changed:
        raise DataError(
            f"the graph is not the one this run was made with: {'; '.join(changed)}.", where=str(folder), advice=RESTORE
        )
    return graph
