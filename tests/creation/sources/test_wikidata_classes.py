"""Entities of a type, and of the types below it."""

from __future__ import annotations

import pytest

from hynt.creation.building import create_graph
from hynt.creation.options import CreationOptions
from hynt.creation.reading import Scan
from hynt.creation.sources.wikidata_json import type_test, with_subclasses
from hynt.errors import DataError, UsageError
from hynt.graph.fact import Fact
from tests.creation.builds import ALONE, facts_of, ids, make
from tests.creation.sources.wikidata_lines import compact, dump, entity, item_value, snak, statement

OLD_FILM = {"value": {"entity-type": "item", "numeric-id": 11424}, "type": "wikibase-entityid"}
CLASSES = [
    entity("Q11424", []),
    entity("Q24862", [statement("P279", item_value("Q11424"))]),  # short film
    entity("Q24865", [statement("P279", item_value("Q24862")), statement("P279", item_value("Q24865"))]),  # in a circle
    entity("Q24869", [statement("P279", item_value("Q11424"), rank="deprecated")]),
    entity("Q5", [statement("P279", item_value("Q215627")), statement("P279", None, kind="somevalue")]),
    entity("Q24870", [statement("P279", OLD_FILM)]),
]
FILMS = [
    entity("Q1", [statement("P31", item_value("Q24865")), statement("P144", item_value("Q2"))]),
    entity("Q2", [statement("P31", item_value("Q11424")), statement("P144", item_value("Q3"))]),
    entity("Q3", [statement("P31", item_value("Q5"), qualifiers=[snak("P642", item_value("Q11424"))])]),
    entity("Q4", [statement("P31", item_value("Q24869")), statement("P144", item_value("Q1"))]),
]


def test_subclasses_however_far(tmp_path):
    path = tmp_path / "dump.json"
    path.write_bytes(dump([*CLASSES, b'{"broken":"P279":[']))
    found = with_subclasses(frozenset({"Q11424"}), Scan([path]))
    assert found == {"Q11424", "Q24862", "Q24865", "Q24870"}


def test_a_graph_of_films(tmp_path):
    graph, told = make(tmp_path, dump([*CLASSES, *FILMS]), types=("Q11424",), subclasses=True)
    assert facts_of(graph) == [Fact("Q1", "P144", "Q2")]
    assert told["selection"] == {"asked": 0, "unmapped": 0, "types": ["Q11424"], "classes": 4, "named": 2}


@pytest.mark.parametrize("others", [(), ("Q7", "Q8", "Q9", "Q10")])
def test_the_quick_test_says_no_to_none_of_its_type(others):
    test = type_test(frozenset({"Q11424", *others}))
    lines = [compact(held) for held in (*FILMS, entity("Q9", [statement("P31", OLD_FILM)]), entity("Q10", []))]
    block = b"\n".join(lines)
    starts = [block.index(line) for line in lines]
    said = [test(block, start, start + len(line)) for start, line in zip(starts, lines, strict=True)]
    assert said[1]
    assert said[4]
    assert not said[5]
    assert type_test(frozenset()) is None


@pytest.mark.parametrize(
    "options, problem, words",
    [
        ({"types": ("film",)}, UsageError, "'film' is not a Wikidata item. Give its id, such as Q11424."),
        ({"types": ("P31",)}, UsageError, "'P31' is not a Wikidata item."),
    ],
)
def test_names_that_are_none(options, problem, words, tmp_path):
    with pytest.raises(problem) as caught:
        make(tmp_path, dump(FILMS), **options)
    assert words in str(caught.value)


def test_ids_of_another_source_are_told(tmp_path):
    with pytest.raises(DataError) as caught:
        make(tmp_path, dump(FILMS), entities=ids(tmp_path, "/m/02mjmr", "/m/1"))
    assert "none of the entities, such as '/m/02mjmr', has an id of Wikidata." in str(caught.value)


def test_rdf_has_its_own_command(tmp_path):
    path = tmp_path / "latest-truthy.nt"
    path.write_text("<a> <b> <c> .\n", encoding="utf-8")
    with pytest.raises(UsageError, match="hynt data import DUMP --format rdf"):
        create_graph("wikidata", path, tmp_path / "graph", CreationOptions(everything=True, engine=ALONE))
    with pytest.raises(UsageError, match="--subclasses widens --instance-of"):
        CreationOptions(everything=True, subclasses=True)
