"""What happened while reading: how much was read, kept and rejected, why, and where.

read = kept + rejected          always, and a test holds it
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hynt.errors import RecordProblem

__all__ = ["PROBLEMS_SHOWN", "Problem", "ReadReport", "RecordProblem"]

PROBLEMS_SHOWN = 20


class Problem(NamedTuple):
    """A rejected record, or an odd one that was kept."""

    where: str  # file:line
    reason: str
    what: str
    advice: str


@dataclass
class ReadReport:
    """Counts, and the first problems with their places. One report serves all files of a source."""

    read: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)  # odd but kept, by reason
    problems: list[Problem] = field(default_factory=list)  # the first rejected ones
    notes: list[Problem] = field(default_factory=list)  # the first noted ones
    hints: list[str] = field(default_factory=list)  # what a user may have forgotten to say
    file: str = ""  # the file being read, as the user named it
    line: int = 0  # the line or record being read, from 1
    labels: dict[str, str] = field(default_factory=dict)  # names for people that stand among the facts, by id
    bytes_read: int = 0  # taken from the files so far, before decompression: what a progress bar shows

    @property
    def where(self) -> str:
        """The place being read now."""
        return f"{self.file}:{self.line}"

    def reject(self, problem: RecordProblem, *, where: str = "") -> None:
        """Count a record that was read and cannot be kept."""
        self.rejected[problem.reason] += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append(Problem(where or self.where, problem.reason, problem.what, problem.advice))

    def note(self, reason: str, what: str, advice: str = "") -> None:
        """Count something odd about a record that is kept all the same."""
        self.noted[reason] += 1
        if len(self.notes) < PROBLEMS_SHOWN:
            self.notes.append(Problem(self.where, reason, what, advice))

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON and the manifest."""
        return {
            "read": self.read,
            "kept": self.kept,
            "rejected": dict(sorted(self.rejected.items())),
            "noted": dict(sorted(self.noted.items())),
        }
