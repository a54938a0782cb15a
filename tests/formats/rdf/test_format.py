"""RDF: plain triples, annotations, values, names, bad input, and the way back."""

from __future__ import annotations

import gzip
import sys

import pyoxigraph
import pytest
from hypothesis import given

from hynt.errors import DataError, UsageError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.importing import read_graph
from hynt.formats.rdf.format import _Meanings, read_facts
from hynt.formats.rdf.terms import entity_iri, entity_name, relation_iri, relation_name
from hynt.graph.fact import Fact, Number, Qualifier
from tests.formats.graphs import mutated, names, read_file

PREFIXES = """@prefix : <http://example.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
E = "http://example.org/"
NUMBER_TYPE = "<http://www.w3.org/2001/XMLSchema#integer>"


def read(text, folder, name="facts.ttl", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(path, "rdf", **options)


def turtle(text, folder, **options):
    return read(PREFIXES + text, folder, **options)


def test_triples_with_entities_numbers_and_dates_become_facts(tmp_path):
    found, report = turtle(
        ':harvard a :School ; :students 1990 ; :area 5.5 ; :score 1.5e3 ; :founded "1817-09-01"^^xsd:date ;\n'
        ':year "1817"^^xsd:gYear ; :month "-0043-03"^^xsd:gYearMonth ; :opened "1817-09-01T08:00:00Z"^^xsd:dateTime ;\n'
        ':rank " 7 "^^xsd:unsignedByte .',
        tmp_path,
    )
    head = E + "harvard"
    assert found == [
        Fact(head, "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", E + "School"),
        Fact(head, E + "students", Number(1990.0, "1990")),
        Fact(head, E + "area", Number(5.5, "5.5")),
        Fact(head, E + "score", Number(1500.0, "1.5e3")),
        Fact(head, E + "founded", Number(1817 + 243 / 365, "1817-09-01", "date")),
        Fact(head, E + "year", Number(1817.0, "1817", "date")),
        Fact(head, E + "month", Number(-43 + 59 / 365, "-0043-03", "date")),
        Fact(head, E + "opened", Number(1817 + (243 + 8 / 24) / 365, "1817-09-01T08:00:00Z", "date")),
        Fact(head, E + "rank", Number(7.0, "7")),
    ]
    assert report.to_mapping() == {"read": 9, "kept": 9, "rejected": {}, "noted": {}}


ANNOTATED = Fact(E + "s", E + "p", E + "o", (Qualifier(E + "in", Number(2020.0, "2020")), Qualifier(E + "by", E + "x")))


@pytest.mark.parametrize(
    "text",
    [
        ":s :p :o {| :in 2020 ; :by :x |} .",
        ":s :p :o ~ :r {| :in 2020 |} . :r :by :x .",
        "<< :s :p :o >> :in 2020 ; :by :x .",
        ":s :p :o . << :s :p :o >> :in 2020 ; :by :x .",
        "<< :s :p :o ~ :r >> :in 2020 . :s :p :o . :r :by :x .",
        "_:r :in 2020 . _:r rdf:reifies <<( :s :p :o )>> ; :by :x . :s :p :o .",
        ":r a rdf:Statement ; rdf:subject :s ; rdf:predicate :p ; rdf:object :o ; :in 2020 ; :by :x . :s :p :o .",
        ":s :p :o . [] :in 2020 ; rdf:object :o ; :by :x ; rdf:predicate :p ; rdf:subject :s .",
    ],
    ids=[
        "annotation",
        "named reifier",
        "rdf-star",
        "asserted later",
        "named rdf-star",
        "properties first",
        "RDF 1.0",
        "RDF 1.0, without a class",
    ],
)
def test_annotations_become_qualifiers_of_one_fact(tmp_path, text):
    found, report = turtle(text, tmp_path)
    assert [fact.key() for fact in found] == [ANNOTATED.key()]
    assert report.read == 1


def test_each_annotation_of_a_triple_is_a_fact_and_an_empty_one_has_no_qualifiers(tmp_path):
    found, _ = turtle(":s :p :o {| :in 1 |} {| :in 2 |} ~ :empty .", tmp_path)
    qualifiers = [fact.qualifiers for fact in found]
    assert qualifiers == [(Qualifier(E + "in", Number(1.0, "1")),), (Qualifier(E + "in", Number(2.0, "2")),), ()]


def test_rdf_star_lines_about_one_triple_are_one_fact(tmp_path):
    """YAGO's annotations: in RDF-star a quoted triple is the same wherever it is quoted."""
    quoted = f"<< <{E}s> <{E}p> <{E}o> >>"
    text = f'{quoted} <{E}in> "2020"^^{NUMBER_TYPE} .\n<{E}s> <{E}p> <{E}o> .\n{quoted} <{E}by> <{E}x> .\n'
    found, report = read(text, tmp_path, "facts.ntx")
    assert [fact.key() for fact in found] == [ANNOTATED.key()]
    assert report.read == 1


