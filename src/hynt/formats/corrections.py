"""What somebody decided about doubtful facts, as JSON lines:

    {"decision": "keep", "fact": {"head": "Ann", "relation": "height", "tail": 1.7}}
    {"decision": "remove", "fact": {…}}
    {"decision": "replace", "fact": {…}, "with": {…}}

Facts are written as our JSON lines have them, with the ids of the graph. The page of doubtful facts writes such files;
an import and an update read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hynt.errors import DataError, HyntError, RecordProblem, UsageError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.jsonl import fact_of
from hynt.formats.lines import read_object, text_lines
from hynt.formats.values import check_names
from hynt.graph.fact import DATE_UNIT, Fact, Number, Value
from hynt.graph.units.conversion import to_si

MOST = 1_000_000
_DECISIONS = ("keep", "remove", "replace")


@dataclass
class Corrections:
    """Which facts go, and what comes in the place of some; facts are found by what they say, whatever their units."""

    path: Path
    kept: int = 0
    changed: dict[Any, tuple[Fact, Fact | None]] = field(default_factory=dict)  # by content; None: it goes
    places: dict[Any, str] = field(default_factory=dict)  # by content: the line of the decision
    used: set[Any] = field(default_factory=set)

    def applied(self, fact: Fact) -> Fact | None:
        """The fact as it was decided on; None where it was to go."""
        key = _content(fact)
        if key not in self.changed:
            return fact
        self.used.add(key)
        return self.changed[key][1]

    def removed(self) -> DecidedFacts:
        """The facts that go, those that are replaced among them."""
        return DecidedFacts([(fact, self.places[key]) for key, (fact, _) in self.changed.items()])

    def added(self) -> DecidedFacts:
        """What comes in the place of others."""
        return DecidedFacts([(fact, self.places[key]) for key, (_, fact) in self.changed.items() if fact is not None])

    def to_mapping(self) -> dict[str, int]:
        """What became of them in an import, for its account."""
        used = [self.changed[key][1] for key in self.used]
        replaced = sum(fact is not None for fact in used)
        found = {"removed": len(used) - replaced, "replaced": replaced, "kept": self.kept}
        return {**found, "not_found": len(self.changed) - len(used)}


@dataclass(frozen=True)
class DecidedFacts:
    """Facts of some decisions, each with its line."""

    facts: list[tuple[Fact, str]]

    def __iter__(self) -> Iterator[Fact]:
        return (fact for fact, _ in self.facts)

    def place(self, number: int) -> str:
        """Where the decision about the fact of this number, from 1, stands."""
        return self.facts[number - 1][1]


def read_corrections(path: Path) -> Corrections:
    """All decisions of a file; one that cannot be read is a `DataError` with its line."""
    if not path.is_file():
        advice = "Give the file that was downloaded from the page of doubtful facts."
        raise UsageError(f"there is no file {str(path)!r}.", where="--corrections", advice=advice)
    found, report = Corrections(path), ReadReport()
    for line in text_lines(path, ReadOptions(), report):
        if not line.strip():
            continue
        try:
            _take(found, read_object(line), report.where)
        except RecordProblem as problem:
            raise DataError.of(problem, report.where) from None
        if len(found.changed) > MOST:
            raise DataError(f"there are more than {MOST:,} decisions.", where=str(path), advice="Give fewer at a time.")
    return found


def _take(found: Corrections, record: dict[str, Any], where: str) -> None:
    decision = record.get("decision")
    if decision not in _DECISIONS:
        raise RecordProblem("bad-value", "a decision is keep, remove or replace.", 'Write {"decision": "remove", …}.')
    wanted = {"decision", "fact"} | ({"with"} if decision == "replace" else set())
    if record.keys() != wanted or not all(isinstance(record[name], dict) for name in wanted - {"decision"}):
        told = " and ".join(sorted(wanted - {"decision"}))
        advice = "A fact has a head, a relation, a tail and qualifiers."
        raise RecordProblem("bad-value", f"a decision to {decision} has {told}, and nothing else.", advice)
    fact = fact_of(record["fact"])
    if decision == "keep":
        found.kept += 1
        return
    key = _content(fact)
    if key in found.changed:
        raise RecordProblem("twice", "this fact was decided on before.", "Keep one decision for each fact.")
    other = fact_of(record["with"]) if decision == "replace" else None
    for one in (fact, other):
        if one is not None:
            check_names(one)
    found.changed[key], found.places[key] = (fact, other), where


def _content(fact: Fact) -> Any:
    """What a fact says: its names, its numbers in reference units, its qualifiers in any order."""
    pairs = frozenset((relation, _said(value)) for relation, value in fact.qualifiers)
    return fact.head, fact.relation, _said(fact.tail), pairs


def _said(value: Value) -> str | tuple[float, str]:
    if not isinstance(value, Number):
        return value
    if not value.unit or value.unit == DATE_UNIT:
        return value.value, value.unit
    try:
        return to_si(value.value, value.unit)
    except HyntError:  # a unit that nobody knows stays what it is
        return value.value, value.unit
