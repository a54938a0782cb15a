"""The work of an audit on disk, so that one that was stopped goes on where it was:

    WORK/manifest.json       what is audited and how; another audit is refused
        fold-1/              the run that learns from all but the first fold
        sharpness-fold-1.json
        judged-fold-1/       what that run says of the fold's facts

A step is done when its file is there, and each file appears whole or not at all.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hynt import __version__
from hynt.auditing.judging import NumberJudgement, RankedJudgement
from hynt.errors import DataError, UsageError
from hynt.runs.hashed_files import (
    INDEX_NAME,
    check_hash,
    hashes,
    index_text,
    new_folder,
    read_index,
    remove_partial,
    write_atomically,
)

SCHEMA_VERSION = 2
_NAMES = ("link", "relation", "number")

J = TypeVar("J", RankedJudgement, NumberJudgement)


@dataclass(frozen=True, eq=False)
class Judged:
    """What one part's model says of its facts."""

    link: RankedJudgement
    relation: RankedJudgement
    number: NumberJudgement


@dataclass(frozen=True)
class AuditFolder:
    """Where an audit keeps what it has done."""

    path: Path

    @classmethod
    def open(cls, path: Path, identity: Mapping[str, Any]) -> AuditFolder:
        """A new folder, or one that the same audit left behind."""
        content = {"schema_version": SCHEMA_VERSION, "hynt": __version__, "audit": _plain(identity)}
        try:
            if not path.exists() or (path.is_dir() and not any(path.iterdir())):
                path.mkdir(parents=True, exist_ok=True)
                write_atomically(path / INDEX_NAME, index_text(content))
        except OSError as problem:
            raise UsageError(
                f"the work folder cannot be made: {problem.strerror or problem}.",
                where=str(path),
                advice="Choose another with --work.",
            ) from None
        if not (path / INDEX_NAME).is_file():
            raise UsageError(
                f"{path} holds something else than an audit.", where="--work", advice="Give a new or empty folder."
            )
        found = read_index(path / INDEX_NAME)
        if found != content:
            raise UsageError(
                f"{path} belongs to another audit: {', '.join(_differing(found, content))} differ.",
                where="--work",
                advice="Say the same as before to go on with it, or remove the folder to begin anew.",
            )
        remove_partial(path)
        return cls(path)

    def run(self, name: str) -> Path:
        """Where the run of a fold is."""
        return self.path / name

    def inverse_temperature(self, name: str) -> dict[str, float] | None:
        """What was fitted on a part; None where that is still to do."""
        path = self.path / f"sharpness-{name}.json"
        return {task: float(value) for task, value in read_index(path).items()} if path.exists() else None

    def keep_inverse_temperature(self, name: str, found: Mapping[str, float]) -> None:
        write_atomically(self.path / f"sharpness-{name}.json", index_text(found))

    def is_judged(self, name: str) -> bool:
        return (self.path / f"judged-{name}").is_dir()

    def keep_judged(self, name: str, judged: Judged) -> None:
        with new_folder(self.path / f"judged-{name}") as folder:
            files = []
            for task in _NAMES:
                one = getattr(judged, task)
                columns = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
                pq.write_table(pa.table(columns), folder / f"{task}.parquet", compression="zstd")
                files.append(f"{task}.parquet")
            (folder / INDEX_NAME).write_text(index_text({"files": hashes(folder, files)}), encoding="utf-8")

    def judged(self, name: str) -> Judged:
        folder = self.path / f"judged-{name}"
        files = read_index(folder / INDEX_NAME)["files"]
        link, relation = (
            _read(check_hash(folder, f"{task}.parquet", files), RankedJudgement) for task in ("link", "relation")
        )
        return Judged(link, relation, _read(check_hash(folder, "number.parquet", files), NumberJudgement))

    def remove(self) -> None:
        """Takes the folder away, once the result is written."""
        shutil.rmtree(self.path, ignore_errors=True)


def _read(path: Path, kind: type[J]) -> J:
    try:
        table = pq.read_table(path)
        return kind(**{field.name: np.array(table[field.name].to_numpy()) for field in dataclasses.fields(kind)})
    except (pa.ArrowException, KeyError, ValueError) as problem:
        raise DataError(f"the file is not one that hynt wrote: {problem}.", where=str(path)) from None


def _plain(content: Mapping[str, Any]) -> Any:
    """As JSON gives it back: tuples are lists."""
    return json.loads(json.dumps(content))


def _differing(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The paths at which two contents differ."""
    paths: list[str] = []
    for key in sorted({*found, *wanted}):
        left, right = found.get(key), wanted.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            paths += [inner if key == "audit" else f"{key}.{inner}" for inner in _differing(left, right)]
        elif left != right:
            paths.append(key)
    return paths