def test_trig_nquads_and_rdf_xml_are_read_and_named_graphs_are_noted(tmp_path):
    expected = [Fact(E + "s", E + "p", E + "o")]
    found, report = read(PREFIXES + ":g { :s :p :o . }", tmp_path, "facts.trig")
    assert (found, dict(report.noted)) == (expected, {"named-graph": 1})
    found, _ = read(f"<{E}s> <{E}p> <{E}o> <{E}g> .\n", tmp_path, "facts.nq")
    assert found == expected
    xml = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://example.org/">'
        f'<rdf:Description rdf:about="{E}s"><p rdf:resource="{E}o"/></rdf:Description></rdf:RDF>'
    )
    found, _ = read(xml, tmp_path, "facts.rdf")
    assert found == expected


def test_compressed_files_are_read_by_the_name_before_the_suffix(tmp_path):
    found, _ = read(gzip.compress(f"<{E}s> <{E}p> <{E}o> .\n".encode()), tmp_path, "facts.nt.gz")
    assert found == [Fact(E + "s", E + "p", E + "o")]


def test_texts_are_left_out_and_counted_or_kept_as_entities(tmp_path):
    text = ':s :motto "Veritas", "Wahrheit"@de ; :open true ; rdfs:label "S" . :s :p :o {| :note "x" ; :in 1 |} .'
    found, report = turtle(text, tmp_path)
    assert found == [Fact(E + "s", E + "p", E + "o", (Qualifier(E + "in", Number(1.0, "1")),))]
    assert dict(report.noted) == {"text-literal": 2, "unsupported-datatype": 1, "qualifier-text-literal": 1}
    found, report = turtle(text, tmp_path, string_literals="keep")
    assert Fact(E + "s", E + "motto", '"Veritas"') in found
    assert Fact(E + "s", E + "motto", '"Wahrheit"@de') in found
    assert Qualifier(E + "note", '"x"') in found[-1].qualifiers
    _, report = turtle(text, tmp_path, strict=True)
    assert dict(report.rejected) == {"text-literal": 2, "unsupported-datatype": 1}


def test_labels_are_read_in_a_language(tmp_path):
    path = tmp_path / "labels.ttl"
    path.write_text(PREFIXES + ':s rdfs:label "School"@en-GB, "Schule"@de . :t rdfs:label "T" . :s :p :t .')
    for language, school in (("en", "School"), ("de", "Schule")):
        report = ReadReport()
        list(read_facts(path, ReadOptions(label_language=language), report))
        assert report.labels == {E + "s": school, E + "t": "T"}


def test_blank_nodes_have_the_same_names_on_every_reading(tmp_path):
    text = ":s :part [ :size 5 ] . _:x :p :s ."
    first, _ = turtle(text, tmp_path)
    second, _ = turtle(text, tmp_path)
    assert first == second
    assert {fact.head for fact in first} == {E + "s", "_:facts.ttl:1", "_:facts.ttl:2"}


