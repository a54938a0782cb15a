"""The format `rdf`: N-Triples, N-Quads, Turtle, TriG and RDF/XML, with annotations and Wikidata's statements.

A record is a candidate fact: an ordinary triple, a reified triple (one for each reifier; the plain triple beside it
is the same record), or a statement of Wikidata. Names and descriptions for people are no records.
`docs/reference/formats-tables-and-rdf.md` says more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hynt.errors import DataError, RecordProblem
from hynt.formats.format import ReadOptions, ReadReport, write_folder
from hynt.formats.rdf.blocks import LEFT_OUT, BlockReader, is_reification, reified_triple, with_reifies
from hynt.formats.rdf.documents import load_pyoxigraph
from hynt.formats.rdf.parsing import RdfTriple, TripleTerm, statements
from hynt.formats.rdf.terms import (
    ENTITY_BASE,
    LABELS,
    LIST_PARTS,
    MEANINGS,
    REIFIES,
    TYPE,
    entity_iri,
    entity_name,
    is_statement,
    is_value_node,
    literal_of,
    property_use,
    relation_iri,
    settled_name,
    trimmed_value_node,
)
from hynt.formats.values import as_description, check_name, check_writable
from hynt.graph.fact import Fact, Number, Value

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


__all__ = ["read_facts", "write_graph"]


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of an RDF file. Its labels in the wanted language go to `report.labels`, and what it says of the
    meaning of properties to `report.descriptions`.
    """
    meanings, rank_of_label = _Meanings(), dict[str, int]()
    joiner = StatementJoiner(report, options)
    blank_nodes = _BlankNodes(path.name, report)
    for statement in statements(path, options, report):
        if statement[2] in LABELS and (label := _said(statement[2], statement, options.label_language)) is not None:
            name, text = label
            rank = LABELS.index(statement[2])
            if rank < rank_of_label.get(name, 0 if name in report.labels else len(LABELS)):
                report.labels[name] = text
                if rank:
                    rank_of_label[name] = rank
                else:
                    rank_of_label.pop(name, None)
        meanings.hear(statement, options.label_language)
        if joiner.add(statement):
            for fact in joiner.release():
                yield blank_nodes.renamed(fact)
    for fact in joiner.finish():
        yield blank_nodes.renamed(fact)
    report.descriptions = meanings.found() | report.descriptions


