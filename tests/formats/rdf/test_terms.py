"""Wikidata's statements in RDF, and how triples that belong together are joined in bounded memory."""

from __future__ import annotations

import random

import pyoxigraph
import pytest

from hynt.errors import DataError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.rdf.format import StatementJoiner
from hynt.formats.rdf.parsing import statements
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.units.conversion import to_si
from tests.formats.graphs import read_file

PREFIXES = """@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wds: <http://www.wikidata.org/entity/statement/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix wdtn: <http://www.wikidata.org/prop/direct-normalized/> .
@prefix wdno: <http://www.wikidata.org/prop/novalue/> .
@prefix wdv: <http://www.wikidata.org/value/> .
@prefix wdref: <http://www.wikidata.org/reference/> .
@prefix p: <http://www.wikidata.org/prop/> .
@prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix psv: <http://www.wikidata.org/prop/statement/value/> .
@prefix psn: <http://www.wikidata.org/prop/statement/value-normalized/> .
@prefix pq: <http://www.wikidata.org/prop/qualifier/> .
@prefix pqv: <http://www.wikidata.org/prop/qualifier/value/> .
@prefix wikibase: <http://wikiba.se/ontology#> .
@prefix geo: <http://www.opengis.net/ont/geosparql#> .
@prefix schema: <http://schema.org/> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
"""

PERSON = """
<https://www.wikidata.org/wiki/Special:EntityData/Q901> schema:about wd:Q901 ; schema:version 7 .
wd:Q901 a wikibase:Item ; rdfs:label "Ada Example"@en ; schema:description "a person"@en ; wikibase:statements 6 ;
    wdt:P31 wd:Q5 ; wdt:P39 wd:Q30 ; wdt:P2048 "+187"^^xsd:decimal ; wdtn:P213 <http://isni.example/1> .
<https://en.wikipedia.org/wiki/Ada_Example> a schema:Article ; schema:about wd:Q901 ; schema:inLanguage "en" .
wd:Q901 p:P39 wds:Q901-office , wds:Q901-wrong .
wds:Q901-office a wikibase:Statement ; wikibase:rank wikibase:PreferredRank ; ps:P39 wd:Q30 ;
    pq:P580 "2009-01-20T00:00:00Z"^^xsd:dateTime ; pqv:P580 wdv:start ; pq:P1365 wd:Q902 ; pq:P1366 _:somebody ;
    pq:P1545 "44" ; prov:wasDerivedFrom wdref:1 .
wdref:1 schema:url <http://example.org/> .
wds:Q901-wrong wikibase:rank wikibase:DeprecatedRank ; ps:P39 wd:Q31 .
wd:Q901 p:P2048 wds:Q901-height ; p:P569 wds:Q901-birth ; p:P625 wds:Q901-place ; p:P26 wds:Q901-none ;
    p:P40 wds:Q901-some ; p:P1477 wds:Q901-text .
wds:Q901-height ps:P2048 "+187"^^xsd:decimal ; psv:P2048 wdv:height ; psn:P2048 wdv:metre .
wds:Q901-birth ps:P569 "1961-01-01T00:00:00Z"^^xsd:dateTime ; psv:P569 wdv:birth .
wds:Q901-place ps:P625 "Point(4.5 52.25)"^^geo:wktLiteral ; psv:P625 wdv:place .
wds:Q901-none a wdno:P26 .
wds:Q901-some ps:P40 _:child .
wds:Q901-text ps:P1477 "Ada E. Example"@en .
wdv:start wikibase:timeValue "2009-01-20T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 11 .
wdv:birth wikibase:timeValue "1961-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 9 .
wdv:height wikibase:quantityAmount "+187"^^xsd:decimal ; wikibase:quantityUnit wd:Q174728 .
wdv:metre wikibase:quantityAmount "+1.87"^^xsd:decimal ; wikibase:quantityUnit wd:Q11573 .
wdv:place wikibase:geoLatitude "52.25"^^xsd:double ; wikibase:geoLongitude "4.5"^^xsd:double .
_:never owl:onProperty wdt:P31 ; owl:someValuesFrom owl:Thing .
"""

EXPECTED = {
    Fact("Q901", "P31", "Q5"),
    Fact(
        "Q901",
        "P39",
        "Q30",
        (Qualifier("P580", Number(2009 + 19 / 365, "2009-01-20T00:00:00Z", "date")), Qualifier("P1365", "Q902")),
    ),
    Fact("Q901", "P2048", Number(187.0, "+187", "Q174728")),
    Fact("Q901", "P569", Number(1961.0, "1961", "date")),
    Fact("Q901", "P625-latitude", Number(52.25, "52.25", "degree")),
    Fact("Q901", "P625-longitude", Number(4.5, "4.5", "degree")),
}


def read(text, folder, name="facts.ttl", **options):
    path = folder / name
    path.write_text(PREFIXES + text if name.endswith("ttl") else text)
    return read_file(path, "rdf", **options)