@pytest.mark.parametrize(
    "text, reason, what",
    [
        (':s :p "abc"^^xsd:integer .', "bad-number", "'abc' is not an integer, though its datatype says 'integer'."),
        (':s :p "1.5"^^xsd:int .', "bad-number", "'1.5' is not an integer, though its datatype says 'int'."),
        (':s :p "1e999"^^xsd:double .', "bad-number", "'1e999' is too large for a double-precision number."),
        (':s :p "NaN"^^xsd:double .', "bad-number", "'NaN' is not a finite number."),
        (':s :p "INF"^^xsd:float .', "bad-number", "'INF' is not a finite number."),
        (':s :p "１２"^^xsd:decimal .', "bad-number", "'１２' is written with characters that are not ASCII."),
        (
            ':s :p "2020-02-30"^^xsd:date .',
            "bad-date",
            "impossible date: year 2020, month 2, day 30 is not in the Gregorian calendar.",
        ),
        (
            ":a :b <<( :s :p :o )>> .",
            "nested-annotation",
            "a statement about a statement about a statement cannot be a fact.",
        ),
    ],
)
def test_bad_values_are_rejected_with_their_line(tmp_path, text, reason, what):
    found, report = turtle(text, tmp_path)
    assert found == []
    assert [problem[:3] for problem in report.problems] == [(f"{tmp_path}/facts.ttl:5", reason, what)]


def test_a_bad_number_in_a_qualifier_rejects_its_fact(tmp_path):
    found, report = turtle(':s :p :o {| :in "x"^^xsd:int |} .', tmp_path)
    assert (found, dict(report.rejected)) == ([], {"bad-number": 1})


def test_an_annotation_of_an_annotation_is_rejected_and_the_inner_one_kept(tmp_path):
    found, report = turtle(":s :p :o {| :in 1 {| :sure 2 |} |} .", tmp_path)
    assert found == [Fact(E + "s", E + "p", E + "o", (Qualifier(E + "in", Number(1.0, "1")),))]
    assert dict(report.rejected) == {"nested-annotation": 1}


def test_a_broken_line_costs_one_record_and_the_next_lines_are_read(tmp_path):
    good = f"<{E}s> <{E}p> <{E}o> ."
    lines = [good, "# a comment", "", f'<{E}s> <{E}p> "no end .', f"<{E}a> <{E}p> <{E}o> .", "<< x >> .", f"<{E}b>"]
    found, report = read("\n".join(lines), tmp_path, "facts.nt")
    assert [fact.head for fact in found] == [E + "s", E + "a"]
    assert [problem.where.rpartition(":")[2] for problem in report.problems] == ["4", "6", "7"]
    assert dict(report.rejected) == {"syntax": 3}
    assert report.problems[0].what == "Unexpected end of file."


def test_a_syntax_error_in_turtle_is_an_error_with_its_line(tmp_path):
    with pytest.raises(DataError) as problem:
        turtle(":s :p :o .\n:s :p ;; ] .", tmp_path)
    assert str(problem.value).startswith(f"{tmp_path}/facts.ttl:6: the RDF is broken here: ")
    assert "write the file again as N-Triples" in str(problem.value)


@pytest.mark.parametrize("name", ["facts.nt", "facts.ttl"])
def test_a_quote_that_never_closes_is_refused_in_bounded_memory(tmp_path, name):
    with pytest.raises(DataError) as problem:
        read(f'<{E}s> <{E}p> "'.encode() + b"x" * 20_000_000, tmp_path, name)
    expected = {
        "facts.nt": f"{tmp_path}/facts.nt:1: a line is longer than 16,777,216 bytes.",
        "facts.ttl": f"{tmp_path}/facts.ttl:1: a single text or name is longer than 16 MiB.",
    }
    assert str(problem.value).startswith(expected[name])


@pytest.mark.parametrize("data", [b"", b"\n# nothing\n"])
def test_a_file_without_triples_gives_no_facts(tmp_path, data):
    for name in ("facts.nt", "facts.ttl"):
        assert read(data, tmp_path, name)[0] == []


def test_wrong_bytes_are_located(tmp_path):
    text = f'<{E}s> <{E}p> "5"^^{NUMBER_TYPE} .\n'.encode()
    found, report = read(b"\xef\xbb\xbf" + text + b"\xff\n<\0>\n" + text.replace(b"5", b"6"), tmp_path, "facts.nt")
    assert len(found) == 2
    assert dict(report.rejected) == {"not-utf8": 1, "nul-byte": 1}
    with pytest.raises(DataError, match=r"facts\.ttl:2: the RDF is broken here: Invalid UTF-8"):
        read(text + b'<a:s> <a:p> "\xff" .', tmp_path, "facts.ttl")


