"""What a line of Wikidata's dump becomes, case by case."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.creation.options import Selection
from hynt.creation.sources.source import ParsedFact, ParsedValue, ParseSettings
from hynt.creation.sources.wikidata import WikidataDump
from hynt.errors import RecordProblem
from hynt.graph.units.dates import decimal_year, format_date
from tests.creation import sample_dump
from tests.creation.sources.wikidata_lines import (
    compact,
    coordinate_value,
    entity,
    item_value,
    monolingual_value,
    property_entity,
    quantity_value,
    snak,
    statement,
    string_value,
    time_value,
)


def parse(line, selection=None, **settings):
    return WikidataDump().parser(selection or Selection(), ParseSettings(**settings))(line)


def facts_of(*statements, **settings):
    return parse(compact(entity("Q1", list(statements))), **settings).facts


def only(value, **settings):
    (fact,) = facts_of(statement("P1", value), **settings)
    return fact.value


def counts_of(*statements, **settings):
    counts = parse(compact(entity("Q1", list(statements))), **settings).counts
    return {f"{scope}:{reason}": number for (scope, reason), number in counts.items() if scope != "lines"}


def test_an_item_is_a_fact():
    line = compact(entity("Q1", [statement("P31", item_value("Q5"))], label="one"))
    parsed = parse(line)
    assert parsed.facts == [ParsedFact("Q1", "P31", ParsedValue("entity", "Q5"))]
    assert parsed.names == [("entity", "Q1", "one", "Q5", "")]
    assert parsed.counts == Counter({("lines", "parsed"): 1})


@pytest.mark.parametrize("ending", [b"", b",", b"\r", b",\r", b" ,  \r"])
def test_what_follows_a_line_does_not_matter(ending):
    line = compact(entity("Q1", [statement("P31", item_value("Q5"))]))
    assert parse(line + ending) == parse(line)


def test_ids_of_old_dumps_have_a_number_only():
    value = {"value": {"entity-type": "item", "numeric-id": 42}, "type": "wikibase-entityid"}
    assert only(value) == ParsedValue("entity", "Q42")
    value["value"]["entity-type"] = "property"
    assert only(value) == ParsedValue("entity", "P42")


@pytest.mark.parametrize("identity", ["P31", "L7", "L7-S1", "L7-F2", "M9", "E10"])
def test_other_things_than_items_can_be_values(identity):
    assert only({"value": {"id": identity}, "type": "wikibase-entityid"}) == ParsedValue("entity", identity)


@pytest.mark.parametrize(
    "amount, unit, value, name",
    [("+1990", "1", 1990.0, ""), ("-0.5", "Q11573", -0.5, "Q11573"), ("+1.5e3", "1", 1500.0, ""), ("-0", "1", 0.0, "")],
)
def test_quantities(amount, unit, value, name):
    found = only(quantity_value(amount, unit))
    assert found == ParsedValue("number", amount, value, name)
    assert str(found.number) == str(value)  # no negative zero


def test_bounds_are_left_out_and_noted():
    assert counts_of(statement("P1", quantity_value("+5", bounds=("+4", "+6")))) == {"notes:bounds-left-out": 1}


@pytest.mark.parametrize(
    "time, precision, julian, day",
    [
        ("+2020-02-29T00:00:00Z", 11, False, "2020-02-29"),
        ("+00000002011-01-01T00:00:00Z", 11, False, "2011-01-01"),  # as dumps before 2015 had it
        ("+1636-09-00T00:00:00Z", 10, False, "1636-09-01"),
        ("+1636-09-08T00:00:00Z", 10, False, "1636-09-01"),
        ("+1999-00-00T00:00:00Z", 9, False, "1999-01-01"),
        ("-0044-03-15T00:00:00Z", 11, True, "-0043-03-13"),
        ("-0044-00-00T00:00:00Z", 9, False, "-0043-01-01"),
        ("+1582-10-04T00:00:00Z", 11, True, "1582-10-14"),
    ],
)
def test_times(time, precision, julian, day):
    found = only(time_value(time, precision, julian=julian))
    assert (found.kind, found.value, found.unit) == ("number", time, "date")
    assert format_date(found.number) == day


@pytest.mark.parametrize("precision", [6, 7, 8])
def test_coarse_times_are_years_and_noted(precision):
    time = statement("P1", time_value("+1850-00-00T00:00:00Z", precision))
    assert facts_of(time)[0].value.number == decimal_year(1850)
    assert counts_of(time) == {"notes:coarser-than-a-year": 1}


@pytest.mark.parametrize(
    "time, precision",
    [
        ("+1900-02-30T00:00:00Z", 11),
        ("+0000-00-00T00:00:00Z", 9),
        ("sometime", 11),
        ("+1900-13-01T00:00:00Z", 11),
        ("+1900-01-01T00:00:00Z", 15),
    ],
)
def test_times_that_are_none_are_dropped_and_counted(time, precision):
    assert counts_of(statement("P1", time_value(time, precision))) == {"facts:bad-date": 1}


def test_a_coordinate_is_two_facts_that_share_their_qualifiers():
    place = statement("P625", coordinate_value(42.5, -71.0), qualifiers=[snak("P518", item_value("Q7"))])
    qualifiers = (("P518", ParsedValue("entity", "Q7")),)
    assert facts_of(place) == [
        ParsedFact("Q1", "P625-latitude", ParsedValue("number", "42.5", 42.5, "degree"), qualifiers),
        ParsedFact("Q1", "P625-longitude", ParsedValue("number", "-71.0", -71.0, "degree"), qualifiers),
    ]


def test_a_coordinate_as_qualifier_is_two_qualifiers():
    (fact,) = facts_of(statement("P31", item_value("Q5"), qualifiers=[snak("P625", coordinate_value(1.5, 2.5))]))
    assert [relation for relation, _ in fact.qualifiers] == ["P625-latitude", "P625-longitude"]


def test_coordinates_elsewhere_are_kept_and_noted():
    assert counts_of(statement("P625", coordinate_value(1, 2, "Q405"))) == {"notes:not-on-earth": 1}


@pytest.mark.parametrize("value", [string_value("abc"), monolingual_value("abc", "de")])
def test_text_is_dropped_and_counted(value):
    assert counts_of(statement("P1", value, qualifiers=[snak("P2", item_value("Q2"))])) == {
        "facts:text": 1,
        "qualifiers:fact-dropped": 1,
    }


def test_text_can_be_kept_as_entities():
    assert only(string_value("abc"), keep_text=True) == ParsedValue("text", '"abc"')
    assert only(monolingual_value("ab", "de"), keep_text=True) == ParsedValue("text", '"ab"@de')


@pytest.mark.parametrize("kind, reason", [("somevalue", "unknown-value"), ("novalue", "no-value")])
def test_snaks_without_value(kind, reason):
    assert counts_of(statement("P1", None, kind=kind)) == {f"facts:{reason}": 1}
    with_qualifier = statement("P1", item_value("Q2"), qualifiers=[snak("P2", None, kind)])
    assert counts_of(with_qualifier) == {f"qualifiers:{reason}": 1}
    assert facts_of(with_qualifier) == [ParsedFact("Q1", "P1", ParsedValue("entity", "Q2"))]


@pytest.mark.parametrize(
    "value, reason",
    [
        ({"value": {"new": 1}, "type": "of-tomorrow"}, "unknown-datatype"),
        ({"value": None, "type": "quantity"}, "bad-value"),
        ({"value": {"amount": 5}, "type": "quantity"}, "bad-value"),
        (quantity_value("+1e999"), "bad-number"),
        (quantity_value("１２"), "bad-number"),
        (quantity_value("+5", "metre"), "bad-value"),
        ({"value": {"id": "Q0"}, "type": "wikibase-entityid"}, "bad-value"),
        ({"value": {"id": "Q1\n"}, "type": "wikibase-entityid"}, "bad-value"),
        ({"value": {}, "type": "wikibase-entityid"}, "bad-value"),
        ({"value": {"latitude": "north", "longitude": 2}, "type": "globecoordinate"}, None),
        ({"value": {"latitude": None, "longitude": 2}, "type": "globecoordinate"}, None),
        ({"value": {"latitude": 1e5, "longitude": 2}, "type": "globecoordinate"}, None),
    ],
)
def test_one_bad_value_costs_one_fact_and_not_the_line(value, reason):
    good = statement("P2", item_value("Q2"))
    counts = counts_of(statement("P1", value), good)
    if reason is None:  # a coordinate counts as two facts
        assert sum(counts.values()) == 2
        assert set(counts) <= {"facts:bad-value", "facts:bad-number"}
    else:
        assert counts == {f"facts:{reason}": 1}
    assert len(facts_of(statement("P1", value), good)) == 1


def test_deprecated_statements_are_dropped_with_their_qualifiers():
    held = statement("P1", item_value("Q2"), rank="deprecated", qualifiers=[snak("P2", item_value("Q3"))] * 2)
    assert counts_of(held) == {"facts:deprecated": 1, "qualifiers:fact-dropped": 2}


def test_preferred_only_keeps_the_best_rank_of_each_property():
    held = [
        statement("P1", item_value("Q2"), rank="preferred"),
        statement("P1", item_value("Q3")),
        statement("P2", item_value("Q4")),
    ]
    assert [fact.value.value for fact in facts_of(*held)] == ["Q2", "Q3", "Q4"]
    assert [fact.value.value for fact in facts_of(*held, preferred_only=True)] == ["Q2", "Q4"]
    assert counts_of(*held, preferred_only=True) == {"facts:not-preferred": 1}


def test_labels_come_in_the_chosen_language_or_the_shared_one():
    held = entity("Q1", [], label="one")
    assert parse(compact(held)).names[0].label == "one"
    assert parse(compact(held), language="de").names[0].label == "das one"
    missing = parse(compact(held), language="fr")
    assert missing.names[0].label == ""
    assert missing.counts["notes", "without-label"] == 1
    held["labels"]["mul"] = {"language": "mul", "value": "shared"}
    assert parse(compact(held), language="fr").names[0].label == "shared"
    assert parse(compact(held), language="mul").names[0].label == "shared"


def test_escaped_unicode_in_labels():
    assert (
        parse(rb'{"type":"item","id":"Q1","labels":{"en":{"language":"en","value":"\u00dcn\ud83c\udf93"}}}')
        .names[0]
        .label
        == "Ün\U0001f393"
    )


def test_half_characters_are_no_names():
    with pytest.raises(RecordProblem):
        parse(rb'{"type":"item","id":"Q1","labels":{"en":{"language":"en","value":"\ud800"}}}')
    assert counts_of(statement("P1", string_value("\x00")), keep_text=True) == {"facts:control-character": 1}


def test_properties_give_names_to_relations():
    parsed = parse(compact(property_entity("P625", "coordinate location", "globe-coordinate")))
    assert ("relation", "P625", "coordinate location", "", "") in parsed.names
    assert ("relation", "P625-latitude", "coordinate location (latitude)", "", "") in parsed.names
    assert parsed.counts == Counter({("lines", "property"): 1})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (
            {"en": {"language": "en", "value": "where it is\n on Earth"}, "fr": {"value": "lieu"}},
            "where it is on Earth",
        ),
        ({"mul": {"language": "mul", "value": "shared"}}, "shared"),
        ({"fr": {"language": "fr", "value": "lieu"}}, ""),
        ([], ""),
        ({"en": {"language": "en"}}, ""),
        ("odd", ""),
    ],
)
def test_properties_say_what_relations_mean(written, read):
    held = property_entity("P625", "coordinate location", "globe-coordinate") | {"descriptions": written}
    assert {name.description for name in parse(compact(held)).names} == {read}


def test_empty_objects_come_as_arrays():
    parsed = parse(b'{"type":"item","id":"Q1","labels":[],"claims":[]}')
    assert parsed.facts == []
    assert parsed.names == [("entity", "Q1", "", "", "")]
    (fact,) = parse(
        b'{"type":"item","id":"Q1","claims":{"P1":[{"mainsnak":{"snaktype":"value","property":"P1","datavalue":'
        b'{"value":{"id":"Q2"},"type":"wikibase-entityid"}},"rank":"normal","qualifiers":[]}]}}'
    ).facts
    assert fact.qualifiers == ()


def test_deleted_entities_and_lexemes_say_nothing():
    assert parse(b'{"id":"Q1","missing":""}').counts == Counter({("lines", "deleted-entity"): 1})
    assert parse(b'{"type":"lexeme","id":"L1"}').counts == Counter({("lines", "other-entity-type"): 1})


def test_redirects_of_the_api_are_followed():
    line = compact(entity("Q2", [statement("P31", item_value("Q5"))], others={"redirects": {"from": "Q1", "to": "Q2"}}))
    parsed = parse(line, Selection(frozenset({"Q1"})))
    assert parsed.redirects == [("Q1", "Q2")]
    assert [fact.head for fact in parsed.facts] == ["Q2"]


def test_types_decide_where_they_are_asked_for():
    human = compact(entity("Q1", [statement("P31", item_value("Q5"))]))
    former = compact(entity("Q2", [statement("P31", item_value("Q5"), rank="deprecated")]))
    friend = compact(entity("Q3", [statement("P50", item_value("Q5"))]))
    selection = Selection(types=frozenset({"Q5"}))
    assert len(parse(human, selection).facts) == 1
    for line in (former, friend):
        assert parse(line, selection).counts == Counter({("lines", "not-selected"): 1})


@pytest.mark.parametrize(
    "line, words",
    [
        (b'{"type":"item","id":"Q1"', "Input data was truncated"),
        (b'{"type":"item","id":"Q1","claims":7}', "Expected `object | array | null`, got `int`"),
        (b'{"type":"item","id":"../Q1"}', "'../Q1' is not a Wikidata id."),
        (b'{"type":"item"}', "'' is not a Wikidata id."),
        (b'{"type":"item","id":"Q1","labels":{"en":{"value":"\xff"}}}', "utf-8"),
        (b'{"type":"item","id":"Q1","new":' + b"[" * 100_000, "nested too deeply"),
        (b"null", "Expected `object`, got `null`"),
    ],
)
def test_lines_that_cannot_be_read_are_told(line, words):
    with pytest.raises(RecordProblem) as caught:
        parse(line)
    assert words in caught.value.what


@given(
    st.sampled_from(sample_dump.lines()), st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=3)), max_size=4)
)
def test_damaged_lines_are_parsed_or_refused_and_nothing_else(line, damage):
    held = bytearray(line)
    for place, content in damage:
        place %= len(held)
        held[place : place + len(content)] = content
    try:
        parsed = parse(bytes(held), keep_text=True)
    except RecordProblem as problem:
        assert problem.reason
        assert problem.what
        return
    for fact in parsed.facts:
        for text in (fact.head, fact.relation, fact.value.value, *(value.value for _, value in fact.qualifiers)):
            text.encode("utf-8")
