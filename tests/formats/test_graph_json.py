"""Property graphs as JSON: what Neo4j and common tools write, read as facts with names for people."""

from __future__ import annotations

import json

import pytest

from hynt.errors import DataError
from hynt.formats.importing import read_graph
from hynt.graph.fact import Fact, Number, Qualifier
from tests.formats.graphs import read_file

APOC = [
    {"type": "node", "id": "1", "labels": ["Person"], "properties": {"name": "Keanu Reeves", "born": 1964, "bio": "…"}},
    {
        "type": "node",
        "id": "2",
        "labels": ["Movie"],
        "properties": {"title": "The Matrix", "seen": True, "marks": [7, 9]},
    },
    {
        "type": "relationship",
        "id": "9",
        "label": "ACTED_IN",
        "start": {"id": "1", "labels": ["Person"]},
        "end": {"id": "2", "labels": ["Movie"]},
        "properties": {"roles": ["Neo"], "weight": 0.5, "since": "1999-03-31"},
    },
]
EXPECTED = {
    Fact("1", ":LABEL", "Person"),
    Fact("1", "born", Number(1964.0, "1964")),
    Fact("2", ":LABEL", "Movie"),
    Fact("2", "marks", Number(7.0, "7")),
    Fact("2", "marks", Number(9.0, "9")),
    Fact(
        "1",
        "ACTED_IN",
        "2",
        (Qualifier("roles", "Neo"), Qualifier("weight", Number(0.5, "0.5")), Qualifier("since", "1999-03-31")),
    ),
}


def written(tmp_path, content, name="graph.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return path


@pytest.mark.parametrize("shape", ["lines", "list"])
def test_an_export_of_apoc(tmp_path, shape):
    content = "".join(json.dumps(one) + "\n" for one in APOC) if shape == "lines" else APOC
    found, report = read_file(written(tmp_path, content), "graph-json")
    assert set(found) == EXPECTED
    assert report.labels == {"1": "Keanu Reeves", "2": "The Matrix"}
    assert dict(report.noted) == {"text-property": 2}


@pytest.mark.parametrize(
    "document",
    [
        {
            "nodes": [{"id": 1, "name": "Ann", "age": 5}, {"id": 2}],
            "links": [{"source": 1, "target": 2, "type": "knows"}],
        },
        {
            "elements": {
                "nodes": [{"data": {"id": "1", "name": "Ann", "age": 5}}],
                "edges": [{"data": {"id": "e", "source": "1", "target": "2", "label": "knows"}}],
            }
        },
        {
            "graph": {
                "vertices": [{"key": "1", "name": "Ann", "age": 5}],
                "relationships": [{"from": "1", "to": "2", "relation": "knows"}],
            }
        },
    ],
)
def test_nodes_and_edges_are_found_wherever_tools_put_them(tmp_path, document):
    graph = read_graph(written(tmp_path, document), "")
    assert set(graph.facts()) == {Fact("1", "age", Number(5.0, "5")), Fact("1", "knows", "2")}
    assert graph["Ann"].texts()


def test_dates_and_names_can_be_said(tmp_path):
    content = "".join(json.dumps(one) + "\n" for one in APOC)
    found, report = read_file(written(tmp_path, content), "graph-json", dates=("since",), label="bio")
    (edge,) = [fact for fact in found if fact.relation == "ACTED_IN"]
    assert edge.qualifiers[2].value.unit == "date"
    assert report.labels == {"1": "…"}


def test_what_is_wrong_is_said_with_its_place(tmp_path):
    found, report = read_file(written(tmp_path, {"nodes": [], "edges": [{"source": "1", "type": "r"}]}), "graph-json")
    assert (found, dict(report.rejected)) == ([], {"empty-name": 1})
    for content, words in (
        ("{}", "no list of nodes or edges"),
        ('{"nodes": [', "no valid JSON"),
        ("[" * 5000, "too deeply"),
    ):
        with pytest.raises(DataError, match=words):
            read_file(written(tmp_path, content), "graph-json")
