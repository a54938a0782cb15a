"""Whether a folder holds a run; where it holds something else, what that is. Asked before torch is loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hynt.errors import DataError, UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import BUILT_IN, is_graph
from hynt.runs.graph_identity import graph_of_run
from hynt.runs.hashed_files import INDEX_NAME, RESTORE, read_index


def check_is_run(path: Path) -> None:
    """Refuses what is no run, with the command that would make one of it."""
    if is_graph(path) or (str(path) in BUILT_IN and not path.exists()):
        raise UsageError(
            "this is a graph, not a run.", where=str(path), advice=f"Train on it first: hynt train {path} --out RUN"
        )
    if path.is_file():
        raise UsageError("this is a file, and a run is a folder.", where=str(path), advice=_MAKE)
    if not (path / INDEX_NAME).exists():
        raise UsageError(f"there is no run at {str(path)!r}.", advice=_MAKE)


_MAKE = "Make one with: hynt train GRAPH --out RUN."


# The graph of a run, found and checked without torch: a name that nobody knows is refused at once, not after seconds
# of loading.


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


# The lines of a run's metrics.jsonl: one for each epoch and each validation. It is not hashed, since it grows.


def read_record(path: Path) -> list[dict[str, Any]]:
    """All lines; none where there is no file. A line that no training wrote is a `DataError` that names it."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as problem:
        raise _damaged(str(path), problem.strerror or str(problem)) from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or not {"phase", "epoch"} <= set(record):
            raise _damaged(f"{path}:{number}", "this line is no record")
        found.append(record)
    return found


def _damaged(where: str, why: str) -> DataError:
    return DataError(f"the training record is damaged: {why}.", where=where, advice="Restore it from a copy.")
