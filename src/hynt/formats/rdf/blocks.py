"""What the triples of one subject say: facts of an ordinary subject, of a reifier, or of one of Wikidata's
statements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from hynt.errors import RecordProblem
from hynt.formats.rdf import terms
from hynt.formats.rdf.parsing import TripleTerm
from hynt.formats.rdf.terms import (
    ABOUT_PAGES,
    EMPTY_LIST,
    RDF,
    REIFIES,
    STATEMENT,
    TEXT_FOR_PEOPLE,
    TEXTS,
    TYPE,
    WIKIBASE,
    ReadValue,
    entity_name,
    is_statement,
    is_unknown_value,
    is_wikibase_entity,
    literal_values,
    node_value,
    property_use,
    relation_name,
)
from hynt.formats.values import check_name
from hynt.graph.fact import Fact, Qualifier

if TYPE_CHECKING:
    from hynt.formats.format import ReadReport

SubjectTriples: TypeAlias = Mapping[tuple[str, Any], int]
_NOT_KEPT = frozenset(
    {"text-literal", "web-address", "unsupported-datatype", "unknown-value", "nested-annotation", "rdf-list"}
)
"""Reasons for which a qualifier is left out and noted, while its fact stays."""
LEFT_OUT = frozenset(
    {"text-literal", "web-address", "unsupported-datatype", "unknown-value", "no-value", "deprecated-rank", "rdf-list"}
)
"""Reasons that are no fault of the file: what RDF can say and a fact cannot hold, or what Wikidata itself withdrew."""
_NO_FACT = Fact("", "", "")
_REIFICATION = (RDF + "subject", RDF + "predicate", RDF + "object")
_REIFIED_CLASS = RDF + "Statement"


def reified_triple(block: SubjectTriples) -> TripleTerm | None:
    """The triple that a block speaks about in the words of RDF 1.0, once it has all three of them."""
    said = [[value for predicate, value in block if predicate == part] for part in _REIFICATION]
    if any(len(values) != 1 for values in said):
        return None
    (subject,), (relation,), (value,) = said
    return TripleTerm(subject, relation, value) if isinstance(subject, str) and isinstance(relation, str) else None


def with_reifies(block: SubjectTriples, triple: TripleTerm) -> dict[tuple[str, Any], int]:
    """The same block with the triple after `rdf:reifies`, as RDF 1.2 has it, and without what RDF 1.0 needed."""
    line = min(number for (predicate, _), number in block.items() if predicate in _REIFICATION)
    others = {
        (predicate, value): number
        for (predicate, value), number in block.items()
        if predicate not in _REIFICATION and (predicate, value) != (TYPE, _REIFIED_CLASS)
    }
    return {(REIFIES, triple): line, **others}


def is_reification(predicate: str) -> bool:
    """Whether a predicate names the subject, the predicate or the object of a triple that is spoken about."""
    return predicate in _REIFICATION


class Record(NamedTuple):
    """A candidate fact: the fact, or why it is none."""

    line: int
    fact: Fact = _NO_FACT
    problem: RecordProblem | None = None


class BlockReader:
    """Reads blocks; knows what other blocks said about links, value nodes and annotations."""

    def __init__(
        self, report: ReadReport, *, keep_text: bool, annotated: Collection[TripleTerm], reifiers: Collection[str]
    ) -> None:
        self._report = report
        self._keep_text = keep_text
        self._annotated = annotated
        self._reifiers = reifiers
        self.links: dict[str, tuple[str, str]] = {}  # statement node → item, predicate
        self.values: dict[str, dict[str, Any]] = {}  # value node → what it says
        self.lists: dict[str, None] = {}  # nodes of lists

    def is_complete(self, subject: str, block: SubjectTriples) -> bool:
        """Whether a block can be read now, or waits for others."""
        if not is_statement(subject):
            return True
        has_main = any(_use(key[0])[0].startswith("statement") or _is_no_value(key) for key in block)
        nodes = (value for predicate, value in block if _use(predicate)[0] in ("statement/value", "qualifier/value"))
        return subject in self.links and has_main and all(node in self.values for node in nodes)

    def records(self, subject: str, block: SubjectTriples) -> Iterator[Record]:
        """The candidate facts of a block."""
        if is_statement(subject):
            yield from self._statement(subject, block)
        elif any(predicate == REIFIES and isinstance(value, TripleTerm) for predicate, value in block):
            yield from self._reifier(block)
        elif terms.is_bookkeeping(subject, block.keys()):
            for line in block.values():
                self._report.line = line
                self._report.leave_out("wikidata-bookkeeping", f"{subject} is about the dump itself.")
        else:
            yield from self._ordinary(subject, block)

    def _ordinary(self, subject: str, block: SubjectTriples) -> Iterator[Record]:
        head = entity_name(subject)
        stated = {relation_name(predicate) for predicate, value in block if is_statement(value)}
        for (predicate, value), line in block.items():
            role, relation = _role(predicate)
            if predicate in ABOUT_PAGES and is_wikibase_entity(subject):
                self._report.line = line
                self._report.leave_out("wikidata-bookkeeping", f"{predicate} is about a page.")
                continue
            if role == "skip" or (self._annotated and TripleTerm(subject, predicate, value) in self._annotated):
                continue  # in the second case the reifier is the record
            if role == "direct" and relation in stated:
                continue  # the short form of a statement
            if value.__class__ is not str:
                if subject in self.lists:
                    yield Record(line, problem=_list())
                elif role != "text" or isinstance(value, TripleTerm) or value.datatype.value not in TEXTS:
                    yield from self._facts(line, subject, predicate, value, ())
            elif STATEMENT in value:
                continue  # the statement is the record
            elif role == "direct":
                try:
                    yield from (Record(line, Fact(head, relation, read)) for _, read in self._statement_values(value))
                except RecordProblem as problem:
                    yield Record(line, problem=problem)
            elif relation == TYPE and value.startswith(WIKIBASE):
                continue
            elif value in self._reifiers:
                yield Record(line, problem=_nested())
            elif subject in self.lists or value in self.lists or value == EMPTY_LIST:
                yield Record(line, problem=_list())
            else:
                yield Record(line, Fact(head, relation, entity_name(value)))

    def _reifier(self, block: SubjectTriples) -> Iterator[Record]:
        targets = [(value, line) for (predicate, value), line in block.items() if predicate == REIFIES]
        try:
            qualifiers = tuple(self._qualifiers(block))
        except RecordProblem as problem:
            yield from (Record(line, problem=problem) for _, line in targets)
            return
        for target, line in targets:
            if not isinstance(target, TripleTerm) or target.subject in self._reifiers:
                yield Record(line, problem=_nested())
            else:
                yield from self._facts(line, target.subject, target.predicate, target.object, qualifiers)

    def _qualifiers(self, block: SubjectTriples) -> Iterator[Qualifier]:
        for (predicate, value), line in block.items():
            is_class = (predicate, value) == (TYPE, _REIFIED_CLASS)
            if not (predicate == REIFIES or is_class or self._is_text_for_people(predicate, value)):
                yield from self._qualifier(line, relation_name(predicate), value)

    def _qualifier(
        self, line: int, relation: str, value: Any, values: Callable[[Any], list[ReadValue]] | None = None
    ) -> Iterator[Qualifier]:
        check_name(relation, "qualifier relation")
        try:
            for suffix, read in (values or self._values)(value):
                yield Qualifier(relation + suffix, read)
        except RecordProblem as problem:
            if problem.reason not in _NOT_KEPT:
                raise
            self._report.line = line
            self._report.leave_out(f"qualifier-{problem.reason}", f"qualifier {relation}: {problem.what}")

    def _facts(
        self, line: int, subject: str, predicate: str, value: Any, qualifiers: tuple[Qualifier, ...]
    ) -> Iterator[Record]:
        try:
            for suffix, read in self._values(value):
                yield Record(line, Fact(entity_name(subject), relation_name(predicate) + suffix, read, qualifiers))
        except RecordProblem as problem:
            yield Record(line, problem=problem)

    def _values(self, value: Any) -> list[ReadValue]:
        if isinstance(value, str):
            if value in self._reifiers or is_statement(value):
                raise _nested()
            if value in self.lists or value == EMPTY_LIST:
                raise _list()
            return node_value(value)
        if isinstance(value, TripleTerm):
            raise _nested()
        return literal_values(value, self._keep_text)

    def _statement(self, subject: str, block: SubjectTriples) -> Iterator[Record]:
        line = next(iter(block.values()))
        item, link = self.links.pop(subject, ("", ""))
        try:
            yield from self._linked_statement(line, item, link, block)
        except RecordProblem as problem:
            yield Record(line, problem=problem)

    def _linked_statement(self, line: int, item: str, link: str, block: SubjectTriples) -> Iterator[Record]:
        if not item:
            raise RecordProblem(
                "statement-without-item", "no item links to this statement.", "Get the whole dump, or the truthy one."
            )
        if (terms.RANK, terms.DEPRECATED) in block:
            raise RecordProblem(
                "deprecated-rank", "the statement has Wikidata's deprecated rank.", "Nothing: it is known to be wrong."
            )
        main = [(role, value) for predicate, value in block if (role := _use(predicate)[0]).startswith("statement")]
        nodes = [value for role, value in main if role == "statement/value"]
        simple = [value for role, value in main if role == "statement"]
        if not main:
            if any(_is_no_value(key) for key in block):
                raise RecordProblem(
                    "no-value", "the statement says that there is no value.", "Nothing: a fact needs a tail."
                )
            raise RecordProblem("statement-without-value", "the statement has no value.", "Get the dump again.")
        values = (
            terms.node_values(self._known(nodes[0])) if nodes else self._statement_values(simple[0] if simple else "_:")
        )
        qualifiers = tuple(self._statement_qualifiers(block))
        for suffix, value in values:
            yield Record(line, Fact(entity_name(item), relation_name(link) + suffix, value, qualifiers))

    def _statement_qualifiers(self, block: SubjectTriples) -> Iterator[Qualifier]:
        uses = {predicate: _use(predicate) for predicate, _ in block}
        with_nodes = {name for role, name in uses.values() if role == "qualifier/value"}
        for (predicate, value), line in block.items():
            role, name = uses[predicate]
            if role == "qualifier/value":
                for suffix, read in terms.node_values(self._known(value)):
                    yield Qualifier(name + suffix, read)
            elif role == "qualifier" and (isinstance(value, str) or name not in with_nodes):
                yield from self._qualifier(line, name, value, self._statement_values)

    def _statement_values(self, value: Any) -> list[ReadValue]:
        """The values of a statement. An address is one of a picture or a web page: what the JSON dump calls text."""
        if isinstance(value, str):
            if is_unknown_value(value):
                raise RecordProblem(
                    "unknown-value", "the value exists but nobody knows it.", "Nothing: a fact needs a tail."
                )
            if not (self._keep_text or is_wikibase_entity(value) or is_statement(value)):
                raise RecordProblem(
                    "web-address",
                    f"{value[:80]} is the address of a page or a picture.",
                    "To make an entity of each text and address, give --string-literals keep.",
                )
        return self._values(value)

    def _known(self, node: str) -> terms.ValueNode:
        found = self.values.get(node)
        if found is None:
            raise RecordProblem(
                "value-node-missing",
                f"the file does not hold the value node {node}.",
                "Its unit is unknown: get the whole dump.",
            )
        return found

    def _is_text_for_people(self, predicate: str, value: Any) -> bool:
        return (
            predicate in TEXT_FOR_PEOPLE and not isinstance(value, str | TripleTerm) and value.datatype.value in TEXTS
        )


@lru_cache(maxsize=65_536)
def _role(predicate: str) -> tuple[Literal["fact", "text", "direct", "skip"], str]:
    """What a predicate is for at an ordinary subject, and the relation it names."""
    role, _ = _use(predicate)
    if predicate.startswith(WIKIBASE) or role == "direct-normalized":
        return "skip", predicate  # Wikibase's own counts, and direct triples repeated with full IRIs
    if predicate in TEXT_FOR_PEOPLE:
        return "text", relation_name(predicate)
    return "direct" if role == "direct" else "fact", relation_name(predicate)


def _use(predicate: str) -> tuple[str, str]:
    """What a Wikibase uses a predicate for, and the property; "" twice for any other predicate."""
    used = property_use(predicate)
    return ("", "") if used is None else (used.role, used.property)


def _is_no_value(key: tuple[str, Any]) -> bool:
    return key[0] == TYPE and isinstance(key[1], str) and _use(key[1])[0] == "novalue"


def _list() -> RecordProblem:
    return RecordProblem(
        "rdf-list", "a list has an order, which a fact cannot hold.", "Say each member in a triple of its own."
    )


def _nested() -> RecordProblem:
    return RecordProblem(
        "nested-annotation",
        "a statement about a statement about a statement cannot be a fact.",
        "Say it about the innermost triple.",
    )
