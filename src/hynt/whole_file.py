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
        raise DataError(f"the file cannot be written: {problem.strerror or problem}.", where=str(path)) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file all at once."""
    with whole_file(path) as file:
        file.write(content)