class _Meanings:
    """What a file says of the meaning of its subjects. Dumps say it of millions of entities, often before it is known
    which subjects are properties: what is said of these is kept, and of the others only the newest.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._properties: set[str] = set()
        self._of_properties: dict[str, str] = {}
        self._of_others: dict[str, str] = {}

    def hear(self, statement: RdfTriple, language: str) -> None:
        """Take note of a statement that may say what a property means, or that something is a property."""
        _, subject, predicate, value = statement
        if predicate == TYPE and isinstance(value, str) and value.endswith("Property"):
            name = settled_name(entity_name(subject))
            self._properties.add(name)
            if name in self._of_others:
                self._of_properties.setdefault(name, self._of_others.pop(name))
        elif predicate in MEANINGS and (found := _said(predicate, statement, language)) is not None:
            name, text = found
            held = self._of_properties if name in self._properties else self._of_others
            held.setdefault(name, as_description(text))
            if len(self._of_others) > 2 * self._most:
                forget_oldest(self._of_others, self._most)

    def found(self) -> dict[str, str]:
        """What may be the meaning of a relation, by its name."""
        return self._of_others | self._of_properties


def _said(word: str, statement: RdfTriple, language: str) -> tuple[str, str] | None:
    """(name, text) where the statement has this predicate and a text in the language, or in none."""
    _, subject, predicate, value = statement
    if predicate != word or isinstance(value, str | TripleTerm):
        return None
    spoken = getattr(value, "language", None)
    if subject.startswith("_:") or not (spoken is None or spoken.split("-")[0] == language):
        return None
    return settled_name(entity_name(subject)), str(getattr(value, "value", ""))


class _BlankNodes:
    """Gives blank nodes names that hold: their own are local to a file, and random where the file gives none."""

    def __init__(self, file_name: str, report: ReadReport) -> None:
        self._file_name = file_name
        self._report = report
        self._names: dict[str, str] = {}

    def renamed(self, fact: Fact) -> Fact:
        """The fact, with its blank nodes numbered in the order they are met in facts."""
        head, _, tail, qualifiers = fact
        if not (_may_change(head) or _may_change(tail) or any(_may_change(value) for _, value in qualifiers)):
            return fact
        pairs = tuple(pair._replace(value=self._settled(pair.value)) for pair in qualifiers)
        if head.startswith("_:") or (isinstance(tail, str) and tail.startswith("_:")):
            what = (
                f"{head} {fact.relation} {tail if isinstance(tail, str) else tail.literal} has a node without a name."
            )
            self._report.note("blank-node", what, "Kept under a number: it means nothing outside this file.")
        return fact._replace(head=self._name(head), tail=self._settled(tail), qualifiers=pairs)

    def _settled(self, value: str | Number) -> str | Number:
        return self._name(value) if isinstance(value, str) else value

    def _name(self, node: str) -> str:
        if not node.startswith("_:"):
            return settled_name(node)
        return self._names.setdefault(node, f"_:{self._file_name}:{len(self._names) + 1}")


def _may_change(value: str | Number) -> bool:
    return isinstance(value, str) and value.startswith(("_:", ENTITY_BASE))


# Writing a graph as RDF 1.2: a triple for each fact, and a reifier that carries its qualifiers.
#
# N-Triples, so that the file can be read, cut and joined line by line; every RDF 1.2 tool reads it. Numbers with a unit
# have the datatype `urn:hynt:unit:…`, dates one of XML Schema's, so that reading the file gives the same facts again.


def write_graph(graph: KnowledgeGraph, path: Path) -> list[Path]:
    """Write a folder with one N-Triples file per split, and what is known of entities and relations beside them."""
    pyoxigraph = load_pyoxigraph()

    def write_split(split: str, file: Path, where: str) -> None:
        triples = fact_triples(partial(graph.facts, split), where)
        pyoxigraph.serialize(triples, str(file), pyoxigraph.RdfFormat.N_TRIPLES)

    return write_folder(graph, path, ".nt", write_split)


def fact_triples(facts: Callable[[], Iterable[Fact]], where: str) -> Iterator[Any]:
    """The triples that say these facts, as pyoxigraph has them; `facts` is called twice."""
    # RDF cannot say a triple twice: a plain fact beside a qualified one of the same triple needs its own reifier.
    qualified = {fact[:3] for fact in facts() if fact.qualifiers}
    writer = _TripleWriter(load_pyoxigraph())
    for fact in facts():
        check_writable(fact, where=where)
        yield from writer.triples(fact, reified=fact[:3] in qualified)


class _TripleWriter:
    def __init__(self, pyoxigraph: Any) -> None:
        self._node, self._blank = pyoxigraph.NamedNode, pyoxigraph.BlankNode
        self._literal, self._triple = pyoxigraph.Literal, pyoxigraph.Triple
        self._reifies = self._node(REIFIES)
        self._count = 0

    def triples(self, fact: Fact, *, reified: bool) -> Iterator[Any]:
        triple = self._triple(
            self._node(entity_iri(fact.head)), self._node(relation_iri(fact.relation)), self._term(fact.tail)
        )
        yield triple
        if reified:
            self._count += 1
            reifier = self._blank(f"f{self._count}")
            yield self._triple(reifier, self._reifies, triple)
            for relation, value in fact.qualifiers:
                yield self._triple(reifier, self._node(relation_iri(relation)), self._term(value))

    def _term(self, value: Value) -> Any:
        if isinstance(value, Number):
            text, datatype = literal_of(value)
            return self._literal(text, datatype=self._node(datatype))
        return self._node(entity_iri(value))


# From triples to facts: what belongs to one fact stands in several triples, and has to be brought together.
#
# Triples are held by subject. Small files are held whole, so the order of their triples does not matter. A large file
# is worked off in a window: once more than `WINDOW` triples are held, the oldest subjects are settled and let go. What
# cannot be settled yet (a Wikidata statement whose value node has not been met) stays, up to `PENDING_LIMIT` triples.

WINDOW = 200_000
"""Triples held before the oldest subjects are settled."""
PENDING_LIMIT = 2_000_000
"""Triples, value nodes or links that may wait for their other half; about 1 GB."""

OpenSubject: TypeAlias = "dict[tuple[str, Any], int]"
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
        self._blocks: dict[str, OpenSubject] = {}
        self.held = 0  # triples
        self._annotated: dict[TripleTerm, None] = {}  # triples that a reifier speaks about, oldest first
        self._reifiers: dict[str, None] = {}
        self._reader = BlockReader(report, keep_text=keep_text, annotated=self._annotated, reifiers=self._reifiers)

    def add(self, statement: RdfTriple) -> bool:
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
        elif is_reification(predicate) and (triple := reified_triple(block)) is not None:
            self.held -= len(block)
            block = self._blocks[subject] = with_reifies(block, triple)
            self.held += len(block)
            self._annotated[triple] = None
            self._reifiers[subject] = None
        elif predicate in LIST_PARTS:
            self._reader.lists[subject] = None
        elif isinstance(value, str) and is_statement(value) and property_use(predicate) is not None:
            self._reader.links[value] = (subject, predicate)
        return self.held > self._release_at

    def finish(self) -> Iterator[Fact]:
        """The end of the file: settle everything that is left."""
        for subject in [subject for subject, block in self._blocks.items() if is_value_node(subject, block)]:
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
            if is_value_node(subject, self._blocks[subject]):
                self._keep_value_node(subject)
            elif self._reader.is_complete(subject, self._blocks[subject]):
                yield from self._settle(subject)
        forget_oldest(self._annotated, self._window)
        forget_oldest(self._reifiers, self._window)
        forget_oldest(self._reader.lists, self._window)
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
                    report.leave_out(found.reason, found.what, found.advice)
                else:
                    report.read += 1
                    report.reject(found)
                continue
            report.read += 1
            report.kept += 1
            yield fact


def forget_oldest(known: dict[Key, Any], most: int) -> None:
    for key in list(islice(known, max(len(known) - most, 0))):
        del known[key]
