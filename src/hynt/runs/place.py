"""Whether a folder holds a run; where it holds something else, what that is. Asked before torch is loaded."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from hynt.errors import DataError, UsageError
from hynt.files import MANIFEST_NAME, RESTORE, Unwritable, check_hash, check_regular, index_text, new_folder, read_index
from hynt.graph.content_hash import graph_differences, graph_fingerprints
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import BUILT_IN, graph_folder, is_graph, load_graph
from hynt.runs import CONFIG, READS, SCALING

_MOST = 1e12
"""Epochs and seconds that no training takes."""


def run_place(run: str | os.PathLike[str]) -> Path:
    """Where a run lies: its folder, or that of the run that comes with hynt under the name of its graph, where no run
    of that name is at hand.
    """
    path = Path(run)
    if str(path) in BUILT_IN and (is_graph(path) or not (path / MANIFEST_NAME).is_file()):
        return _packaged()
    return path


def _packaged() -> Path:
    return graph_folder(BUILT_IN[0]).with_name("run")


def name_in_commands(run: Path) -> str:
    """How a command names the run: by its folder, quoted as a shell needs it, or as the one that comes with hynt."""
    return BUILT_IN[0] if is_packaged(run) else shlex.quote(str(run))


def is_packaged(run: Path) -> bool:
    """Whether it is the run that comes with hynt, which is never written to."""
    return run == _packaged()


def refuse_packaged(run: Path) -> None:
    """What is installed stays as it is: changes go into a copy."""
    if is_packaged(run):
        raise UsageError(
            "this run comes with hynt, and what is installed is not changed.",
            where=BUILT_IN[0],
            advice="Make a copy that can be: hynt update world --out RUN, or in Python run.save(RUN).",
        )


def refuse_filled(target: Path, advice: str = "Choose another folder.") -> None:
    """Refuses a place for a new run where there is something other than an empty folder."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists already.", advice=advice)


def is_run(source: str | os.PathLike[str]) -> bool:
    """Whether this names a run and no graph: by its own files, or by what is left of them."""
    return str(source) not in BUILT_IN and any((Path(source) / name).is_file() for name in (CONFIG, SCALING))


def check_is_run(path: Path) -> None:
    """Refuses what is no run, with the command that would make one of it."""
    if is_graph(path):
        raise UsageError(
            "this is a graph, not a run.", where=str(path), advice=f"Train on it first: hynt train {path} --out RUN"
        )
    if path.is_file():
        raise UsageError("this is a file, and a run is a folder.", where=str(path), advice=_MAKE)
    if not (path / MANIFEST_NAME).exists():
        raise UsageError(f"there is no run at {str(path)!r}.", advice=_MAKE)


_MAKE = "Make one with: hynt train GRAPH --out RUN; or say world, the run that comes with hynt."


# A run and its graph, opened and checked without torch: a name that nobody knows is refused at once, not after seconds
# of loading.

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class SavedRun:
    """A run on disk whose manifest is whole."""

    path: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> Self:
        """A run that is there. Its manifest is checked against its own hash."""
        path = run_place(path)
        check_is_run(path)
        manifest = read_index(path / MANIFEST_NAME)
        version = manifest.get("schema_version")
        if version != SCHEMA_VERSION:
            raise DataError(
                f"the run has schema version {version!r}; this hynt reads version {SCHEMA_VERSION}.",
                where=str(path / MANIFEST_NAME),
                advice="Use the hynt that made it, or train again.",
            )
        if not _is_manifest(manifest):
            raise DataError("the manifest is not that of a run.", where=str(path / MANIFEST_NAME), advice=RESTORE)
        return cls(path, manifest)

    @property
    def is_packaged(self) -> bool:
        """Whether it is part of hynt itself, where nothing is written."""
        return self.path == _packaged()

    def checked(self, name: str) -> Path:
        """The path of a file, once it is known to be the one that was written."""
        return check_hash(self.path, name, self.manifest["files"])

    def graph(self) -> KnowledgeGraph:
        """The graph it was made with, refused when it is another one. It is read and compared once."""
        return self._graph

    def copy(self, target: Path) -> None:
        """The run in a new folder, whole or not at all. Where the graph is too large to be part of it, the copy finds
        the same.
        """
        refuse_filled(target)
        if target.is_dir():
            target.rmdir()
        with new_folder(target) as staging:
            shutil.copytree(self.path, staging, dirs_exist_ok=True)
            place = self.manifest["graph"]["path"]
            if not (staging / place).is_dir():
                moved = Path(os.path.relpath((self.path / place).resolve(), target.resolve())).as_posix()
                if self.is_packaged:
                    moved = str(shutil.copytree(self.path / place, staging / "graph").name)
                manifest = {**self.manifest, "graph": {**self.manifest["graph"], "path": moved}}
                (staging / MANIFEST_NAME).write_text(index_text(manifest), encoding="utf-8")

    @cached_property
    def _graph(self) -> KnowledgeGraph:
        return graph_of_run(self.path, self.manifest["graph"])


