"""Changes to a run's graph as people give them, written to its journal, all or nothing. No torch here: a service writes
from the process that has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Any, NamedTuple

from hynt.asking.fitting import fitted_facts, refuse_unreadable
from hynt.errors import DataError, UsageError
from hynt.formats.corrections import Corrections, DecidedFacts
from hynt.formats.fact_file import FactFile
from hynt.formats.outcome import find_unmarked, hints_at
from hynt.graph.changes import are_unknown, encoded
from hynt.graph.fact import Fact
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Vocabulary
from hynt.names import shortened
from hynt.runs.journal import GraphChange, Journal, Version
from hynt.runs.place import SavedRun

_LONGEST_SOURCE = 200


@dataclass(frozen=True)
class GivenChange:
    """What somebody wants changed, in their own words."""

    facts: Iterable[Any] = ()  # to add
    remove: Iterable[Any] = ()
    remove_entities: Sequence[str] = ()
    merge: Sequence[tuple[str, str]] = ()
    skip_known: bool = False  # whether facts that are there already are skipped
    source: str = ""  # where it comes from, for the log
    key: str = ""  # asking again with the same one changes nothing
    files: tuple[str, ...] = ()  # what facts came from, told where no source is given
    corrections: Corrections | None = None  # decisions about facts: some go, and others come in their place

    def written(self, run: Path, graph: Callable[[Journal, int], KnowledgeGraph]) -> Written:
        """Writes one more version. `graph` gives the graph at a version, the newest."""
        journal = Journal(run)
        with journal.writer() as writer:
            versions = journal.versions()
            again = next((one for one in versions if self.key and one.key == self.key), None)
            if again is not None:
                return Written(again)
            before = graph(journal, len(versions))
            change, after, place = self.fitted(before, run)
            if not change:
                if self.skip_known:
                    return Written()
                raise UsageError("nothing was given to change.", advice="Give facts to add or remove, or entities.")
            words = [*self.files, *(f"{one} is {other}" for one, other in change.merged)]
            words += [f"without {one}" for one in change.without_entities]
            told = shortened(self.source or ", ".join(words), _LONGEST_SOURCE)
            otherwise = self.facts.named_otherwise(before) if isinstance(self.facts, FactFile) else []
            notes = (*otherwise, *overlooked(change, before, place))
            return Written(writer.append(change, before, told, self.key, after), after, notes)

    def fitted(self, graph: KnowledgeGraph, run: Path) -> Fitted:
        """The change in the graph's own names and units, and the graph with it; what the run cannot take is refused."""
        merged = tuple((_named(graph, one), _named(graph, other)) for one, other in self.merge)
        gone = tuple(_named(graph, one) for one in self.remove_entities)
        graph = GraphChange(merged, gone).applied(graph)
        decided = self.corrections
        goes = _Given(self.remove, *([decided.removed()] if decided else ()))
        comes = _Given(self.facts, *([decided.added()] if decided else ()))
        with goes.placed():
            away = tuple(fitted_facts(graph, goes, as_kept=True))
            after = GraphChange(removed=away).applied(graph)
        with comes.placed():
            if isinstance(self.facts, FactFile):
                self.facts.check_kinds(after)
            added = tuple(fitted_facts(graph, comes))
            refuse_unreadable(added, SavedRun.open(run))
            if self.skip_known:
                added = tuple(comes.kept(added, are_unknown(after, added)))
            labels = self.facts.labels(added, after) if isinstance(self.facts, FactFile) else ()
            after = GraphChange(added=added, labels=labels).applied(after)
        return Fitted(GraphChange(merged, gone, away, added, labels), after, comes.place)


class Fitted(NamedTuple):
    """A change in the names and units of a graph."""

    change: GraphChange
    graph: KnowledgeGraph  # with it
    place: Callable[[int], str]  # of the fact of this number, from 1, among those it adds: where it was given


class Written(NamedTuple):
    """What became of a change."""

    version: Version | None = None  # under a key that was used before, the version it made then; None: nothing changed
    graph: KnowledgeGraph | None = None  # at the new version; None where there is none
    notes: tuple[str, ...] = ()  # what whoever gave it may have overlooked


def overlooked(change: GraphChange, before: KnowledgeGraph, place: Callable[[int], str]) -> list[str]:
    """What to say of new relations whose values are written like numbers or dates and were read as names, and of new
    names that differ only in letter case: where the graph has a name, any case of it is that name.
    """
    table, vocabulary = encoded(change.added, Vocabulary((), ()))
    known = before.vocabulary
    new = [one.name for one in vocabulary.relations if one.name not in known.relation_ids]
    found = find_unmarked(vocabulary, lambda: [table]).items()
    hints = hints_at({option: [name for name in names if name in new] for option, names in found})
    said = [f"{one} to hynt data import, remove these facts here, and add that graph's folder." for one in hints]
    entities = (name for name in vocabulary.entities if name not in known.entity_ids)
    for kind, names, advice in (
        ("entities", entities, "If they mean the same, merge them: hynt update RUN --merge A B."),
        ("relations", new, "If they mean the same, remove these facts, and add them again under one name."),
    ):
        cased: dict[str, list[str]] = {}
        for name in names:
            cased.setdefault(name.lower(), []).append(name)
        alike = [same for same in cased.values() if len(same) > 1]
        if alike:
            places = _first_places(change.added, alike[0], place)
            count, example = sum(map(len, alike)), " and ".join(f"{one!r} ({places[one]})" for one in alike[0])
            said.append(f"{count:,} of the new {kind} differ only in letter case, such as {example}. {advice}")
    return said


def _first_places(added: Sequence[Fact], names: Sequence[str], place: Callable[[int], str]) -> dict[str, str]:
    """Where each of these names was first given."""
    found: dict[str, str] = {}
    for number, fact in enumerate(added, 1):
        inside = (fact.head, fact.relation, fact.tail, *chain.from_iterable(fact.qualifiers))
        for name in names:
            if name in inside and name not in found:
                found[name] = place(number)
    return found


class _Given:
    """Facts as they were given, one source after the other."""

    def __init__(self, *sources: Iterable[Any]) -> None:
        self._sources, self._origins = sources, list[tuple[Iterable[Any], int]]()

    def __iter__(self) -> Iterator[Any]:
        for source in self._sources:
            for number, fact in enumerate(source, 1):
                self._origins.append((source, number))
                yield fact

    def kept(self, facts: Sequence[Fact], are_kept: Sequence[bool]) -> Iterator[Fact]:
        """Those that are kept; from now on facts are numbered without the others."""
        self._origins = list(compress(self._origins, are_kept))
        return compress(facts, are_kept)

    def place(self, number: int) -> str:
        """Where the fact of this number, from 1, was given."""
        source, there = self._origins[number - 1]
        return source.place(there) if isinstance(source, FactFile | DecidedFacts) else f"fact {there}"

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Of a refused fact, its place in its own source is told."""
        try:
            yield
        except (UsageError, DataError) as problem:
            found = re.match(r"fact (\d+)\b", problem.where)
            if found is None:
                raise
            raise problem.at(self.place(int(found[1])) + problem.where[found.end() :]) from None


def _named(graph: KnowledgeGraph, name: str) -> str:
    return graph.vocabulary.entities[graph.names.entity(name)]
