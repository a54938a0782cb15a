"""Changes to a run's graph as people give them, written to its journal, all or nothing. No torch here: a service writes
from the process that has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hynt.asking.fitting import fitted_facts, refuse_unreadable
from hynt.errors import DataError, UsageError
from hynt.formats.corrections import Corrections, DecidedFacts
from hynt.formats.fact_file import FactFile
from hynt.formats.outcome import find_unmarked, hints_at
from hynt.graph.changes import encoded, unknown_facts
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

    def written(
        self, run: Path, graph: Callable[[Journal, int], KnowledgeGraph]
    ) -> tuple[Version | None, KnowledgeGraph | None]:
        """Writes one more version: its record, and the graph then. `graph` gives the graph at a version, the newest.
        What was written before under the same key is told again, without a graph; None where nothing is to change.
        """
        journal = Journal(run)
        with journal.writer() as writer:
            versions = journal.versions()
            again = next((one for one in versions if self.key and one.key == self.key), None)
            if again is not None:
                return again, None
            before = graph(journal, len(versions))
            change, after = self.fitted(before, run)
            if not change:
                if self.skip_known:
                    return None, None
                raise UsageError("nothing was given to change.", advice="Give facts to add or remove, or entities.")
            words = [*self.files, *(f"{one} is {other}" for one, other in change.merged)]
            words += [f"without {one}" for one in change.without_entities]
            told = shortened(self.source or ", ".join(words), _LONGEST_SOURCE)
            return writer.append(change, before, told, self.key, after), after

    def fitted(self, graph: KnowledgeGraph, run: Path) -> tuple[GraphChange, KnowledgeGraph]:
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
            added = tuple(unknown_facts(after, added)) if self.skip_known else added
            labels = self.facts.labels(added, after) if isinstance(self.facts, FactFile) else ()
            after = GraphChange(added=added, labels=labels).applied(after)
        return GraphChange(merged, gone, away, added, labels), after


def overlooked(change: GraphChange, before: KnowledgeGraph) -> list[str]:
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
            count, example = sum(map(len, alike)), " and ".join(map(repr, alike[0]))
            said.append(f"{count:,} of the new {kind} differ only in letter case, such as {example}. {advice}")
    return said


class _Given:
    """Facts as they were given, one source after the other."""

    def __init__(self, *sources: Iterable[Any]) -> None:
        self._sources, self._origins = sources, list[tuple[Iterable[Any], int]]()

    def __iter__(self) -> Iterator[Any]:
        for source in self._sources:
            for number, fact in enumerate(source, 1):
                self._origins.append((source, number))
                yield fact

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Of a refused fact, its place in its own source is told."""
        try:
            yield
        except (UsageError, DataError) as problem:
            found = re.match(r"fact (\d+)\b", problem.where)
            if found is None:
                raise
            source, number = self._origins[int(found[1]) - 1]
            place = source.place(number) if isinstance(source, FactFile | DecidedFacts) else f"fact {number}"
            raise problem.at(place + problem.where[found.end() :]) from None


def _named(graph: KnowledgeGraph, name: str) -> str:
    return graph.vocabulary.entities[graph.names.entity(name)]