def _is_manifest(manifest: dict[str, Any]) -> bool:
    """Whether all that others rely on is there, and of its kind."""
    graph, files, training = (manifest.get(name, {}) for name in ("graph", "files", "training"))
    return (
        isinstance(manifest.get("model_name"), str)
        and all(isinstance(part, dict) for part in (graph, files, training))
        and isinstance(graph.get("name"), str)
        and isinstance(graph.get("path"), str)
        and "\0" not in graph["path"]
        and isinstance(graph.get("fingerprints"), dict)
        and all(isinstance(text, str) for text in (*files.values(), *graph["fingerprints"].values()))
        and _is_training(training)
    )


def _is_training(training: Mapping[str, Any]) -> bool:
    best, bests = training.get("best", {}), training.get("best_of_tasks", {})
    if (
        not isinstance(best, dict)
        or not isinstance(bests, dict)
        or not all(isinstance(one, dict) for one in bests.values())
    ):
        return False
    epochs = [training.get("weights_of_epoch", 0), *(one.get("epoch", 0) for one in (best, *bests.values()))]
    values = [training.get("seconds", 0), *([] if best.get("value") is None else [best["value"]])]
    return (
        all(isinstance(epoch, int) for epoch in epochs)
        and all(isinstance(value, int | float) for value in values)
        and all(abs(number) < _MOST for number in (*epochs, *values))
        and isinstance(best.get("metric", ""), str)
    )


@contextmanager
def whole_run() -> Iterator[None]:
    """Within the block, a run that is damaged, changed or has another graph is wrong use: it is not what was made.

    The exit code is then 2; 1 would say that the data asked about is at fault. A full disk stays what it is.
    """
    try:
        yield
    except Unwritable:
        raise
    except DataError as problem:
        raise UsageError.of(problem) from None


def open_run(path: Path) -> SavedRun:
    """A run with its graph, for whoever asks it; a `UsageError` where there is no run, or the graph is another."""
    with whole_run():
        saved = SavedRun.open(path)
        saved.graph()
    return saved


def read_counts(run: Path) -> dict[str, int]:
    """How often each held-out split was read to evaluate a run."""
    found = read_index(run / READS)
    if not all(type(count) is int and count >= 0 for count in found.values()):
        raise DataError("the counts are no whole numbers.", where=str(run / READS), advice=RESTORE)
    return found


# The lines of a run's metrics.jsonl: one for each epoch and each validation. It is not hashed, since it grows.


def read_record(path: Path) -> list[dict[str, Any]]:
    """All lines; none where there is no file. A line that no training wrote is a `DataError` that names it."""
    try:
        check_regular(path)
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
            raise _damaged(f"{path}:{number}", "this line is not a record")
        found.append(record)
    return found


def _damaged(where: str, why: str) -> DataError:
    return DataError(f"the training record is damaged: {why}.", where=where, advice="Restore it from a copy.")


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
    changed = graph_differences(entry["fingerprints"], graph_fingerprints(graph))
    if changed:
        raise DataError(
            f"the graph is not the one this run was made with: {'; '.join(changed)}.", where=str(folder), advice=RESTORE
        )
    return graph
