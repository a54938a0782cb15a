"""A copy of a saved graph without its test split: what a sweep works on, so that it cannot look.

The test file is not even opened. The copy is a graph like any other, whose manifest knows of train and valid alone.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from hynt.errors import DataError, UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.manifest import MANIFEST_NAME, Manifest, read_manifest
from hynt.graph.storage import graph_folder, load_graph
from hynt.runs.hashed_files import new_folder

HIDDEN = "test"


def blind_copy(source: str, target: Path) -> KnowledgeGraph:
    """The graph at `source` without its test split, kept at `target`, or the one that is kept there already."""
    folder = graph_folder(source)
    manifest = without_test(read_manifest(folder))
    if "valid.parquet" not in manifest.files:
        raise UsageError(
            "the graph has no validation split, which a sweep judges by.",
            where=str(source),
            advice="Import it with one: hynt data import … --split 8:1:1.",
        )
    if not target.exists():
        with new_folder(target) as staging:
            for name in manifest.files:
                _copy(folder / name, staging / name)
            (staging / MANIFEST_NAME).write_text(manifest.to_json(), encoding="utf-8")
    elif read_manifest(target) != manifest:
        raise UsageError(
            "the folder holds a sweep of another graph.",
            where=str(target.parent),
            advice="Give the graph it was begun with, or another --out.",
        )
    return load_graph(target.resolve())


def without_test(manifest: Manifest) -> Manifest:
    """What the manifest says once the test split is gone."""
    files = {name: record for name, record in manifest.files.items() if name != f"{HIDDEN}.parquet"}
    counts = {name: count for name, count in manifest.counts.items() if name != HIDDEN}
    return replace(manifest, files=files, counts=counts)


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as problem:
        raise DataError(f"the file cannot be copied: {problem.strerror}.", where=str(source)) from None
