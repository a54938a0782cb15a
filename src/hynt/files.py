"""Files that are written whole or not at all: whoever reads one sees the old content or the new."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hynt.errors import DataError, UsageError


def check_place(path: Path, option: str) -> None:
    """Refuse a place that cannot be written to before a long job, not after it."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", where=option, advice="Give the name of a file.")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}.", where=option, advice="Make it first.")
    _check_rights(path.parent, option)


def check_new_folder(path: Path, option: str) -> None:
    """Refuse a folder that cannot be made, before a long job; folders above it may be missing."""
    try:
        above = next(folder for folder in path.absolute().parents if folder.exists())
    except OSError as problem:
        raise _nothing_there(path, option, problem) from None
    if not above.is_dir():
        raise UsageError(f"{above} is a file, so no folder can be made in it.", where=option, advice=_ELSEWHERE)
    _check_rights(above, option)


_ELSEWHERE = "Choose another place."


def _check_rights(folder: Path, option: str) -> None:
    """By trying: what is written on paper (modes, owners) is not all that decides."""
    try:
        tempfile.TemporaryFile(prefix=".hynt-", dir=folder).close()
    except OSError as problem:
        raise _nothing_there(folder, option, problem) from None


def _nothing_there(folder: Path, option: str, problem: OSError) -> UsageError:
    words = problem.strerror or problem
    return UsageError(f"nothing can be written in {folder}: {words}.", where=option, advice=_ELSEWHERE)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to fill, which takes its name when the block ends well and is gone when it does not."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.partial-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as problem:
        raise DataError(
            f"the file cannot be written: {problem.strerror or problem}.",
            where=str(path),
            advice="Make room, or choose another place.",
        ) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file all at once."""
    with whole_file(path) as file:
        file.write(content)
