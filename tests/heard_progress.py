"""A progress that remembers what it was told, and can do something at each update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hynt.progress import Progress


@dataclass(frozen=True)
class Update:
    stage: str
    done: int
    total: int | None
    share: float | None
    note: str


class HeardProgress(Progress):
    def __init__(self, at_update=lambda update: None) -> None:
        self.updates: list[Update] = []
        self.said: list[str] = []
        self._at_update = at_update

    def update(self, stage, done, total=None, unit="", **details: Any) -> None:
        share = details.get("share")
        share = done / total if share is None and total else share
        self.updates.append(Update(stage, done, total, share, details.get("note", "")))
        self._at_update(self.updates[-1])

    def say(self, text) -> None:
        self.said.append(text)
