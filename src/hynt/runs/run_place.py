"""Whether a folder holds a run; where it holds something else, what that is. Asked before torch is loaded."""

from __future__ import annotations

from pathlib import Path

from hynt.errors import UsageError
from hynt.graph.storage import BUILT_IN, is_graph
from hynt.runs.hashed_files import INDEX_NAME


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
