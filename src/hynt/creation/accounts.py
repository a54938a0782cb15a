"""The books of a build: for lines, facts and qualifiers, read = kept + each reason; and the bad lines themselves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hynt.creation.tasks import PartSummary
from hynt.errors import DataError
from hynt.files import write_whole

ALWAYS_BORNE = 10
"""Bad lines that stop no build, however short it is."""

_REJECTED = "rejected-"
_REJECTS_KEPT = 1000


@dataclass
class Account:
    """One kind of thing: how many were read and kept, and why the others were not."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def drop(self, reason: str, number: int) -> None:
        """Move some of what was kept to a reason."""
        if number:
            self.kept -= number
            self.dropped[reason] += number

    @property
    def is_balanced(self) -> bool:
        return self.read == self.kept + sum(self.dropped.values())

    def to_mapping(self) -> dict[str, Any]:
        return {"read": self.read, "kept": self.kept, "dropped": dict(sorted(self.dropped.items()))}


@dataclass
class RejectGuard:
    """Watches the bad lines while parts come in, and stops a build that loses too many."""

    share: float
    path: Path  # where bad lines are written
    read: int = 0
    rejected: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, summary: PartSummary) -> None:
        for key, number in summary.counts.items():
            if key.startswith("lines:"):
                self.read += number
                self.rejected += number if key.startswith(f"lines:{_REJECTED}") else 0
        self.examples.extend(summary.rejects[: max(_REJECTS_KEPT - len(self.examples), 0)])
        if self.rejected > max(ALWAYS_BORNE, self.share * self.read):
            first = self.examples[0]
            raise DataError(
                f"{self.rejected} of {self.read} lines cannot be read. The first: {first['what']}",
                where=f"{first['file']}, byte {first['offset']}",
                advice=f"Look at {self.path}. Check that the dump is whole and of this kind, or allow more with "
                "--max-bad-lines SHARE.",
            )

    def write(self) -> None:
        """Write the bad lines, where there are any, one JSON object each, in the order of the dump."""
        if not self.examples:
            return
        ordered = sorted(self.examples, key=lambda found: (found["file"], found["offset"]))
        text = "".join(json.dumps(found, ensure_ascii=False) + "\n" for found in ordered)
        write_whole(self.path, text.encode("utf-8", "backslashreplace"))


@dataclass
class Books:
    """All accounts of a build."""

    lines: Account = field(default_factory=Account)
    facts: Account = field(default_factory=Account)
    qualifiers: Account = field(default_factory=Account)
    nodes: Account = field(default_factory=Account)  # YAGO's meta facts, Freebase's links to mediators
    notes: Counter[str] = field(default_factory=Counter)

    def open(
        self,
        summaries: Iterable[PartSummary],
        judged: Iterable[Mapping[str, Any]],
        joined: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Put in what the parsers and then the recipe counted."""
        for summary in summaries:
            for key, number in summary.counts.items():
                scope, _, reason = key.partition(":")
                if scope == "notes":
                    self.notes[reason] += number
                elif scope == "lines":
                    _enter(self.lines, reason if reason != "parsed" else "kept", number)
                elif reason != "parsed":  # those are judged by the recipe
                    _enter(getattr(self, scope), reason, number)
        for row in judged:
            _enter(getattr(self, row["scope"]), row["verdict"], row["number"])
        for row in joined:
            _enter(self.nodes, row["verdict"], row["number"])

    def settle(self, report: Mapping[str, Any], qualifiers: int) -> None:
        """Take out the facts that the assembly left out; `qualifiers` is how many those that are left have."""
        self.facts.drop("duplicate", report["duplicates"])
        self.facts.drop("outlier", report.get("outliers", {}).get("removed_facts", 0))
        self.facts.drop("leakage", report.get("leakage", {}).get("removed_facts", 0))
        self.qualifiers.drop("fact-dropped", self.qualifiers.kept - qualifiers)

    def to_mapping(self) -> dict[str, Any]:
        accounts = {"lines": self.lines, "facts": self.facts, "qualifiers": self.qualifiers}
        if self.nodes.read:
            accounts["nodes"] = self.nodes
        for name, account in accounts.items():
            if not account.is_balanced:
                raise RuntimeError(f"the account of {name} does not balance: {account}")
        return {
            **{name: account.to_mapping() for name, account in accounts.items()},
            "noted": dict(sorted(self.notes.items())),
        }


def account_text(account: Mapping[str, Any]) -> str:
    """An account in one line: 11 read = 5 kept + 2 property + …"""
    ordered = sorted(account["dropped"].items(), key=lambda pair: (-pair[1], pair[0]))
    terms = [f"{account['kept']:,} kept", *(f"{number:,} {reason}" for reason, number in ordered)]
    return f"{account['read']:,} read = {' + '.join(terms)}"


_ADVICE = {
    "not-in-set": "To keep facts whose tail is outside the chosen entities, say --keep-tails.",
    "not-selected": "Check that the ids or types that were asked for are the dump's.",
    "text": "To keep texts, identifiers and addresses as entities, say --text keep.",
}


class NothingKept(DataError):
    """A build without any fact, with what became of everything that was read."""

    def __init__(self, books: Books) -> None:
        told = books.to_mapping()
        read = {name: told[name] for name in ("lines", "facts") if told[name]["read"]}
        reasons = Counter[str]()
        for account in read.values():
            reasons.update(account["dropped"])
        advice = next((_ADVICE[reason] for reason, _ in reasons.most_common() if reason in _ADVICE), "")
        said = "; ".join(f"{name}: {account_text(account)}" for name, account in read.items()) or "the dump is empty"
        super().__init__(
            f"there are no facts. {said}.", advice=advice or "Check that this is a dump of the kind that was named."
        )


def _enter(account: Account, reason: str, number: int) -> None:
    account.read += number
    if reason == "kept":
        account.kept += number
    else:
        account.dropped[reason] += number
