"""RDF in which a few bytes stand for gigabytes, or that is nested until a parser's stack ends."""

from __future__ import annotations

import pytest

from hynt.errors import DataError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.rdf.parsing import statements
from hynt.limits import DEEPEST_RDF, SMALL_DOCUMENT
from tests.conftest import require

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


@pytest.fixture(autouse=True)
def _needs_pyoxigraph():
    from importlib.util import find_spec

    require("pyoxigraph", find_spec("pyoxigraph") is not None, "pip install 'hynt[rdf]'")


def xml(body: str, declared: str = "", more: str = "") -> str:
    return f'<?xml version="1.0"?>{declared}<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="http://e/" {more}>{body}</rdf:RDF>'


def entities_of_entities() -> str:
    levels = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, 9))
    declared = f'<!DOCTYPE rdf:RDF [<!ENTITY e0 "aaaaaaaaaaaaaaaaaaaaaa">{levels}]>'
    return xml('<rdf:Description rdf:about="http://e/a"><e:p>&e8;</e:p></rdf:Description>', declared)


def test_entities_are_refused_before_they_are_read(hynt, tmp_path):
    path = tmp_path / "bomb.rdf"
    path.write_text("\n\n" + entities_of_entities())
    assert path.stat().st_size < 750
    outcome = hynt.fair("data", "import", path, "--format", "rdf", "--out", tmp_path / "graph")
    assert outcome.code == 1
    assert "the XML declares a document type or entities" in outcome.said
    assert f"{path}:3" in outcome.said


@pytest.mark.parametrize("at", [2**16 - 1, 2**16, 2**16 + 1, 2**17 - 1])
def test_a_declaration_across_two_reads_is_found(hynt, tmp_path, at):
    path = tmp_path / "split.rdf"
    start = '<?xml version="1.0"?>'
    path.write_text(start + " " * (at - len(start) - 1) + entities_of_entities().removeprefix(start))
    outcome = hynt.fair("data", "import", path, "--format", "rdf", "--out", tmp_path / "graph")
    assert "the XML declares a document type or entities" in outcome.said


def test_comments_and_character_data_are_no_declarations(hynt, tmp_path):
    path = tmp_path / "fair.rdf"
    body = '<!-- a comment --><rdf:Description rdf:about="http://e/a"><e:p rdf:resource="http://e/b"/><e:q><![CDATA[x]]></e:q>'
    path.write_text(xml(body + "</rdf:Description>"))
    assert hynt.fair("data", "import", path, "--format", "rdf", "--out", tmp_path / "graph").code == 0


LONG = "x" * 1_000_000
BOMBS = {
    "prefix.ttl": f"@prefix p: <http://e/{LONG}> .\n" + "".join(f"p:a{i} p:r p:b{i} .\n" for i in range(1500)),
    "nested.ttl": "<http://a> <http://b> "
    + "<<( <http://a> <http://b> " * 200_000
    + "<http://x>"
    + " )>>" * 200_000
    + " .",
    "namespace.rdf": xml("<e:A><e:p>" * 2500 + "</e:p></e:A>" * 2500).replace("http://e/", f"http://e/{LONG}"),
}


@pytest.mark.parametrize("name", ["prefix.ttl", "nested.ttl", pytest.param("namespace.rdf", marks=pytest.mark.slow)])
def test_a_document_that_needs_too_much_is_taken_for_a_bomb(hynt, tmp_path, name):
    path = tmp_path / name
    path.write_text(BOMBS[name])
    outcome = hynt.fair("data", "import", path, "--format", "rdf", "--out", tmp_path / "graph")
    assert outcome.code == 1
    assert "it is taken for a bomb" in outcome.said
    assert not (tmp_path / "graph").exists()


@pytest.mark.slow
def test_a_tag_of_very_many_names_is_taken_for_a_bomb(tmp_path):
    """The parser compares each with all before it."""
    path = tmp_path / "names.rdf"
    path.write_text(xml("", more=" ".join(f'xmlns:a{i}="e:"' for i in range(150_000))))
    with pytest.raises(DataError, match="reading it takes more than its size accounts for: it is taken for a bomb"):
        list(statements(path, ReadOptions(), ReadReport()))


def test_a_text_of_very_many_lines_is_read_once_not_once_a_line(hynt, tmp_path):
    path = tmp_path / "long.ttl"
    described = "e:r <http://www.w3.org/2000/01/rdf-schema#comment>"
    path.write_text(f'@prefix e: <http://e/> .\n{described} """{"y" + chr(10) * 400_000}""" .\ne:a e:r e:b .\n!')
    outcome = hynt.fair("data", "check", path, "--format", "rdf")
    assert outcome.code == 1
    assert f"{path}:400004" in outcome.said


def test_a_line_nested_without_end_costs_one_record(hynt, tmp_path):
    path = tmp_path / "nested.nt"
    deep = "<http://a> <http://b> " + "<<( <http://a> <http://b> " * 50_000 + "<http://x>" + " )>>" * 50_000 + " .\n"
    path.write_text("<http://a> <http://b> <http://c> .\n" * 3 + deep + "<http://a> <http://b> <http://d> .\n")
    outcome = hynt.fair("data", "import", path, "--format", "rdf", "--out", tmp_path / "graph")
    assert outcome.code == 1
    assert f"nested more than {DEEPEST_RDF} deep" in outcome.said
    assert f"{path}:4" in outcome.said
    again = ("data", "import", path, "--format", "rdf", "--out", tmp_path / "graph", "--on-error", "skip")
    assert hynt.fair(*again).code == 0


def test_a_star_line_may_not_be_a_document(hynt, tmp_path):
    path = tmp_path / "star.nt"
    line = "<< <http://a> <http://b> <http://c> >> <http://q> <http://v> . "
    path.write_text(line + f"@prefix p: <http://{'x' * SMALL_DOCUMENT}> .\n")
    outcome = hynt.fair("data", "import", path, "--format", "rdf", "--out", tmp_path / "graph")
    assert outcome.code == 1
    assert "a line about a triple is longer" in outcome.said


@pytest.mark.parametrize("name", ["many.ttl", "many.rdf"])
def test_a_large_document_reads_as_its_triples(tmp_path, name):
    """What is parsed in a process of its own is what N-Triples say, line by line."""
    count = 1_300
    if name.endswith("ttl"):
        lines = ["@prefix e: <http://e/> ."]
        lines += [f'e:a{i} e:p e:b{i} ; e:q "text \\u2028 {i}"@en , [ e:r {i} ] .' for i in range(count)]
    else:
        lines = xml("\n").split("\n")
        lines[1:1] = [f'<e:A rdf:about="http://e/a{i}"><e:p>text {i}</e:p></e:A>' for i in range(count)]
    path, report = tmp_path / name, ReadReport()
    path.write_text("\n".join(lines))
    assert path.stat().st_size > SMALL_DOCUMENT
    found = list(statements(path, ReadOptions(), report))
    places = {statement.line for statement in found}
    assert places == set(range(2, count + 2))
    assert report.bytes_read == path.stat().st_size
    assert len(found) == (4 if name.endswith("ttl") else 2) * count
    path.write_text("\n".join([*lines[:900], "oops <", *lines[900:]]))
    with pytest.raises(DataError, match="the RDF is broken here") as problem:
        list(statements(path, ReadOptions(), ReadReport()))
    assert problem.value.where.startswith(f"{path}:90")
