"""Facts as people write them, fitted to a graph that is there: its names, its kinds, its units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.units.conversion import to_si
from hynt.graph.vocabulary import Relation


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
    from hynt.asking.written_numbers import number_for

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
        raise DataError(
            f"the relation {name!r} carries numbers, and {value!r} is an entity.",
            advice="Give a number, or call the relation of entities by another name.",
        )
    return _entity(graph, value)
