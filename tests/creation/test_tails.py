"""What lies outside the chosen entities stays on request, small files are read however they are written, and a build
without facts says what became of them."""

from __future__ import annotations

import json

import pytest

from hynt.creation.accounts import NothingKept
from hynt.graph.fact import Fact
from tests.creation.builds import facts_of, ids, make
from tests.creation.sources.wikidata_lines import (
    dump,
    entity,
    item_value,
    property_entity,
    snak,
    statement,
    string_value,
)

FILM = [
    statement("P31", item_value("Q11424")),
    statement("P57", item_value("Q2"), qualifiers=[snak("P518", item_value("Q7"))]),
]
LINES = [
    entity("Q1", FILM, label="Alien"),
    entity("Q3", [statement("P31", item_value("Q11424")), statement("P57", item_value("Q9"))], label="Duel"),
    entity("Q2", [statement("P31", item_value("Q5"))], label="Ridley Scott"),
    entity("Q7", [], label="the cut"),
    entity("Q11424", [], label="film"),
    property_entity("P57", "director", "wikibase-item"),
]


def test_tails_outside_the_set_stay_with_their_names(tmp_path):
    graph, told = make(tmp_path, dump(LINES), types=("Q11424",), keep_tails=True)
    assert len(facts_of(graph)) == 4
    assert {entity.name: entity.label for entity in graph.entities} == {
        "Q1": "Alien",
        "Q3": "Duel",
        "Q2": "Ridley Scott",
        "Q9": "",
        "Q7": "the cut",
        "Q11424": "film",
    }
    assert not any(fact.head == "Q2" for fact in facts_of(graph))
    assert told["noted"] == {"tail-without-name": 1}
    assert told["facts"]["dropped"] == {}


def test_rare_tails_are_dropped_on_request_and_the_closed_set_stays(tmp_path):
    graph, told = make(tmp_path, dump(LINES), types=("Q11424",), keep_tails=True, min_tail_uses=2)
    assert {(fact.head, fact.tail) for fact in facts_of(graph)} == {("Q1", "Q11424"), ("Q3", "Q11424")}
    assert told["facts"]["dropped"] == {"not-in-set": 2}
    with pytest.raises(NothingKept) as caught:
        make(tmp_path, dump(LINES), types=("Q11424",))
    assert str(caught.value) == (
        "there are no facts. lines: 8 read = 2 kept + 3 not-selected + 2 frame + 1 property; "
        "facts: 4 read = 0 kept + 4 not-in-set. "
        "To keep facts whose tail is outside the chosen entities, say --keep-tails."
    )


def test_a_build_without_facts_leaves_nothing_behind(tmp_path):
    lines = [entity("Q1", [statement("P856", string_value("http://example.org"))])]
    with pytest.raises(NothingKept, match=r"facts: 1 read = 0 kept \+ 1 text\. To keep texts"):
        make(tmp_path, dump(lines), entities=ids(tmp_path, "Q1"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "ids.txt"]


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(LINES[0]),
        json.dumps(LINES[0], indent=2),
        json.dumps([LINES[0]]),
        json.dumps([LINES[0]], indent=4),
        json.dumps([LINES[0], LINES[4]]),
        json.dumps({"entities": {"Q1": LINES[0]}}, indent=1),
        "[" + json.dumps(LINES[0]) + ",\n" + json.dumps(LINES[4]) + "]",
    ],
    ids=["bare", "pretty", "list of one", "pretty list", "list of two", "answer", "list over lines"],
)
def test_a_file_of_an_entity_is_read_however_it_is_written(tmp_path, written):
    graph, _ = make(tmp_path, written.encode(), keep_tails=True)
    assert {fact[:3] for fact in facts_of(graph)} == {Fact("Q1", "P31", "Q11424")[:3], Fact("Q1", "P57", "Q2")[:3]}
