"""Decisions about doubtful facts: an import and an update take the same file."""

from __future__ import annotations

import json

import pytest

import hynt
from hynt.errors import DataError, UsageError
from hynt.formats.corrections import read_corrections
from hynt.formats.jsonl import write_fact
from hynt.graph.fact import Fact, Number, Qualifier

FACTS = [
    {"head": "Ann", "relation": "height", "tail": {"number": 170, "unit": "cm"}},
    {"head": "Ann", "relation": "knows", "tail": "Bob", "qualifiers": [["since", {"date": "1999"}]]},
    {"head": "Bob", "relation": "knows", "tail": "Ann"},
]
IN_METRES = {**FACTS[0], "tail": {"number": 1.7, "unit": "m"}}


def written(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def source(tmp_path):
    return written(tmp_path / "facts.jsonl", *FACTS)


def test_an_import_removes_and_replaces(source, tmp_path):
    decisions = written(
        tmp_path / "decisions.jsonl",
        {"decision": "keep", "fact": FACTS[2]},
        {"decision": "remove", "fact": FACTS[1]},
        {"decision": "replace", "fact": IN_METRES, "with": {**IN_METRES, "tail": {"number": 1.8, "unit": "m"}}},
    )
    graph = hynt.import_graph(source, split="1:0:0", corrections=decisions)
    assert sorted(text for name in ("Ann", "Bob") for text in graph[name].texts()) == [
        "Ann · height · 1.8 m",
        "Bob · knows · Ann",
        "Bob · knows · Ann",
    ]
    account = graph.manifest.importing
    assert account["corrections"] == {"removed": 1, "replaced": 1, "kept": 1, "not_found": 0}
    assert account["read"] == account["kept"] == 3


def test_what_is_not_there_is_said(source, tmp_path):
    from hynt.formats.importing import check_source
    from hynt.front.graphs import import_options

    decisions = written(tmp_path / "d.jsonl", {"decision": "remove", "fact": {**FACTS[2], "tail": "Zoe"}})
    report, _ = check_source(source, "jsonl", import_options(corrections=decisions))
    assert "1 of the corrections are about facts that the source does not hold." in report.hints


@pytest.mark.parametrize(
    "record, told",
    [
        ({"decision": "burn", "fact": FACTS[2]}, "a decision is keep, remove or replace"),
        ({"decision": "replace", "fact": FACTS[2]}, "a decision to replace has fact and with"),
        ({"decision": "remove", "fact": FACTS[2], "with": FACTS[1]}, "a decision to remove has fact"),
        ({"decision": "remove", "fact": {"head": "Ann"}}, "the key 'relation' is missing"),
        ({"decision": "remove", "fact": FACTS[1]}, "decided on before"),
    ],
)
def test_a_bad_decision_is_refused_with_its_line(tmp_path, record, told):
    decisions = written(tmp_path / "d.jsonl", {"decision": "remove", "fact": FACTS[1]}, record)
    with pytest.raises(DataError, match=told) as caught:
        read_corrections(decisions)
    assert caught.value.where.endswith("d.jsonl:2")


def test_a_missing_file_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="there is no file"):
        read_corrections(tmp_path / "none.jsonl")


def test_facts_are_known_again_whatever_the_order_of_their_qualifiers(tmp_path):
    pairs = (Qualifier("a", "x"), Qualifier("b", Number(1.0, "1", "")))
    fact = Fact("Ann", "knows", "Bob", pairs)
    path = tmp_path / "d.jsonl"
    path.write_text(f'{{"decision": "remove", "fact": {write_fact(fact)}}}\n')
    found = read_corrections(path)
    assert found.applied(fact._replace(qualifiers=pairs[::-1])) is None
    assert found.applied(fact._replace(qualifiers=pairs[:1])) is not None
