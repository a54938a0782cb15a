"""RDF written and read again: the same facts."""

from __future__ import annotations

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.formats.importing import read_graph
from hynt.formats.rdf.format import fact_triples, write_graph
from hynt.graph.fact import Fact, Number, Qualifier
from tests.formats.graphs import facts, read_file

E = "http://example.org/"
PREFIXES = "@prefix : <http://example.org/> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"


def comparable(fact):
    """What RDF can hold of a fact: a set of qualifiers, numbers by value and unit."""

    def plain(value):
        return (value.value, value.unit) if isinstance(value, Number) else value

    pairs = frozenset((relation, plain(value)) for relation, value in fact.qualifiers)
    return fact.head, fact.relation, plain(fact.tail), pairs


@pytest.mark.parametrize("suffix", ["nt", "ttl"])
@given(written=st.lists(facts, max_size=6))
def test_what_is_written_is_read_again(tmp_path_factory, suffix, written):
    path = tmp_path_factory.mktemp("rdf") / f"facts.{suffix}"
    format_ = pyoxigraph.RdfFormat.from_extension(suffix)
    pyoxigraph.serialize(fact_triples(lambda: iter(written), "here"), str(path), format_)
    found, report = read_file(path, "rdf")
    assert {comparable(fact) for fact in found} == {comparable(fact) for fact in written}
    assert not report.noted


def test_a_plain_fact_beside_a_qualified_one_survives(tmp_path):
    plain, qualified = Fact("a", "r", "b"), Fact("a", "r", "b", (Qualifier("q", "c"),))
    path = tmp_path / "facts.nt"
    pyoxigraph.serialize(fact_triples(lambda: iter([plain, qualified]), "here"), str(path))
    assert sorted(read_file(path, "rdf")[0]) == [plain, qualified]


def test_a_graph_is_exported_and_imported_again(tmp_path):
    source = tmp_path / "source.ttl"
    source.write_text(
        PREFIXES + ':a :height "170"^^<urn:hynt:unit:cm> {| :on "2020-02"^^xsd:gYearMonth |} . :a :knows :b, :c .'
    )
    graph = read_graph(source, "rdf")
    files = write_graph(graph, tmp_path / "out")
    assert {file.name for file in files} == {f"{split}.nt" for split in graph.splits} | {
        "entities.jsonl",
        "relations.jsonl",
    }
    again = read_graph(tmp_path / "out", "rdf")
    assert {fact.key() for fact in again.facts()} == {fact.key() for fact in graph.facts()}
    assert {relation.name: relation.unit for relation in again.relations} == {
        E + "height": "m",
        E + "on": "date",
        E + "knows": "",
    }


def test_nothing_is_left_behind_when_a_name_cannot_be_written(tmp_path):
    class Graph:
        splits = ("train",)

        def facts(self, split):
            return iter([Fact("a", "r", "b"), Fact("a\x00", "r", "b")])

    with pytest.raises(DataError, match="the head holds the control character U\\+0000"):
        write_graph(Graph(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["_:", "_:b0", "_:facts.nt:1", "urn:hynt:entity:_%3A", "urn:hynt:entity:x", "urn:hynt:entity:_%253A"]
)
def test_names_that_look_like_blank_nodes_stay_names(tmp_path, name):
    written = [Fact(name, "r", "b"), Fact("a", "r", name), Fact("a", "r", "c", (Qualifier("q", name),))]
    path = tmp_path / "facts.nt"
    pyoxigraph.serialize(fact_triples(lambda: iter(written), "here"), str(path))
    assert sorted(read_file(path, "rdf")[0]) == sorted(written)