def test_a_name_without_a_known_suffix_is_refused(tmp_path):
    with pytest.raises(DataError, match="does not say which RDF it holds"):
        read("", tmp_path, "facts.txt")


def test_a_missing_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(UsageError) as problem:
        read("", tmp_path, "facts.nt")
    assert str(problem.value).endswith("which is not installed. Install it with: pip install 'hynt[rdf]'.")


@given(names)
def test_names_survive_being_iris(name):
    assert entity_name(entity_iri(name)) == name
    assert relation_name(relation_iri(name)) == name
    pyoxigraph.NamedNode(entity_iri(name))
    pyoxigraph.NamedNode(relation_iri(name))


@pytest.mark.parametrize(
    "iri, name",
    [
        ("http://www.wikidata.org/entity/Q42", "Q42"),
        ("http://www.wikidata.org/entity/L7-F2", "L7-F2"),
        ("http://www.wikidata.org/entity/statement/Q42-1", "http://www.wikidata.org/entity/statement/Q42-1"),
        ("http://example.org/Q42", "http://example.org/Q42"),
        ("urn:hynt:entity:Caf%C3%A9%20x", "Café x"),
    ],
)
def test_only_wikidata_and_our_own_iris_are_shortened(iri, name):
    assert entity_name(iri) == name
    assert entity_name(entity_iri(name)) == name


def test_iris_that_mean_something_to_the_reader_are_not_written_as_relations():
    for iri in ("http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies"):
        assert relation_iri(iri).startswith("urn:hynt:relation:")
    assert relation_iri(E + "p") == E + "p"


LINES = [
    f"<{E}s> <{E}p> <{E}o> .",
    f'<{E}s> <{E}p> "12"^^{NUMBER_TYPE} .',
    f'<{E}s> <{E}p> "2020-01-02"^^<http://www.w3.org/2001/XMLSchema#date> .',
    f'_:b <{E}p> "text\\n\\u00e9"@en-GB .',
    f"_:r <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <{E}s> <{E}p> <{E}o> )>> .",
    f"<< <{E}s> <{E}p> <{E}o> >> <{E}q> <{E}v> .",
    "<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/P1> "
    "<http://www.wikidata.org/entity/statement/Q1-1> .",
]


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_mutated_lines_give_facts_or_located_problems(tmp_path, count):
    lines = list(mutated(LINES, "<>\"'\\^@_:. #{}|()%\x00\x07\r\ufeff１é\u2028abcQP019-+eE/", count, seed=7))
    found, report = read("\n".join(lines), tmp_path, "facts.nt")  # read_file holds read = kept + rejected
    assert found
    assert report.rejected["syntax"] > count / 20
    assert all(problem.where.startswith(f"{tmp_path}/facts.nt:") for problem in report.problems)
    for line in lines[:200]:  # one line alone gives no traceback either, as Turtle too
        for name in ("one.nt", "one.ttl"):
            try:
                read(line, tmp_path, name)
            except DataError as problem:
                assert f"{tmp_path}/one.ttl:" in str(problem)


def test_labels_become_the_names_of_a_graph(tmp_path):
    path = tmp_path / "named.ttl"
    path.write_text(
        PREFIXES + ':s rdfs:label "School"@en . :p rdfs:label "part of" . :x rdfs:label "absent" . :s :p :t .'
    )
    graph = read_graph(path, "rdf")
    assert graph.entity_labels == ("School", "t")
    assert graph.relation_labels == ("part of",)


def test_the_label_that_says_most_counts_wherever_it_stands(tmp_path):
    path = tmp_path / "named.ttl"
    path.write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .\n"
        f'{PREFIXES} :s foaf:name "F" ; skos:prefLabel "S"@en, "T"@de ; :p :t . :t foaf:name "B" . '
        ':t skos:prefLabel "A" ; rdfs:label "R"@en . :t <https://schema.org/name> "N" . :u :p :s .'
    )
    graph = read_graph(path, "rdf")
    assert dict(zip([one.name for one in graph.entities], graph.entity_labels, strict=True)) == {
        E + "s": "S",
        E + "t": "R",
        E + "u": "u",
    }


