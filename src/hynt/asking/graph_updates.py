"""Changes to a run's graph as people write them: fitted to its names, kinds and units, and written to its journal, all
or nothing. No torch here: a service writes from the process that has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.values import shortened
from hynt.graph.changes import unknown_facts
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.units.conversion import to_si
from hynt.graph.vocabulary import Relation
from hynt.runs.journal import GraphChange, Journal, Version

_LONGEST_SOURCE = 200


@dataclass(frozen=True)
class GivenChange:
    """What somebody wants changed, in their own words."""

    facts: Iterable[Any] = ()  # to add
    remove: Iterable[Any] = ()
    remove_entities: Sequence[str] = ()
    merge: Sequence[tuple[str, str]] = ()
    skip_known: bool = False  # whether facts that are there already are passed over
    source: str = ""  # where it comes from, for the log
    key: str = ""  # asking again with the same one changes nothing

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
            change = self._fitted(before)
            if not change:
                if self.skip_known:
                    return None, None
                raise UsageError("nothing was given to change.", advice="Give facts to add or remove, or entities.")
            words = [f"{one} is {other}" for one, other in change.merged]
            words += [f"without {one}" for one in change.without_entities]
            told = shortened(self.source or ", ".join(words), _LONGEST_SOURCE)
            return writer.append(change, before, told, self.key), change.applied(before)

    def _fitted(self, graph: KnowledgeGraph) -> GraphChange:
        merged = tuple((_named(graph, one), _named(graph, other)) for one, other in self.merge)
        gone = tuple(_named(graph, one) for one in self.remove_entities)
        graph = GraphChange(merged, gone).applied(graph)
        away, added = tuple(fitted_facts(graph, self.remove)), list(fitted_facts(graph, self.facts))
        return GraphChange(merged, gone, away, tuple(unknown_facts(graph, added) if self.skip_known else added))


def _named(graph: KnowledgeGraph, name: str) -> str:
    return graph.vocabulary.entities[graph.names.entity(name)]


def fitted_facts(graph: KnowledgeGraph, given: Iterable[Fact | Any]) -> Iterator[Fact]:
    """Facts with the ids that the graph has for their names, and numbers in its units. A name that the graph does not
    have is a new entity or relation; one that several entities carry is refused, and so is a value of the wrong kind.
    """
    from hynt.formats.from_python import as_fact

    for number, one in enumerate(given, 1):
        place = f"fact {number}"
        try:
            head, relation, tail, qualifiers = one if isinstance(one, Fact) else as_fact(one)
            named = _relation(graph, relation)
            yield Fact(
                _entity(graph, head),
                relation if named is None else named.name,
                _value(graph, relation, named, tail),
                tuple(
                    Qualifier(pair if known is None else known.name, _value(graph, pair, known, value))
                    for pair, value in qualifiers
                    for known in [_relation(graph, pair)]
                ),
            )
        except (UsageError, DataError, RecordProblem) as problem:
            inner = getattr(problem, "where", "")
            raise DataError.of(problem, f"{place}, {inner}" if inner else place) from None


def _entity(graph: KnowledgeGraph, name: str) -> str:
    found = graph.names.entities_called(name)
    return graph.vocabulary.entities[graph.names.entity(name)] if found else name


def _relation(graph: KnowledgeGraph, name: str) -> Relation | None:
    return graph.relations[graph.names.relation(name)] if graph.names.relations_called(name) else None


def _value(graph: KnowledgeGraph, name: str, relation: Relation | None, value: Value) -> Value:
    from hynt.asking.written import number_for

    if isinstance(value, Number):
        if relation is None:
            if not value.unit or value.unit == DATE_UNIT:
                return value
            converted, unit = to_si(value.value, value.unit)
            return Number(converted, repr(converted), unit)
        if relation.kind == "entity":
            raise DataError(
                f"the relation {name!r} carries entities, and {value.literal} is a number.",
                advice="Give an entity, or call the relation of numbers by another name.",
            )
        return number_for(relation, value, name)
    if relation is not None and relation.kind == "number":
        return number_for(relation, value, name)  # "80 kg": the relation says that it is a number
    return _entity(graph, value)
