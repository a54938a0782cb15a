"""Files written whole or not at all, and read only when they are the ones that were written.

A folder is made under a hidden name, flushed to disk and renamed, so a kill at any moment leaves the old state or the
new one. Every file's SHA-256 stands in an index, which ends with the hash of its own text: a changed byte anywhere is
found before anything is used. This guards against damage and slips; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hynt.errors import DataError

INDEX_NAME = "manifest.json"
RESTORE = "Restore it from a copy, or train again."
_PARTIAL = ".partial-"
_LARGEST_INDEX = 4 * 2**20


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataError("the file is missing.", where=str(path), advice=RESTORE) from None
    except OSError as problem:
        raise DataError(f"the file cannot be read: {problem.strerror}.", where=str(path), advice=RESTORE) from None


def flush(path: Path) -> None:
    """Waits until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: Path, text: str) -> None:
    """Puts a text file in place of what may be there, in one rename."""
    handle, name = tempfile.mkstemp(prefix=f"{_PARTIAL}{path.name}-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(name).chmod(0o644)
    Path(name).replace(path)
    flush(path.parent)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill; it appears under its name only when the block ends well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f"{_PARTIAL}{folder.name}-", dir=folder.parent))
    try:
        yield staging
        for path in staging.rglob("*"):
            flush(path)
        staging.chmod(0o755)
        flush(staging)
        staging.replace(folder)
        flush(folder.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def remove_partial(folder: Path) -> None:
    """Removes what a killed process left half written."""
    for path in folder.glob(f"{_PARTIAL}*"):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def index_text(content: Mapping[str, Any]) -> str:
    """JSON that carries the hash of itself."""
    return json.dumps({**content, "sha256": _digest(content)}, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def read_index(path: Path) -> dict[str, Any]:
    """What `index_text` wrote; refused when it is missing, damaged or changed."""
    try:
        if path.stat().st_size > _LARGEST_INDEX:
            raise DataError("the file is larger than hynt would write it.", where=str(path), advice=RESTORE)
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataError("the file is missing.", where=str(path), advice=RESTORE) from None
    except (OSError, ValueError, RecursionError):
        raise DataError("the file is damaged.", where=str(path), advice=RESTORE) from None
    if not isinstance(content, dict) or content.pop("sha256", None) != _digest(content):
        raise DataError("the file was changed: it does not match its own hash.", where=str(path), advice=RESTORE)
    return content


def hashes(folder: Path, names: list[str]) -> dict[str, str]:
    """The hash of each named file, for the index."""
    return {name: sha256_of(folder / name) for name in names}


def check_hash(folder: Path, name: str, files: Mapping[str, str]) -> Path:
    """The path of a file that is the one the index means; else a `DataError` that names it."""
    path = folder / name
    if name not in files:
        raise DataError(f"the manifest does not list {name}.", where=str(folder / INDEX_NAME), advice=RESTORE)
    if sha256_of(path) != files[name]:
        raise DataError("the file was changed: its hash is not the manifest's.", where=str(path), advice=RESTORE)
    return path


def _digest(content: Mapping[str, Any]) -> str:
    plain = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
