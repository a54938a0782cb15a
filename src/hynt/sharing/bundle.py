"""Which files a given-away run has, and the list of their hashes that goes with them, `hynt-run.json`.

Only names that hynt itself gives to files of a run are ever packed or unpacked. A file beyond them, a script or a
pickle say, is passed over and named; a list that asks for one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hynt.asking.examples import EXAMPLES
from hynt.batches.masked_batch import Task
from hynt.calibration.calibration import CALIBRATION
from hynt.errors import DataError
from hynt.files import MANIFEST_NAME, hashes, index_text, read_index
from hynt.graph.splitting import SPLITS
from hynt.runs.checkpoint import WEIGHTS, task_weights
from hynt.runs.run_folder import COMBINATION, CONFIG, ENVIRONMENT, GRAPH, MEANS, MEMBERS, METRICS, READS, SCALING
from hynt.sharing.croissant import CROISSANT

LIST, CARD = "hynt-run.json", "README.md"
NEEDED = (MANIFEST_NAME, CONFIG, SCALING, ENVIRONMENT, WEIGHTS)
NAMES = (
    *NEEDED,
    METRICS,
    READS,
    CALIBRATION,
    EXAMPLES,
    *(task_weights(task.name.lower()) for task in Task),
    COMBINATION,
    MEMBERS,
    MEANS,
    *(f"{GRAPH}/{name}" for name in (MANIFEST_NAME, "entities.parquet", "relations.parquet")),
    *(f"{GRAPH}/{split}.parquet" for split in SPLITS),
)
"""Every file that a run can have, by its path in the run."""

AGAIN = "Get it again from where it came, or ask whoever made it."
_HASH = re.compile(r"[0-9a-f]{64}\Z")


def packed_names(run: Path) -> list[str]:
    """The files of a run that go with it."""
    return [name for name in NAMES if (run / name).is_file()]


def surplus(folder: Path) -> list[str]:
    """Files that are not a run's, by their path; what a repository itself needs is not counted."""
    return sorted(name for name in _paths(folder) if name not in (*NAMES, LIST, CARD, CROISSANT))


def _paths(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        is_repository = any(part.startswith(".git") or part == ".cache" for part in relative.parts)
        if not path.is_dir() and not is_repository:
            yield relative.as_posix()


def list_text(run: Path, names: list[str]) -> str:
    """The list of files, which carries its own hash."""
    return index_text({"kind": "hynt run", "files": hashes(run, names)})


def read_list(folder: Path) -> dict[str, str]:
    """The hash of each file of a given-away run; refused when it names anything that is not a run's."""
    path = folder / LIST
    if not path.exists():
        raise DataError(
            "this is not a run that was given away: it has no list of files.",
            where=str(path),
            advice="Make one with: hynt push RUN DEST.",
        )
    try:
        content: Mapping[str, Any] = read_index(path)
    except DataError as problem:
        raise DataError(problem.what, where=problem.where, advice=AGAIN) from None
    files = content.get("files")
    if content.get("kind") != "hynt run" or not isinstance(files, dict):
        raise DataError("the list of files is not one of hynt's.", where=str(path), advice=AGAIN)
    for name, digest in files.items():
        if name not in NAMES or not isinstance(digest, str) or not _HASH.match(digest):
            raise DataError(f"the list holds {name!r}, which is no file of a run.", where=str(path), advice=AGAIN)
    for name in NEEDED:
        if name not in files:
            raise DataError(f"the list lacks {name}, which every run has.", where=str(path), advice=AGAIN)
    return dict(files)
