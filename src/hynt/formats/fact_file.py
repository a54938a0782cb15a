"""A file of facts that join a graph which is there already: what it says of facts and names, where each fact stands,
and what it says otherwise than the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from hynt.errors import DataError, UsageError
from hynt.formats.declarations import Declarations, read_declarations
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.inference import infer_format
from hynt.formats.registry import get_format
from hynt.formats.source_files import source_files
from hynt.graph.fact import Fact, Number, Qualifier, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Entity

_SHOWN = 3
"""Names that are shown of many."""


class FactFile:
    """The facts of a file or folder of any format that can be imported, in its order, each once; and what it says of
    their names. Where reading needs more than the format's name, a graph is imported first: its folder is read too.
    """

    def __init__(self, path: Path, format_name: str = "") -> None:
        self.path, self._format = path, format_name
        self._report, self._places = ReadReport(), list[str]()

    def __iter__(self) -> Iterator[Fact]:
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
