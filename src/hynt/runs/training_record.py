"""The lines of a run's metrics.jsonl: one for each epoch and each validation. It is not hashed, since it grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hynt.errors import DataError


def read_record(path: Path) -> list[dict[str, Any]]:
    """All lines; none where there is no file. A line that no training wrote is a `DataError` that names it."""
    try:
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
            raise _damaged(f"{path}:{number}", "this line is no record")
        found.append(record)
    return found


def _damaged(where: str, why: str) -> DataError:
    return DataError(f"the training record is damaged: {why}.", where=where, advice="Restore it from a copy.")
