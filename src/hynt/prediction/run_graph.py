"""The graph of a run, found and checked without torch: a name that nobody knows is refused at once, not after seconds
of loading.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hynt.errors import DataError, UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph
from hynt.training.graph_identity import fingerprints, graph_differences
from hynt.training.hashed_files import INDEX_NAME, RESTORE, read_index


@contextmanager
def whole_run() -> Iterator[None]:
    """Within the block, a run that is damaged, changed or has another graph is wrong use: it is not what was made.

    The exit code is then 2; 1 would say that the data asked about is at fault.
    """
    try:
        yield
    except DataError as problem:
        raise UsageError(problem.what, where=problem.where, advice=problem.advice) from None


def run_graph(path: Path) -> KnowledgeGraph:
    """The graph that a run was made with; a `UsageError` where there is no run, or the graph is another."""
    if not (path / INDEX_NAME).exists():
        raise UsageError(f"there is no run at {str(path)!r}.", advice="Make one with: hynt train GRAPH --out RUN.")
    with whole_run():
        entry = read_index(path / INDEX_NAME).get("graph")
        if not isinstance(entry, dict) or not {"path", "fingerprints"} <= set(entry):
            raise DataError("the manifest is not that of a run.", where=str(path / INDEX_NAME), advice=RESTORE)
        folder = Path(os.path.normpath(path / entry["path"]))
        if not folder.is_dir():
            raise DataError(
                f"the graph of this run is not at {entry['path']!r}, seen from the run.", where=str(path),
                advice="It was too large to keep in the run: move the two together.",
            )  # fmt: skip
        graph = load_graph(folder.resolve())
        changed = graph_differences(entry["fingerprints"], fingerprints(graph))
        if changed:
            raise DataError(
                f"the graph is not the one this run was made with: {'; '.join(changed)}.", where=str(folder),
                advice=RESTORE,
            )  # fmt: skip
        return graph
