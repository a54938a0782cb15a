"""From triples to facts: what belongs to one fact stands in several triples, and has to be brought together.

Triples are held by subject. Small files are held whole, so the order of their triples does not matter. A large file
is worked off in a window: once more than `WINDOW` triples are held, the oldest subjects are settled and let go. What
cannot be settled yet (a Wikidata statement whose value node has not been met) stays, up to `PENDING_LIMIT` triples.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hynt.errors import DataError, RecordProblem
from hynt.formats.format import ReadOptions
from hynt.formats.names import check_name
from hynt.formats.rdf.blocks import LEFT_OUT, BlockReader
from hynt.formats.rdf.names import REIFIES, WIKIDATA_PROPERTY
from hynt.formats.rdf.parsing import Statement, TripleTerm
from hynt.formats.rdf.wikidata import is_statement, is_value_node, trimmed_value_node
from hynt.graph.fact import Fact

if TYPE_CHECKING:
    from hynt.formats.report import ReadReport

WINDOW = 200_000
"""Triples held before the oldest subjects are settled."""
PENDING_LIMIT = 2_000_000
"""Triples, value nodes or links that may wait for their other half; about 1 GB."""

Block: TypeAlias = "dict[tuple[str, Any], int]"
"""(predicate, object) → line, of one subject."""


Key = TypeVar("Key")


class StatementJoiner:
    """Takes triples in the order of the file and gives facts."""

    def __init__(
        self, report: ReadReport, options: ReadOptions, *, window: int = WINDOW, limit: int = PENDING_LIMIT
    ) -> None:
        self._report = report
        self._strict = options.strict
        keep_text = options.string_literals == "keep"
        self._window, self._limit = window, limit
        self._release_at = window
        self._blocks: dict[str, Block] = {}
        self.held = 0  # triples
        self._annotated: dict[TripleTerm, None] = {}  # triples that a reifier speaks about, oldest first
        self._reifiers: dict[str, None] = {}
        self._reader = BlockReader(report, keep_text=keep_text, annotated=self._annotated, reifiers=self._reifiers)

    def add(self, statement: Statement) -> bool:
        """Take a triple; whether so many are held that `release` should be called."""
        line, subject, predicate, value = statement
        block = self._blocks.get(subject)
        if block is None:
            block = self._blocks[subject] = {}
        if (predicate, value) in block:
            return False
        block[predicate, value] = line
        self.held += 1
        if predicate == REIFIES and isinstance(value, TripleTerm):
            self._annotated[value] = None
            self._reifiers[subject] = None
        elif isinstance(value, str) and predicate.startswith(WIKIDATA_PROPERTY) and is_statement(value):
            self._reader.links[value] = (subject, predicate)
        return self.held > self._release_at

    def finish(self) -> Iterator[Fact]:
        """The end of the file: settle everything that is left."""
        for subject in [subject for subject in self._blocks if is_value_node(subject)]:
            self._keep_value_node(subject)
        for subject in list(self._blocks):
            yield from self._settle(subject)
        for item, predicate in self._reader.links.values():
            self._report.read += 1
            self._report.reject(
                RecordProblem(
                    "statement-missing",
                    f"{item} links to a statement of {predicate} that the file does not hold.",
                    "Get the whole dump, or the truthy one.",
                )
            )

    def release(self) -> Iterator[Fact]:
        """Settle the oldest subjects until half a window is held."""
        for subject in list(self._blocks)[:-1]:  # the last is still being read
            if self.held <= self._window // 2:
                break
            if is_value_node(subject):
                self._keep_value_node(subject)
            elif self._reader.is_complete(subject, self._blocks[subject]):
                yield from self._settle(subject)
        _forget_oldest(self._annotated, self._window)
        _forget_oldest(self._reifiers, self._window)
        waiting = max(self.held, len(self._reader.values), len(self._reader.links))
        if waiting > self._limit:
            raise DataError(
                f"more than {self._limit:,} triples wait for another part of their statement.",
                where=self._report.where,
                advice="Sort the file so that the triples of a statement stand together, or cut it into parts.",
            )
        # Twice what stays, so that passing over what cannot be settled yet costs little for each triple.
        self._release_at = max(self._window, 2 * self.held)

    def _keep_value_node(self, subject: str) -> None:
        block = self._blocks.pop(subject)
        self.held -= len(block)
        self._reader.values.setdefault(subject, {}).update(trimmed_value_node(block))

    def _settle(self, subject: str) -> Iterator[Fact]:
        block = self._blocks.pop(subject)
        self.held -= len(block)
        report = self._report
        for line, fact, problem in self._reader.records(subject, block):
            report.line = line
            try:
                if problem is not None:
                    raise problem
                check_name(fact.head, "head")
                check_name(fact.relation, "relation")
                if fact.tail.__class__ is str:
                    check_name(fact.tail, "tail")
            except RecordProblem as found:
                if found.reason in LEFT_OUT and not self._strict:
                    report.note(found.reason, found.what, found.advice)
                else:
                    report.read += 1
                    report.reject(found)
                continue
            report.read += 1
            report.kept += 1
            yield fact


def _forget_oldest(known: dict[Key, None], most: int) -> None:
    for key in list(islice(known, max(len(known) - most, 0))):
        del known[key]
