"""Who is writing where, and what a process that was killed left behind.

What is being written has a hidden name, `.partial-NAME-…`, and is locked by its writer. A lock ends with its process,
however that ends: so what nobody holds any more is a left-over. What is being replaced is called `.old-NAME-…` for the
moment between two renames, on systems that cannot exchange two folders at once, and is put back after a kill.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hynt.errors import UsageError

PARTIAL, OLD = ".partial-", ".old-"
A_DAY = 24 * 3600.0
_HIDDEN = re.compile(rf"(?:{re.escape(PARTIAL)}|{re.escape(OLD)})(.+)-[a-z0-9_]{{8}}\Z")
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux
_HERE = -100  # AT_FDCWD


def lock(handle: int) -> bool:
    """Takes the lock on an open file or folder; False where another process has it. It ends when that is closed."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # a system, or a disk, without locks
        return True
    return True


@contextmanager
def only_writer(folder: Path, advice: str) -> Iterator[None]:
    """Within the block no other process gets this far with the same folder; it is refused, not kept waiting."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not lock(handle):
            raise UsageError("another process is writing here.", where=str(folder), advice=advice)
        yield
    finally:
        os.close(handle)


def exchange(one: Path, other: Path) -> bool:
    """Gives two folders each other's name at once, so that neither is ever missing; False where that cannot be."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def recover(folder: Path) -> None:
    """Puts back what a process that was killed between two renames took away."""
    if not folder.exists():
        for old in folder.parent.glob(f"{OLD}*"):
            if _name(old) == folder.name and (old / "was").is_dir():
                with suppress(OSError):  # another process may be doing the same
                    (old / "was").replace(folder)
                    old.rmdir()


def left_overs(folder: Path, age: float = 0.0, name: str | None = None) -> list[Path]:
    """What nobody writes to any more, at least so many seconds old; with `name`, only what was to be called so."""
    found = []
    for path in sorted(folder.glob(".*")):
        if _name(path) is None or (name is not None and _name(path) != name):
            continue
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime >= age and _is_free(path):
                found.append(path)
    return found


def clean(folder: Path, age: float = 0.0, name: str | None = None) -> list[Path]:
    """Removes left-overs, after putting back what is to be put back."""
    for path in folder.glob(f"{OLD}*"):
        wanted = _name(path)
        if wanted is not None and wanted == (name or wanted):
            recover(folder / wanted)
    found = left_overs(folder, age, name)
    for path in found:
        remove(path)
    return found


def discard(folder: Path) -> None:
    """Removes a folder; a kill on the way leaves it whole, or a left-over, but never half of it under its name."""
    with suppress(OSError):
        doomed = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{folder.name}-", dir=folder.parent))
        try:
            folder = folder.replace(doomed)
        except OSError:  # it is not there, or its system replaces no folder
            doomed.rmdir()
    shutil.rmtree(folder, ignore_errors=True)


def remove(path: Path) -> None:
    """A file or a folder, as far as it can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _name(path: Path) -> str | None:
    found = _HIDDEN.match(path.name)
    return None if found is None else found[1]


def _is_free(path: Path) -> bool:
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        return lock(handle)
    finally:
        os.close(handle)