def test_what_nothing_names_goes_by_the_end_of_its_iri(tmp_path):
    path = tmp_path / "plain.ttl"
    path.write_text(
        f"{PREFIXES} :New_York :isPartOf <http://example.org/in#USA> . :New_York :isPartOf <http://other.org/USA> . "
        ':New_York a :City . :York rdfs:label "Eboracum" ; :type :City ; :isPartOf <http://x.org/12345> ; '
        ":hasURL <http://x.org/a%0Ab> , <http://x.org/> , <urn:x:y> , <http://x.org/Eboracum> ."
    )
    graph = read_graph(path, "rdf")
    named = {one.name: one.label for one in graph.entities if one.label}
    assert named == {E + "New_York": "New York", E + "York": "Eboracum", E + "City": "City"}
    assert {one.name: one.label for one in graph.relations if one.label} == {
        E + "isPartOf": "is part of",
        E + "hasURL": "hasURL",
    }
    assert graph["New York"].texts()[0].startswith("New York · is part of · ")


def test_comments_on_properties_say_what_relations_mean(tmp_path):
    path = tmp_path / "named.ttl"
    path.write_text(
        PREFIXES + ':s rdfs:comment "A school." ; :p :t ; :q 5 . :p rdfs:comment "Teil"@de , "lies\\nin"@en . '
        ':q <http://schema.org/description> "how many" . :absent rdfs:comment "not used" .'
    )
    graph = read_graph(path, "rdf")
    assert {one.name: one.description for one in graph.relations} == {E + "p": "lies in", E + "q": "how many"}


def test_of_very_many_comments_those_on_properties_are_kept():
    meanings = _Meanings(most=10)
    comment, typed = "http://www.w3.org/2000/01/rdf-schema#comment", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    for index in range(100):
        meanings.hear((1, f"{E}{index}", comment, pyoxigraph.Literal(f"comment {index}")), "en")
        if index in (3, 60):
            meanings.hear((1, f"{E}{index}", typed, "http://www.w3.org/2002/07/owl#ObjectProperty"), "en")
    found = meanings.found()
    assert found[f"{E}3"] == "comment 3"
    assert {f"{E}60", f"{E}99"} <= found.keys()
    assert f"{E}4" not in found
    assert len(found) <= 22


def test_lists_are_left_out_and_nodes_without_names_counted(tmp_path):
    found, report = turtle(":a :parts ( :b 3 ) ; :none () ; :near [ :city :c ] .", tmp_path)
    assert [(fact.relation, fact.tail) for fact in found] == [(E + "near", "_:facts.ttl:1"), (E + "city", E + "c")]
    assert dict(report.noted) == {"rdf-list": 6, "blank-node": 2}
    assert report.left_out == {"rdf-list"}


def test_a_base_makes_relative_addresses_whole(tmp_path):
    path = tmp_path / "facts.ttl"
    path.write_text("<a> <knows> <b> .")
    with pytest.raises(DataError, match=r"Give what relative addresses stand under, with --base"):
        read_file(path, "rdf")
    assert read_file(path, "rdf", base="http://x.org/")[0] == [
        Fact("http://x.org/a", "http://x.org/knows", "http://x.org/b")
    ]
    with pytest.raises(UsageError, match="'here' is not a base"):
        read_file(path, "rdf", base="here")


def test_the_graph_of_a_triple_is_its_qualifier_on_request(tmp_path):
    path = tmp_path / "facts.trig"
    text = (
        ':g { :a :knows :b . :a <http://www.w3.org/2000/01/rdf-schema#label> "A" } :h { :a :knows :b } :c :knows :d .'
    )
    path.write_text("@prefix : <http://example.org/> .\n" + text)
    found, report = read_file(path, "rdf", named_graphs="qualifier")
    assert set(found) == {
        Fact(E + "a", E + "knows", E + "b", (Qualifier("graph", E + "g"),)),
        Fact(E + "a", E + "knows", E + "b", (Qualifier("graph", E + "h"),)),
        Fact(E + "c", E + "knows", E + "d"),
    }
    assert not report.noted
    assert report.labels == {E + "a": "A"}
    assert len(read_file(path, "rdf")[0]) == 2
