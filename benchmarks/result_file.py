"""Reading a JSON file that a benchmark wrote: a wrong, damaged or missing one is refused in a sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def read_result(file: Path, *parts: str, advice: str) -> dict[str, Any]:
    """What the file holds, which must have these parts; ends the program where it has not."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        sys.exit(f"{file} cannot be read ({problem}): {advice}")
    missing = [part for part in parts if not isinstance(found, dict) or part not in found]
    if missing:
        sys.exit(f"{file} is another kind of file, it has no {', '.join(missing)}: {advice}")
    return dict(found)