def test_statements_with_qualifiers_units_precisions_and_places(tmp_path):
    found, report = read(PERSON, tmp_path)
    assert {fact.key() for fact in found} == {fact.key() for fact in EXPECTED}
    assert {fact.tail for fact in found} == {fact.tail for fact in EXPECTED}  # with literals and units
    assert report.to_mapping() == {
        "read": 6,
        "kept": 6,
        "rejected": {},
        "noted": {
            "deprecated-rank": 1,
            "no-value": 1,
            "unknown-value": 1,
            "text-literal": 1,
            "qualifier-unknown-value": 1,
            "qualifier-text-literal": 1,
            "wikidata-bookkeeping": 8,
        },
    }


def test_wikidata_units_are_in_the_unit_table():
    value, unit = to_si(187.0, "Q174728")
    assert (pytest.approx(value), unit) == (1.87, "m")


def test_the_order_of_triples_does_not_matter_in_a_file_that_fits_the_window(tmp_path):
    quads = list(pyoxigraph.parse(PREFIXES + PERSON, format=pyoxigraph.RdfFormat.TURTLE))
    for seed in range(5):
        random.Random(seed).shuffle(quads)
        lines = "".join(f"{quad.subject} {quad.predicate} {quad.object} .\n" for quad in quads)
        found, _ = read(lines, tmp_path, "facts.nt")
        assert {fact.key() for fact in found} == {fact.key() for fact in EXPECTED}


def test_truthy_triples_alone_are_facts(tmp_path):
    found, report = read(
        'wd:Q901 wdt:P31 wd:Q5 ; wdt:P625 "<http://www.wikidata.org/entity/Q405> Point(4.5 52.25)"^^geo:wktLiteral ;'
        " wdt:P40 _:child .",
        tmp_path,
    )
    assert [(fact.relation, fact.tail) for fact in found] == [
        ("P31", "Q5"),
        ("P625-latitude", Number(52.25, "52.25", "degree")),
        ("P625-longitude", Number(4.5, "4.5", "degree")),
    ]
    assert dict(report.noted) == {"unknown-value": 1}


@pytest.mark.parametrize(
    "text, reason",
    [
        ("wds:Q1-1 ps:P31 wd:Q5 .", "statement-without-item"),
        ("wd:Q1 p:P31 wds:Q1-1 .", "statement-missing"),
        ("wd:Q1 p:P31 wds:Q1-1 . wds:Q1-1 pq:P1 wd:Q5 .", "statement-without-value"),
        ("wd:Q1 p:P1 wds:Q1-1 . wds:Q1-1 ps:P1 5 ; psv:P1 wdv:gone .", "value-node-missing"),
        (
            "wd:Q1 p:P1 wds:Q1-1 . wds:Q1-1 ps:P1 5 ; psv:P1 wdv:v . wdv:v wikibase:quantityUnit wd:Q2 .",
            "value-node-empty",
        ),
        ('wd:Q1 p:P1 wds:Q1-1 . wds:Q1-1 psv:P1 wdv:v . wdv:v wikibase:quantityAmount "many" .', "bad-number"),
        ('wd:Q1 p:P1 wds:Q1-1 . wds:Q1-1 psv:P1 wdv:v . wdv:v wikibase:timeValue "soon" .', "bad-date"),
    ],
)
def test_an_incomplete_statement_is_rejected_never_half_kept(tmp_path, text, reason):
    found, report = read(text, tmp_path)
    assert (found, dict(report.rejected)) == ([], {reason: 1})


def many_items(count):
    """Items as Wikidata's dumps write them: an item, then its statements, then their value nodes."""
    for item in range(count):
        yield (
            f"wd:Q{item + 1} wdt:P31 wd:Q5 ; p:P31 wds:Q{item}-a ; p:P1 wds:Q{item}-b .\n"
            f"wds:Q{item}-a ps:P31 wd:Q5 ; pq:P2 {item} .\n"
            f"wds:Q{item}-b ps:P1 {item} ; psv:P1 wdv:v{item} .\n"
            f"wdv:v{item} wikibase:quantityAmount {item} ; wikibase:quantityUnit wd:Q11573 .\n"
        )


def joined(path, **bounds):
    report = ReadReport()
    joiner = StatementJoiner(report, ReadOptions(), **bounds)
    facts, most = [], 0
    for statement in statements(path, ReadOptions(), report):
        if joiner.add(statement):
            most = max(most, joiner.held)
            facts += joiner.release()
    facts += joiner.finish()
    return facts, report, most


def test_a_large_file_is_worked_off_in_a_window(tmp_path):
    path = tmp_path / "facts.ttl"
    path.write_text(PREFIXES + "".join(many_items(500)))
    facts, report, most = joined(path, window=100)
    assert most <= 101
    assert report.read == report.kept == len(facts) == 1000
    assert sorted(fact.head for fact in facts) == sorted(f"Q{item + 1}" for item in range(500) for _ in range(2))
    assert Fact("Q1", "P1", Number(0.0, "0", "Q11573")) in facts


