"""Facts as people write them, fitted to the names, kinds and units of a graph that they are to join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from hynt.asking.written import number_for, number_with_unit, says_unit
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError, RecordProblem, UsageError
from hynt.files import read_json
from hynt.formats.from_python import as_fact
from hynt.formats.values import check_name
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import EntityPosition
from hynt.graph.sentences import BLANK
from hynt.graph.units.conversion import display_of, to_si
from hynt.graph.vocabulary import Relation, Vocabulary
from hynt.runs import SCALING
from hynt.runs.place import SavedRun


def fitted_facts(graph: KnowledgeGraph, given: Iterable[Fact | Any], *, as_kept: bool = False) -> Iterator[Fact]:
    """Facts with the ids that the graph has for their names, and numbers in its units. A name that the graph does not
    have is a new entity or relation, without spaces at its ends; values of a new relation are numbers where they are
    written with a unit. A name that several entities carry is settled by where the relation has them, else refused, and
    so is a value of the wrong kind. A number without a unit is refused where people read
    another one than the graph keeps, unless facts are told `as_kept`, in the graph's own. A question is no new fact.
    """
    knows_blank = BLANK in graph.vocabulary.entity_ids or BLANK in graph.vocabulary.relation_ids
    for number, one in enumerate(given, 1):
        place = f"fact {number}"
        try:
            head, relation, tail, qualifiers = one if isinstance(one, Fact) else as_fact(one)
            if BLANK in (head, relation, tail, *chain.from_iterable(qualifiers)) and not (as_kept or knows_blank):
                raise RecordProblem("blank", "this is a question: it has ? in it.", "Say what it is, or ask it.")
            named = _relation(graph, relation)
            yield Fact(
                _entity(graph, head, "head", named),
                _new_name(relation, "relation") if named is None else named.name,
                _value(graph, relation, named, tail, "tail", as_kept),
                tuple(
                    Qualifier(
                        _new_name(pair, "qualifier relation") if known is None else known.name,
                        _value(graph, pair, known, value, "value", as_kept),
                    )
                    for pair, value in qualifiers
                    for known in [_relation(graph, pair)]
                ),
            )
        except (UsageError, DataError, RecordProblem) as problem:
            inner = getattr(problem, "where", "")
            raise DataError.of(problem, f"{place}, {inner}" if inner else place) from None


def refuse_unreadable(facts: Sequence[Fact], run: SavedRun) -> None:
    """Refuses numbers that the run's scales cannot take: with one of them in the graph it could answer nothing."""
    path = run.checked(SCALING)
    scales = read_json(path)
    vocabulary = Vocabulary((), tuple(Relation(name, "number") for name in scales))
    held = [
        (place, vocabulary.relation_ids[relation], value.value)
        for place, fact in enumerate(facts, 1)
        for relation, value in ((fact.relation, fact.tail), *fact.qualifiers)
        if isinstance(value, Number) and relation in scales
    ]
    place, relation, value = (np.array(column) for column in zip(*held, strict=True)) if held else (np.zeros(0),) * 3
    scaling = NumberScaling.from_mapping(scales, vocabulary, str(path))
    for wrong in scaling.unreadable(relation.astype(np.int64), value)[:1]:
        index = int(relation[wrong])
        why = "reads their logarithms" if scaling.is_log[index] else "learned from numbers too far from it"
        raise DataError(
            f"the run cannot take {value[wrong]:g} for {vocabulary.relations[index].name!r}: it {why}.",
            where=f"fact {place[wrong]}",
            advice="Correct the number, or leave the fact out.",
        )


def _new_name(name: str, what: str) -> str:
    return check_name(name.strip(), what)


def _entity(graph: KnowledgeGraph, name: str, position: EntityPosition, relation: Relation | None) -> str:
    if not graph.names.has_entity(name):
        return _new_name(name, position)
    where = (position, graph.vocabulary.relation_ids[relation.name]) if relation else ()
    return graph.vocabulary.entities[graph.names.entity(name, *where)]


def _relation(graph: KnowledgeGraph, name: str) -> Relation | None:
    return graph.relations[graph.names.relation(name)] if graph.names.relations_called(name) else None


def _value(
    graph: KnowledgeGraph, name: str, relation: Relation | None, value: Value, position: EntityPosition, as_kept: bool
) -> Value:
    if relation is None and isinstance(value, str) and not graph.names.has_entity(value):
        value = number_with_unit(value) or value
    if isinstance(value, Number):
        if relation is None:
            if not value.unit or value.unit == DATE_UNIT:
                return value
            converted, unit = to_si(value.value, value.unit)
            return Number(converted, value.literal, unit)
        if relation.kind == "entity":
            raise DataError(
                f"the relation {name!r} carries entities, and {value.literal} is a number.",
                advice="Give an entity, or call the relation of numbers by another name.",
            )
    elif relation is None or relation.kind == "entity":
        return _entity(graph, value, position, relation)
    found = number_for(relation, value, name)  # "80 kg": the relation says that it is a number
    shown = display_of(relation.unit)
    if shown and not (as_kept or says_unit(value)):  # once added, nothing would show which one was meant
        raise UsageError(
            f"{relation.label or relation.name!r} is shown in {shown} and kept in {relation.unit}, and "
            f"{found.literal} says neither.",
            where=name,
            advice=f"Write it with its unit: {found.literal} {shown}, or {found.literal} {relation.unit}.",
        )
    return found
