"""YAGO3's themes as a graph: facts, literals, dates, and meta facts as qualifiers."""

from __future__ import annotations

import gzip
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.creation.building import create_graph
from hynt.creation.options import CreationOptions, Selection
from hynt.creation.sources.source import NodeValue, ParsedFact, ParsedValue, ParseSettings
from hynt.creation.sources.yago import YagoDump
from hynt.errors import DataError, RecordProblem
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.storage import load_graph
from hynt.graph.units.dates import decimal_year
from tests.creation.builds import ALONE, balanced, facts_of, ids

THEMES = {
    "yagoFacts.tsv": """\
<id_a1>\t<Ruby_Dee>\t<actedIn>\t<Do_the_Right_Thing>\t
<id_a2>\t<Ulm>\t<isLocatedIn>\t<Germany>
<id_a3>\t<Ulm>\t<isLocatedIn>\t<Nowhere_(place)>
<id_a4>\t<Zürich>\t<isLocatedIn>\t<Switzerland>
<id_a5>\t<Ulm>\t<isLocatedIn>\t<Germany>
""",
    "yagoLiteralFacts.tsv": """\
<id_l1>\t<Ulm>\t<hasArea>\t"118.69"^^<km2>\t118.69
<id_l2>\t<Ulm>\t<hasNumberOfPeople>\t"126329"^^xsd:nonNegativeInteger\t126329
<id_l3>\t<Ulm>\t<hasMotto>\t"Ulma"@lat
<id_l4>\t<Ulm>\t<hasWebsite>\t"http://ulm.de"^^xsd:anyURI
<id_l5>\t<Ulm>\t<hasPopulationDensity>\t"1064"^^</km2>\t1064.0
<id_l6>\t<Ulm>\t<hasThing>\t"3"^^<yagoThing>\t3.0
<id_l7>\t<Ulm>\t<hasArea>\t"much"^^<km2>
""",
    "yagoDateFacts.tsv": """\
<id_d1>\t<Ulm>\t<wasCreatedOnDate>\t"0854-07-22"^^xsd:date\t854.0722
<id_d2>\t<Germany>\t<wasCreatedOnDate>\t"1949-##-##"^^xsd:date\t1949.0000
<id_d3>\t<Germany>\t<wasDestroyedOnDate>\t"194#-##-##"^^xsd:date\t1940.0000
<id_d4>\t<Germany>\t<happenedOnDate>\t"-0008-12-##"^^xsd:date\t-8.1200
""",
    "yagoMetaFacts.tsv": """\
<id_m1>\t<id_a2>\t<occursSince>\t"1810-##-##"^^xsd:date\t1810.0000
<id_m2>\t<id_a2>\t<placedIn>\t<Germany>
<id_m3>\t<id_a2>\t<placedIn>\t<Nowhere_(place)>
<id_m4>\t<id_gone>\t<occursSince>\t"1810-##-##"^^xsd:date\t1810.0000
<id_m5>\t<id_a2>\t<extractionSource>\t<http://en.wikipedia.org/wiki/Ulm>
<id_m6>\t<id_a2>\t<hasNote>\t"text"
""",
    "yagoLabels.tsv": """\
<id_n1>\t<Ulm>\tskos:prefLabel\t"Ulm an der Donau"@deu
<id_n2>\t<Ulm>\tskos:prefLabel\t"Ulm\\u00e4"@eng
<id_n3>\t<Ulm>\trdfs:label\t"Ulma"@eng
""",
    "yagoTypes.tsv": """\
<id_t1>\t<Ulm>\trdf:type\t<wordnet_city_108524735>
<id_t2>\t<Germany>\trdf:type\t<wordnet_country_108544813>
<id_t3>\t<Ruby_Dee>\trdf:type\t<wordnet_person_100007846>
""",
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "yago3"
    folder.mkdir()
    for name, text in THEMES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def build(folder, **options):
    out = folder.with_name("graph")
    result = create_graph("yago", folder, out, CreationOptions(engine=ALONE, **options), overwrite=True)
    return load_graph(out), result.manifest.importing


def parse(line, **settings):
    return YagoDump().parser(Selection(), ParseSettings(**settings))(line.encode())


def test_a_graph_of_given_entities(folder, tmp_path):
    graph, told = build(folder, entities=ids(tmp_path, "Ulm", "<Germany>", "Ruby_Dee"))
    facts = {fact.key(): fact for fact in facts_of(graph)}
    since = Number(1810.0, '"1810-##-##"^^xsd:date', "date")
    expected = [
        Fact("Ulm", "isLocatedIn", "Germany", (Qualifier("occursSince", since), Qualifier("placedIn", "Germany"))),
        Fact("Ulm", "isLocatedIn", "Germany"),
        Fact("Ulm", "hasArea", Number(118.69e6, '"118.69"^^<km2>', "m2")),
        Fact("Ulm", "hasNumberOfPeople", Number(126329.0, '"126329"^^xsd:nonNegativeInteger', "")),
        Fact("Ulm", "hasPopulationDensity", Number(1064e-6, '"1064"^^</km2>', "1/m2")),
        Fact("Ulm", "wasCreatedOnDate", Number(decimal_year(854, 7, 22), '"0854-07-22"^^xsd:date', "date")),
        Fact("Germany", "wasCreatedOnDate", Number(1949.0, '"1949-##-##"^^xsd:date', "date")),
        Fact("Germany", "happenedOnDate", Number(decimal_year(-8, 12), '"-0008-12-##"^^xsd:date', "date")),
    ]
    assert facts == {fact.key(): fact for fact in expected}
    assert {held.name: held.label for held in graph.entities} == {"Ulm": "Ulmä", "Germany": ""}
    assert told["facts"]["dropped"] == {"bad-date": 1, "bad-number": 1, "not-in-set": 2, "text": 2, "unknown-unit": 1}
    assert told["qualifiers"]["dropped"] == {"not-in-set": 1}
    assert told["nodes"] == {"read": 5, "kept": 3, "dropped": {"text": 1, "without-fact": 1}}
    assert told["lines"]["dropped"] == {"class": 3, "name": 3, "not-selected": 1, "provenance": 1}
    assert all(balanced(told[name]) for name in ("lines", "facts", "qualifiers", "nodes"))
    assert told["units"]["not_convertible"] == ["yagoThing"]


def test_entities_of_a_type_and_everything(folder):
    graph, _ = build(folder, types=("wordnet_city_108524735",))
    assert {held.name for held in graph.entities} == {"Ulm"}
    with pytest.raises(DataError, match="nothing in this folder is of the type <wordnet_dog>"):
        build(folder, types=("wordnet_dog",), work=folder.with_name("other"))
    graph, told = build(folder, everything=True)
    assert {"Ruby_Dee", "Do_the_Right_Thing", "Switzerland", "Nowhere_(place)"} <= {
        held.name for held in graph.entities
    }
    assert "not-in-set" not in told["facts"]["dropped"]


def test_packed_themes(folder, tmp_path):
    plain, _ = build(folder, entities=ids(tmp_path, "Ulm", "Germany"))
    for path in list(folder.iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed, _ = build(folder, entities=ids(tmp_path, "Ulm", "Germany"))
    assert facts_of(plain) == facts_of(packed)


def test_lines():
    assert parse("<id_1>\t<A>\t<r>\t<B>\r").facts == [ParsedFact("A", "r", ParsedValue("entity", "B"), (), "id_1")]
    assert parse('\t<A>\t<r>\t"5"^^xsd:integer\t5').facts == [
        ParsedFact("A", "r", ParsedValue("number", '"5"^^xsd:integer', 5.0))
    ]
    assert parse('<id_1>\t<id_2>\t<r>\t"5"^^<km>').node_values == [
        NodeValue("id_2", "r", ParsedValue("number", '"5"^^<km>', 5.0, "km"))
    ]
    assert parse('<id_1>\t<A>\t<r>\t"a \\"b\\""@eng', keep_text=True).facts[0].value == ParsedValue(
        "text", '"a "b""@eng'
    )
    assert parse('<id_1>\t<A>\tskos:prefLabel\t"Name"@deu', language="de").names == [("entity", "A", "Name", "", "")]
    assert parse('<id_1>\t<yagoTheme_x>\t<hasGloss>\t"All"').counts == Counter({("lines", "provenance"): 1})


@pytest.mark.parametrize(
    "line, reason",
    [
        ("<id_1>\t<A>\t<r>", "bad-line"),
        ("one two three", "bad-line"),
        ("<id_1>\t<A>\t<r>\t<B>\t1\t2", "bad-line"),
        ("<id_1>\t<>\t<r>\t<B>", "empty-name"),
        ("<id_1>\t<A\x01>\t<r>\t<B>", "control-character"),
    ],
)
def test_bad_lines(line, reason):
    with pytest.raises(RecordProblem) as caught:
        parse(line)
    assert caught.value.reason == reason


@given(st.sampled_from([line for text in THEMES.values() for line in text.splitlines()]), st.data())
def test_damaged_lines_are_parsed_or_refused_and_nothing_else(line, data):
    held = bytearray(line.encode())
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(held) - 1))
        held[place : place + 1] = data.draw(st.binary(max_size=2))
        if not held:
            return
    try:
        YagoDump().parser(Selection(), ParseSettings(keep_text=True))(bytes(held))
    except RecordProblem as problem:
        assert problem.reason