def test_too_much_that_waits_for_its_other_half_is_an_error(tmp_path):
    path = tmp_path / "facts.ttl"
    path.write_text(PREFIXES + "".join(f"wds:Q{item}-a ps:P31 wd:Q5 .\n" for item in range(500)))
    with pytest.raises(DataError) as problem:
        joined(path, window=100, limit=300)
    assert "more than 300 triples wait for another part of their statement." in str(problem.value)
    assert "Sort the file" in str(problem.value)


def test_annotations_are_joined_within_the_window(tmp_path):
    path = tmp_path / "facts.ttl"
    lines = [f"wd:Q{item} wdt:P31 wd:Q5 {{| pq:P580 {item} |}} .\n" for item in range(1, 400)]
    path.write_text(PREFIXES + "".join(lines))
    facts, report, _ = joined(path, window=60)
    assert report.read == len(facts) == 399
    assert all(len(fact.qualifiers) == 1 for fact in facts)


# The same decisions as those of `hynt create wikidata`, for every Wikibase.

DUMP = """
wikibase:Dump a schema:Dataset ; schema:dateModified "2020-01-01T00:00:00Z"^^xsd:dateTime .
<https://WIKI/wiki/Special:EntityData/Q42> a schema:Dataset ; schema:about wd:Q42 ; schema:version 5 .
<https://en.wikipedia.org/wiki/D> a schema:Article ; schema:about wd:Q42 ; schema:isPartOf <https://en.wikipedia.org/> .
<https://en.wikipedia.org/> wikibase:wikiGroup "wikipedia" .
wd:Q42 a wikibase:Item ; rdfs:label "D"@en ; schema:version 5 ; wdt:P31 wd:Q5 ; p:P31 wds:Q42-1 ; p:P18 wds:Q42-2 ;
    p:P856 wds:Q42-3 ; p:P2048 wds:Q42-4 ; wdt:P18 <http://commons.wikimedia.org/wiki/Special:FilePath/D.jpg> ;
    wdt:P973 <http://example.org/> .
wds:Q42-1 a wikibase:Statement ; ps:P31 wd:Q5 ; pq:P580 "1952"^^xsd:gYear ; pq:P854 <http://example.org/> ;
    prov:wasDerivedFrom wdref:1 .
wdref:1 <http://WIKI/prop/reference/P854> <http://example.org/> .
wds:Q42-2 ps:P18 <http://commons.wikimedia.org/wiki/Special:FilePath/D.jpg> .
wds:Q42-3 ps:P856 <http://example.org/> .
wds:Q42-4 ps:P2048 1.9 ; psv:P2048 wdv:a .
wdv:a a wikibase:QuantityValue ; wikibase:quantityAmount 1.9 ; wikibase:quantityUnit wd:Q11573 .
wd:P31 a wikibase:Property ; rdfs:label "instance of"@en ; wikibase:directClaim wdt:P31 .
wdt:P31 a owl:ObjectProperty .
"""


@pytest.mark.parametrize("wiki", ["www.wikidata.org", "test.wikidata.org", "graph.example/base"])
def test_pages_pictures_and_addresses_are_left_out_and_counted_in_every_wikibase(tmp_path, wiki):
    (tmp_path / "facts.ttl").write_text((PREFIXES + DUMP).replace("WIKI", wiki).replace("www.wikidata.org", wiki))
    found, report = read_file(tmp_path / "facts.ttl", "rdf")
    base = "" if wiki == "www.wikidata.org" else f"http://{wiki}/entity/"
    assert set(found) == {
        Fact(f"{base}Q42", f"{base}P31", f"{base}Q5", (Qualifier(f"{base}P580", Number(1952.0, "1952", "date")),)),
        Fact(f"{base}Q42", f"{base}P2048", Number(1.9, "1.9", f"{base}Q11573")),
    }
    assert dict(report.noted) == {"wikidata-bookkeeping": 11, "web-address": 3, "qualifier-web-address": 1}
    assert report.left_out == set(report.noted)
    assert report.labels == {f"{base}Q42": "D", f"{base}P31": "instance of"}


def test_addresses_are_kept_where_texts_are(tmp_path):
    found, _ = read("wd:Q1 p:P856 wds:1 . wds:1 ps:P856 <http://example.org/> .", tmp_path, string_literals="keep")
    assert found == [Fact("Q1", "P856", "http://example.org/")]


def test_ordinary_rdf_with_values_and_references_stays(tmp_path):
    path = tmp_path / "facts.nt"
    path.write_text(
        "<http://x.org/value/ab> <http://x.org/near> <http://x.org/reference/1> .\n"
        "<http://x.org/entity/1> <http://schema.org/about> <http://x.org/topic> .\n"
    )
    assert len(read_file(path, "rdf")[0]) == 2
