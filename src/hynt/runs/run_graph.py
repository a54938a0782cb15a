"""The graph of a run, found and checked without torch: a name that nobody knows is refused at once, not after seconds
of loading.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hynt.errors import DataError, UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.graph_identity import graph_of_run
from hynt.runs.hashed_files import INDEX_NAME, RESTORE, read_index
from hynt.runs.run_place import check_is_run


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
    check_is_run(path)
    with whole_run():
        entry = read_index(path / INDEX_NAME).get("graph")
        if not isinstance(entry, dict) or not {"path", "fingerprints"} <= set(entry):
            raise DataError("the manifest is not that of a run.", where=str(path / INDEX_NAME), advice=RESTORE)
        return graph_of_run(path, entry)
