"""A run of the embedded graph, made on first use and kept for the next time.

It lies in the user's cache folder under a name made of hynt's version, the graph and the settings: when one of them
changes, another run is made. It appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hynt import __version__
from hynt.errors import DataError
from hynt.files import MANIFEST_NAME
from hynt.graph.storage import graph_folder
from hynt.training.resolve_settings import PRESETS

WORLD = "world"


def cache_folder() -> Path:
    """Where programs of this user keep what can be made again (XDG)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if named and Path(named).is_absolute() else Path.home() / ".cache"
    return base / "hynt"


def world_run_folder() -> Path:
    """Where the run of this version, graph and settings lies, or will lie."""
    parts = (__version__, (graph_folder(WORLD) / MANIFEST_NAME).read_text(encoding="utf-8"), repr(PRESETS.get(WORLD)))
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return cache_folder() / "runs" / f"{WORLD}-{__version__}-{key}"


def world_run(epochs: int | None = None) -> Path:
    """The run of the embedded graph; trained now where there is none, with progress on standard error.

    Training happens in a process of its own, so that this one stays as light as it is. `epochs` makes a quicker and
    poorer run, kept under a name of its own.
    """
    folder = world_run_folder()
    if epochs is not None:
        folder = folder.with_name(f"{folder.name}-{epochs}")
    if (folder / MANIFEST_NAME).exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
    except OSError as problem:
        raise DataError(
            f"the run cannot be kept: {problem.strerror}.",
            where=str(folder.parent),
            advice="Name a folder that can be written to: XDG_CACHE_HOME=DIR.",
        ) from None
    try:
        _train(staging / "run", epochs)
        if not (folder / MANIFEST_NAME).exists():  # another process may have been quicker
            (staging / "run").replace(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return folder


def _train(out: Path, epochs: int | None) -> None:
    command = [sys.executable, "-m", "hynt", "train", WORLD, "--preset", WORLD, "--device", "cpu", "--out", str(out)]
    if epochs is not None:
        command += ["--epochs", str(epochs)]
    # What it says at its end, or when it is stopped, is about a folder that will be gone: only its progress is shown,
    # and Ctrl-C reaches this process alone, which ends it.
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        code = child.wait()
    finally:
        child.kill()
        child.wait()
    if code:
        raise DataError(f"training on {WORLD} failed with exit code {code}.", advice="What it said stands above.")
