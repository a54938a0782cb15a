"""Writing a graph as RDF 1.2: a triple for each fact, and a reifier that carries its qualifiers.

N-Triples, so that the file can be read, cut and joined line by line; every RDF 1.2 tool reads it. Numbers with a unit
have the datatype `urn:hynt:unit:…`, dates one of XML Schema's, so that reading the file gives the same facts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.formats.names import check_writable
from hynt.formats.rdf.names import REIFIES, entity_iri, relation_iri
from hynt.formats.rdf.parsing import load_pyoxigraph
from hynt.formats.rdf.values import literal_of
from hynt.formats.writing import new_folder
from hynt.graph.fact import Fact, Number, Value

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


def write_graph(graph: KnowledgeGraph, path: Path) -> list[Path]:
    """Write a folder with one N-Triples file a split, and what is known of entities and relations beside them."""
    from hynt.formats.declarations import write_declarations

    pyoxigraph = load_pyoxigraph()
    names = []
    with new_folder(path) as folder:
        for split in graph.splits:
            name = f"{split}.nt"
            triples = fact_triples(partial(graph.facts, split), str(path / name))
            pyoxigraph.serialize(triples, str(folder / name), pyoxigraph.RdfFormat.N_TRIPLES)
            names.append(name)
        names += [made.name for made in write_declarations(graph, folder)]
    return [path / name for name in names]


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
