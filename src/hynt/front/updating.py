"""A run's graph kept up to date: facts as people write them are fitted to its names, kinds and units, and written to
its journal, all or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.units.conversion import to_si
from hynt.graph.vocabulary import Relation

if TYPE_CHECKING:
    from hynt.front.run import Run

_LONGEST_SOURCE = 200

Facts: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A file of facts, or facts as tuples."""


def updated(
    run: Run,
    facts: Facts | None,
    remove: Facts | None,
    remove_entities: Sequence[str],
    merge: Sequence[tuple[str, str]],
    skip_known: bool,
    format_name: str,
    source: str,
    key: str,
) -> Run:
    """See `Run.update`."""
    from hynt.formats.names import shortened
    from hynt.graph.changes import unknown_facts
    from hynt.models.contract import Part
    from hynt.models.registry import MODELS
    from hynt.runs.journal import GraphChange, Journal

    name = run.saved.manifest["model_name"]
    if Part.OBSERVED_FACTS not in MODELS.get(name).reads:
        raise UsageError(
            f"a run of {name!r} cannot follow its graph: it knows what it was trained on and nothing else.",
            where=str(run.path),
            advice="Train again, or train a model that reads observed facts: --model hynt-inductive.",
        )
    journal = Journal(run.path)
    with journal.writer() as writer:
        versions = journal.versions()
        if key and any(one.key == key for one in versions):
            return _opened(run)
        before = graph = journal.graph(run.saved.graph())
        ids = tuple((_named(graph, one), _named(graph, other)) for one, other in merge)
        gone = tuple(_named(graph, one) for one in remove_entities)
        graph = GraphChange(ids, gone).applied(graph)
        away = tuple(fitted_facts(graph, _read(remove, format_name)))
        added = list(fitted_facts(graph, _read(facts, format_name)))
        if skip_known:
            added = unknown_facts(graph, added)
        change = GraphChange(ids, gone, away, tuple(added))
        if not change and not skip_known:
            raise UsageError("nothing was given to change.", advice="Give facts to add or remove, or entities.")
        if change:
            words = [Path(one).name for one in (facts, remove) if isinstance(one, (str, os.PathLike))]
            words += [f"{one} is {other}" for one, other in ids] + [f"without {one}" for one in gone]
            writer.append(change, before, shortened(source or ", ".join(words), _LONGEST_SOURCE), key)
    return _opened(run)


def _opened(run: Run) -> Run:
    """The run at its newest version; weights that are loaded already are not read again."""
    from hynt.front.run import Run

    made = Run(run.path, run._device, run.note, run._kept)
    made.__dict__["saved"] = run.saved
    if "loaded" in run.__dict__:
        made.__dict__["trained"] = run.loaded.home or run.loaded
    return made


def _named(graph: KnowledgeGraph, name: str) -> str:
    return graph.vocabulary.entities[graph.names.entity(name)]


def _read(given: Facts | None, format_name: str) -> Iterator[Any]:
    """Facts from a file of any format, or as they are."""
    if given is None:
        return
    if not isinstance(given, (str, os.PathLike)):
        yield from given
        return
    from hynt.formats.format import ReadOptions, ReadReport
    from hynt.formats.inference import infer_format
    from hynt.formats.parts import find_parts
    from hynt.formats.registry import get_format

    path, report = Path(given), ReadReport()
    if not path.exists():
        raise UsageError(f"there is no file {str(path)!r}.", advice="Give a file of facts, or a folder of files.")
    chosen = get_format(format_name) if format_name else infer_format(path)
    for part in find_parts(path, chosen):
        yield from chosen.read(part.path, ReadOptions(), report)
    if report.rejected:
        first = report.problems[0]
        raise DataError(first.what, where=first.where, advice=first.advice)


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
        return number_for(relation, value, name)  # "80 kg": the relation says that it is a number
    return _entity(graph, value)
