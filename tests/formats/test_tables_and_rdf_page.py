"""The examples of docs/reference/formats-tables-and-rdf.md do what the page says."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.formats.graphs import read_file

PAGE = (ROOT / "docs" / "reference" / "formats-tables-and-rdf.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_csv_examples(tmp_path):
    edges, wide, neo4j = blocks("csv")
    path = tmp_path / "edges.csv"
    path.write_text(edges)
    facts, report = read_file(path, "csv-edges", numeric=("students", "year"))
    assert (len(facts), report.kept, dict(report.noted)) == (2, 2, {})
    assert facts[0].tail.value == 1990
    path.write_text(wide)
    options = {"wide": True, "head": "country", "qualifier": ("year",), "numeric": ("population", "year")}
    facts, _ = read_file(path, "csv-edges", **options)
    assert [(fact.relation, fact.qualifiers[0].value.value) for fact in facts[:2]] == [
        ("population", 2020.0),
        ("capital", 2020.0),
    ]
    path.write_text(neo4j)
    facts, _ = read_file(path, "csv-edges")
    assert facts[0].head == "Person:1"
    assert [qualifier.relation for qualifier in facts[0].qualifiers] == ["role", "since", "weight", "tags", "tags"]


def test_the_json_example(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(blocks("graph-json")[0])
    facts, report = read_file(path, "graph-json")
    assert [fact.relation for fact in facts] == [":LABEL", "born", "ACTED_IN"]
    assert report.labels == {"1": "Keanu Reeves"}


def test_the_rdf_example(tmp_path):
    path = tmp_path / "facts.ttl"
    path.write_text(blocks("turtle")[0])
    facts, _ = read_file(path, "rdf")
    assert sorted(len(fact.qualifiers) for fact in facts) == [0, 1, 2]


def test_the_python_examples():
    exec("\n".join(blocks("python")), {})
