"""Changes to a run's graph as people write them: fitted to its names, kinds and units, and written to its journal, all
or nothing. No torch here: a service writes from the process that has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError, RecordProblem, UsageError
from hynt.files import read_json
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.values import check_name, shortened
from hynt.graph.changes import encoded, unknown_facts
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import EntityPosition
from hynt.graph.sentences import BLANK
from hynt.graph.units.conversion import display_of, to_si
from hynt.graph.vocabulary import Entity, Relation, Vocabulary
from hynt.runs import SCALING
from hynt.runs.journal import GraphChange, Journal, Version
from hynt.runs.place import SavedRun

if TYPE_CHECKING:
    from hynt.formats.declarations import Declarations

_LONGEST_SOURCE = 200
_SHOWN = 3
"""Names that are shown of many."""


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
        with _placed(self.remove):
            away = tuple(fitted_facts(graph, self.remove, as_kept=True))
            after = GraphChange(removed=away).applied(graph)
        with _placed(self.facts):
            if isinstance(self.facts, FactFile):
                self.facts.check_kinds(after)
            added = tuple(fitted_facts(graph, self.facts))
            _refuse_unreadable(added, SavedRun.open(run))
            added = tuple(unknown_facts(after, added)) if self.skip_known else added
            labels = self.facts.labels(added, after) if isinstance(self.facts, FactFile) else ()
            after = GraphChange(added=added, labels=labels).applied(after)
        return GraphChange(merged, gone, away, added, labels), after


class FactFile:
    """The facts of a file or folder of any format that can be imported, in its order, each once; and what it says of
    their names. Where reading needs more than the format's name, a graph is imported first: its folder is read too.
    """

    def __init__(self, path: Path, format_name: str = "") -> None:
        self.path, self._format = path, format_name
        self._report, self._places = ReadReport(), list[str]()

    def __iter__(self) -> Iterator[Fact]:
        from hynt.formats.inference import infer_format
        from hynt.formats.registry import get_format
        from hynt.formats.source_files import source_files

        report = self._report
        self._check_there()
        units = {one.name: one.unit for one in self._declared.relations if one.unit}
        with self._importing():
            chosen = get_format(self._format) if self._format else infer_format(self.path)
            for part in source_files(self.path, chosen):
                for fact in chosen.read(part.path, ReadOptions(), report):
                    self._places.append(report.where)
                    yield _with_units(fact, units) if units else fact
        if report.rejected:
            first = report.problems[0]
            raise DataError(first.what, where=first.where, advice=first.advice)

    def _check_there(self) -> None:
        if not self.path.exists():
            raise UsageError(
                f"there is no file {str(self.path)!r}.", advice="Give a file of facts, or a folder of files."
            )

    @cached_property
    def _declared(self) -> Declarations:
        from hynt.formats.declarations import read_declarations

        return read_declarations(self.path)

    def check_kinds(self, graph: KnowledgeGraph) -> None:
        """Refuses a source that says of a relation of the graph that it carries something else."""
        self._check_there()
        for one in self._declared.relations:
            number = graph.vocabulary.relation_ids.get(one.name)
            if number is None or one.kind in (None, graph.relations[number].kind):
                continue
            here, there = ("numbers", "entities") if one.kind == "entity" else ("entities", "numbers")
            raise DataError(
                f"{one.name!r} carries {there} there, and {here} in the graph.",
                where=str(self.path),
                advice="Give one of the two another name.",
            )

    def named_otherwise(self, graph: KnowledgeGraph) -> list[str]:
        """What to say of names and types of what the graph has, which keeps its own."""
        ids = graph.vocabulary.entity_ids
        mine = ((one, graph.entities[ids[one.name]]) for one in self._declared.entities if one.name in ids)
        other = [
            one.name
            for one, own in mine
            if one.type not in ("", own.type) or one.label not in ("", own.label or own.name)
        ]
        if not other:
            return []
        shown = ", ".join(map(repr, other[:_SHOWN])) + (f" and {len(other) - _SHOWN} more" if other[_SHOWN:] else "")
        return [f"the graph keeps its own names and types; given otherwise: {shown}."]

    @contextmanager
    def _importing(self) -> Iterator[None]:
        """Options that an advice names are those of an import."""
        try:
            yield
        except (UsageError, DataError) as problem:
            if "--" in problem.advice.replace("--format", ""):
                problem.advice += (
                    " These are options of hynt data import: import it so, and give the graph's folder here."
                )
            raise

    def place(self, number: int) -> str:
        """Where the fact of this number, from 1, stands."""
        return self._places[number - 1]

    def labels(self, facts: Iterable[Fact], graph: KnowledgeGraph) -> tuple[Entity, ...]:
        """What the file says of the names of these facts that the graph lacks."""
        declared = self._declared
        known = {name: Entity(name, label) for name, label in self._report.labels.items()}
        known |= {one.name: Entity(one.name, one.label) for one in declared.relations if one.label}
        known |= {one.name: one for one in declared.entities if one.label or one.type}
        known = {name.strip(): one._replace(name=name.strip()) for name, one in known.items()}
        names = dict.fromkeys(name for fact in facts for name in _names(fact))
        there = graph.vocabulary.entity_ids, graph.vocabulary.relation_ids
        return tuple(known[name] for name in names if name in known and not any(name in ids for ids in there))


def overlooked(change: GraphChange, before: KnowledgeGraph) -> list[str]:
    """What to say of new relations whose values are written like numbers or dates and were read as names."""
    from hynt.formats.outcome import find_unmarked, hints_at

    table, vocabulary = encoded(change.added, Vocabulary((), ()))
    known = before.vocabulary.relation_ids
    found = find_unmarked(vocabulary, lambda: [table]).items()
    hints = hints_at({option: [name for name in names if name not in known] for option, names in found})
    return [f"{one} to hynt data import, remove these facts here, and add that graph's folder." for one in hints]


def _with_units(fact: Fact, units: Mapping[str, str]) -> Fact:
    """The fact with the units that its source declares for relations, where numbers say none."""

    def value(relation: str, one: Value) -> Value:
        if not isinstance(one, Number) or one.unit or relation not in units:
            return one
        return one._replace(unit=units[relation])

    pairs = tuple(Qualifier(name, value(name, one)) for name, one in fact.qualifiers)
    return fact._replace(tail=value(fact.relation, fact.tail), qualifiers=pairs)


def _names(fact: Fact) -> Iterator[str]:
    yield fact.head
    yield fact.relation
    for relation, value in (("", fact.tail), *fact.qualifiers):
        yield from (name for name in (relation, value) if isinstance(name, str))


@contextmanager
def _placed(given: Iterable[Any]) -> Iterator[None]:
    """Of a refused fact of a file, its place in the file is told."""
    try:
        yield
    except (UsageError, DataError) as problem:
        found = re.match(r"fact (\d+)\b", problem.where)
        if found is None or not isinstance(given, FactFile):
            raise
        raise problem.at(given.place(int(found[1])) + problem.where[found.end() :]) from None


def _named(graph: KnowledgeGraph, name: str) -> str:
    return graph.vocabulary.entities[graph.names.entity(name)]


def fitted_facts(graph: KnowledgeGraph, given: Iterable[Fact | Any], *, as_kept: bool = False) -> Iterator[Fact]:
    """Facts with the ids that the graph has for their names, and numbers in its units. A name that the graph does not
    have is a new entity or relation, without spaces at its ends; values of a new relation are numbers where they are
    written with a unit. A name that several entities carry is settled by where the relation has them, else refused, and
    so is a value of the wrong kind. A number without a unit is refused where people read
    another one than the graph keeps, unless facts are told `as_kept`, in the graph's own. A question is no new fact.
    """
    from hynt.formats.from_python import as_fact

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


def _refuse_unreadable(facts: Sequence[Fact], run: SavedRun) -> None:
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
    from hynt.asking.written import number_for, number_with_unit, says_unit

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
