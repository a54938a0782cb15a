"""Freebase's triples as a graph: mediators become facts with qualifiers."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.creation.building import create_graph
from hynt.creation.options import CreationOptions, Selection
from hynt.creation.sources.freebase import FreebaseDump
from hynt.creation.sources.source import NodeValue, ParsedFact, ParsedValue, ParseSettings
from hynt.errors import DataError, RecordProblem
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.storage import load_graph
from hynt.graph.units.dates import decimal_year
from tests.creation.builds import ALONE, balanced, facts_of, ids

YEAR, DAY = "<http://www.w3.org/2001/XMLSchema#gYear>", "<http://www.w3.org/2001/XMLSchema#date>"


def triple(subject, predicate, value):
    held = value if value.startswith('"') else f"<http://rdf.freebase.com/ns/{value}>"
    return f"<http://rdf.freebase.com/ns/{subject}>\t<http://rdf.freebase.com/ns/{predicate}>\t{held}\t."


NOMINATED, AWARD = "award.award_nominee.award_nominations", "award.award_nomination.award"
TRIPLES = [
    # the schema: one mediator type by its name, one under a machine id whose key gives its name
    triple("award.award_nomination", "freebase.type_hints.mediator", '"true"'),
    triple("m.0type", "freebase.type_hints.mediator", '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
    triple("m.0type", "type.object.key", '"/measurement_unit/dated_integer"'),
    triple("m.0other", "type.object.key", '"/people/person"'),
    triple("people.person", "freebase.type_hints.mediator", '"false"'),
    triple("people.person.height_meters", "type.property.expected_type", "type.float"),
    triple("measurement_unit.dated_integer.number", "type.property.expected_type", "type.int"),
    triple("people.person.gender", "type.property.expected_type", "people.gender"),
    # topics
    triple("m.obama", "type.object.name", '"Barack Obama"@en'),
    triple("m.obama", "type.object.name", '"Барак Обама"@ru'),
    triple("m.obama", "type.object.type", "people.person"),
    triple("m.obama", "people.person.place_of_birth", "m.honolulu"),
    triple("m.obama", "people.person.height_meters", '"1.85"'),
    triple("m.obama", "people.person.date_of_birth", f'"1961-08-04"^^{DAY}'),
    triple("m.obama", "common.topic.official_website", '"http://obama.org"'),
    triple("m.obama", "people.person.gender", "m.male"),
    triple("m.obama", NOMINATED, "m.n1"),
    triple("m.obama", NOMINATED, "m.n2"),
    triple("m.obama", NOMINATED, "m.n3"),
    triple("m.michelle", "type.object.type", "people.person"),
    triple("m.michelle", NOMINATED, "m.n1"),
    triple("m.honolulu", "location.statistical_region.population", "m.p1"),
    # mediators
    triple("m.n1", AWARD, "m.grammy"),
    triple("m.n1", "award.award_nomination.year", f'"2006"^^{YEAR}'),
    triple("m.n1", "award.award_nomination.award_nominee", "m.obama"),
    triple("m.n1", "award.award_nomination.award_nominee", "m.michelle"),
    triple("m.n1", "award.award_nomination.ceremony", "m.outside"),
    triple("m.n2", AWARD, "m.grammy"),
    triple("m.n2", "award.award_nomination.year", f'"2008"^^{YEAR}'),
    triple("m.n3", AWARD, "m.outside"),
    triple("m.p1", "measurement_unit.dated_integer.number", '"337256"'),
    triple("m.p1", "measurement_unit.dated_integer.year", f'"2010"^^{YEAR}'),
    triple("m.p1", "measurement_unit.dated_integer.source", "m.outside"),
    '<http://rdf.freebase.com/ns/m.obama>\t<http://www.w3.org/2000/01/rdf-schema#label>\t"Barack Obama"@en\t.',
    '<http://rdf.freebase.com/ns/m.obama>\t<http://rdf.freebase.com/key/en>\t"barack_obama"\t.',
]
WANTED = ("m.obama", "/m/michelle", "m.honolulu", "m.grammy")
YEARS = {year: Number(float(year), f'"{year}"^^{YEAR}', "date") for year in (2006, 2008, 2010)}
DIRECT = [
    Fact("m.obama", "people.person.place_of_birth", "m.honolulu"),
    Fact("m.obama", "people.person.height_meters", Number(1.85, '"1.85"')),
    Fact("m.obama", "people.person.date_of_birth", Number(decimal_year(1961, 8, 4), f'"1961-08-04"^^{DAY}', "date")),
]
POPULATION = Fact(
    "m.honolulu",
    "location.statistical_region.population,measurement_unit.dated_integer.number",
    Number(337256.0, '"337256"'),
    (Qualifier("measurement_unit.dated_integer.year", YEARS[2010]),),
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "freebase-rdf-latest.gz"
    path.write_bytes(gzip.compress(("\n".join(TRIPLES) + "\n").encode()))
    return path


def build(path, **options):
    out = path.with_name("graph")
    result = create_graph("freebase", path, out, CreationOptions(engine=ALONE, **options), overwrite=True)
    return load_graph(out), result.manifest.importing


def test_mediators_become_facts_with_qualifiers(path, tmp_path):
    graph, told = build(path, entities=ids(tmp_path, *WANTED))
    year, nominee = "award.award_nomination.year", "award.award_nomination.award_nominee"
    relation = f"{NOMINATED},{AWARD}"
    expected = [
        *DIRECT,
        POPULATION,
        Fact("m.obama", relation, "m.grammy", (Qualifier(year, YEARS[2006]), Qualifier(nominee, "m.michelle"))),
        Fact("m.obama", relation, "m.grammy", (Qualifier(year, YEARS[2008]),)),
        Fact("m.michelle", relation, "m.grammy", (Qualifier(year, YEARS[2006]), Qualifier(nominee, "m.obama"))),
    ]
    assert {fact.key(): fact for fact in facts_of(graph)} == {fact.key(): fact for fact in expected}
    assert {held.name: held.label for held in graph.entities}["m.obama"] == "Barack Obama"
    assert told["nodes"] == {"read": 5, "kept": 4, "dropped": {"without-primary-value": 1}}
    assert told["mediator_types"] == 2
    assert told["facts"]["dropped"] == {"not-an-entity": 2, "not-in-set": 1, "text": 1}
    assert all(balanced(told[name]) for name in ("lines", "facts", "qualifiers", "nodes"))


def test_the_primary_property_can_be_told(path, tmp_path):
    primaries = tmp_path / "primaries.tsv"
    primaries.write_text(f"{NOMINATED}\taward.award_nomination.year\n", encoding="utf-8")
    graph, _ = build(path, entities=ids(tmp_path, *WANTED), primaries=primaries)
    mediated = [fact for fact in facts_of(graph) if fact.relation == f"{NOMINATED},award.award_nomination.year"]
    assert sorted(fact.tail.value for fact in mediated) == [2006.0, 2006.0, 2008.0]
    assert {relation for fact in mediated for relation, _ in fact.qualifiers} == {
        AWARD,
        "award.award_nomination.award_nominee",
    }


def test_mediator_types_can_be_told(path, tmp_path):
    mediators = tmp_path / "mediators.txt"
    mediators.write_text("measurement_unit.dated_integer\n", encoding="utf-8")
    graph, told = build(path, entities=ids(tmp_path, *WANTED), mediators=mediators)
    assert {fact.key() for fact in facts_of(graph)} == {fact.key() for fact in [*DIRECT, POPULATION]}
    assert told["mediator_types"] == 1


def test_entities_of_a_type_and_everything(path):
    graph, _ = build(path, types=("people.person",))
    assert {held.name for held in graph.entities} == {"m.obama", "m.michelle"}
    with pytest.raises(DataError, match=r"nothing in this dump is of the type people\.dog"):
        build(path, types=("people.dog",), work=path.with_name("other"))
    graph, _ = build(path, everything=True)
    assert {fact.key() for fact in DIRECT} <= {fact.key() for fact in facts_of(graph)}
    (population,) = [fact for fact in facts_of(graph) if fact.head == "m.honolulu"]
    assert population.tail == "m.outside"  # as many mediators have a source as a number: then the entity is primary
    assert not {"m.n1", "m.n2", "m.n3", "m.p1"} & {held.name for held in graph.entities}


def test_bad_lines_of_the_schema_are_counted_and_not_believed(path, tmp_path):
    broken = [
        b"\x80" + triple("x.y", "freebase.type_hints.mediator", '"true"').encode(),
        triple("x.y.z", "type.property.expected_type", "type.int\x01").encode(),
        triple("m.0type", "type.object.key", '"/x/y').encode(),
    ]
    path.write_bytes("\n".join(TRIPLES).encode() + b"\n" + b"\n".join(broken) + b"\n")
    graph, told = build(path, entities=ids(tmp_path, *WANTED))
    assert len(facts_of(graph)) == 7
    assert told["lines"]["read"] == len(TRIPLES) + len(broken)
    assert told["mediator_types"] == 2


def test_lines():
    parse = FreebaseDump().parser(
        Selection(), ParseSettings(mediator_types=frozenset({"a.b"}), number_properties=frozenset({"x.y.size"}))
    )
    assert parse(triple("m.1", "x.y.z", "m.2").encode()).facts == [
        ParsedFact("m.1", "x.y.z", ParsedValue("entity", "m.2"))
    ]
    assert parse(triple("m.1", "a.b.c", "m.2").encode()).node_values == [
        NodeValue("m.1", "a.b.c", ParsedValue("entity", "m.2"))
    ]
    assert parse(triple("m.1", "x.y.size", '"3"').encode()).facts[0].value == ParsedValue("number", '"3"', 3.0)
    assert parse(triple("m.1", "x.y.other", '"3"').encode()).counts["facts", "text"] == 1  # it only looks like a number
    spaced = triple("m.1", "x.y.z", "m.2").replace("\t", " ")
    assert parse(spaced.encode()).facts == parse(triple("m.1", "x.y.z", "m.2").encode()).facts
    for line in (b"", b"one two three", b"<a> <b> <c>", triple("m.1", "x.y.z", "m.2").encode()[:-3], b"\xff\xfe ."):
        with pytest.raises(RecordProblem):
            parse(line)


@given(st.sampled_from(TRIPLES), st.data())
def test_damaged_lines_are_parsed_or_refused_and_nothing_else(line, data):
    held = bytearray(line.encode())
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(held) - 1))
        held[place : place + 1] = data.draw(st.binary(max_size=2))
    try:
        FreebaseDump().parser(Selection(), ParseSettings(keep_text=True))(bytes(held))
    except RecordProblem as problem:
        assert problem.reason
