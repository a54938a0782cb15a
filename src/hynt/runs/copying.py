"""A run in another place. Its files are the same to the byte; only where its graph lies may have to be said anew."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hynt.errors import UsageError
from hynt.files import MANIFEST_NAME, index_text, new_folder, read_index
from hynt.runs.place import check_is_run, whole_run

_GRAPH = "graph"


def copy_run(source: Path, target: Path) -> None:
    """Copies a run to a new folder, whole or not at all."""
    check_is_run(source)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists already.", where=str(target), advice="Choose another folder.")
    with whole_run(), new_folder(target) as staging:
        if target.is_dir():
            target.rmdir()
        shutil.copytree(source, staging, dirs_exist_ok=True)
        manifest = read_index(staging / MANIFEST_NAME)
        place = manifest["graph"]["path"]
        if place != _GRAPH:  # the graph stays where it is
            moved = Path(os.path.relpath((source / place).resolve(), target.resolve())).as_posix()
            manifest["graph"] = {**manifest["graph"], "path": moved}
            (staging / MANIFEST_NAME).write_text(index_text(manifest), encoding="utf-8")
