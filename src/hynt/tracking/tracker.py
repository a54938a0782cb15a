"""What a tracker is: somebody who is told what a run is, each number as it comes, and how it ended.

`metrics.jsonl` in the run folder is always written and needs none of this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from hynt.config import to_mapping
from hynt.errors import UsageError
from hynt.runs.run_folder import CONFIG, RunFolder

Ending = Literal["finished", "stopped", "failed"]


@dataclass(frozen=True)
class Tracked:
    """A run, as a tracker needs to know it."""

    name: str
    key: str  # letters, digits and dashes; the same when the run is gone on with, so that it stays one run there
    folder: Path  # where trackers that write files do so: beside runs, not in them, since runs are given away
    settings: dict[str, Any]  # by path: {"optimiser.learning_rate": 0.001, …}
    tags: dict[str, str]

    @classmethod
    def of(cls, run: RunFolder, folder: Path) -> Tracked:
        """From a run's folder."""
        manifest, name = run.manifest, run.path.resolve().name
        tags = {"model": manifest["model_name"], "graph": manifest["graph"]["name"], "hynt": manifest["hynt"]}
        key = re.sub(r"[^A-Za-z0-9_-]", "-", f"{name}-{manifest['files'][CONFIG][:12]}")
        return cls(name, key, folder, flat(to_mapping(run.settings()), "."), tags)


class Tracker(Protocol):
    """One place where metrics go."""

    def begin(self, run: Tracked) -> None:
        """Training begins, or goes on."""
        ...

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers of one epoch, by names such as `loss/link` and `valid/link/all/mrr`."""
        ...

    def end(self, how: Ending) -> None:
        """Nothing more comes."""
        ...


def flat(mapping: Mapping[str, Any], between: str, path: str = "") -> dict[str, Any]:
    """Nested tables as one, names joined."""
    found: dict[str, Any] = {}
    for name, value in mapping.items():
        place = f"{path}{between}{name}" if path else str(name)
        found |= flat(value, between, place) if isinstance(value, Mapping) else {place: value}
    return found


def missing(library: str, extra: str) -> UsageError:
    """The word for a tracker whose library is not installed."""
    return UsageError(
        f"{library} is not installed.", where="--track", advice=f"Install it with: pip install 'hynt[{extra}]'."
    )
