"""Sidecars: what they may say, what is refused, and that a written graph comes back with all of it."""

from __future__ import annotations

import gzip
import json

import pytest

from hynt.errors import DataError
from hynt.formats.declarations import Declarations, read_declarations
from hynt.formats.from_python import graph_from_facts
from hynt.formats.importing import ImportOptions, read_graph
from hynt.formats.registry import get_format
from hynt.graph.encoding import RelationDeclaration
from hynt.graph.vocabulary import Entity, Relation


def test_a_folder_without_sidecars_declares_nothing(tmp_path):
    assert read_declarations(tmp_path) == Declarations()
    (tmp_path / "entities.tsv").write_text("id\nQ1\n")
    (tmp_path / "facts.tsv").write_text("")
    assert read_declarations(tmp_path / "facts.tsv") == Declarations()


def test_tables_give_labels_kinds_units_and_scales(tmp_path):
    (tmp_path / "entities.tsv").write_text("id\tlabel\ttype\nQ1\tUniverse\t\nQ2\t\tplanet\n")
    (tmp_path / "relations.tsv").write_text(
        "relation\tkind\tunit\tcount\tscale\nGDP\tnumeric\tUSD\t162\tlog\nnear\tdiscrete\t\t5\t\nsize\t\tkg\t1\t\n"
    )
    declared = read_declarations(tmp_path)
    assert declared.entities == (Entity("Q1", "Universe"), Entity("Q2", "", "planet"))
    assert declared.relations == (
        RelationDeclaration("GDP", "number", "USD", "log"),
        RelationDeclaration("near", "entity"),
        RelationDeclaration("size", None, "kg"),
    )
    assert declared.fixes_order


def test_what_relations_mean_is_read_from_tables_and_label_files(tmp_path):
    (tmp_path / "relations.jsonl").write_text(
        json.dumps({"id": "GDP", "description": " what a country\n makes\tin a year "})
        + "\n"
        + json.dumps({"id": "long", "description": "many words " * 100})
        + "\n"
    )
    (tmp_path / "names").write_text("GDP\tgross product\nnear\tis near\twithin sight\n")
    declared = {one.name: one for one in read_declarations(tmp_path, relation_labels=tmp_path / "names").relations}
    assert declared["GDP"] == RelationDeclaration(
        "GDP", label="gross product", description="what a country makes in a year"
    )
    assert declared["near"].description == "within sight"
    assert declared["long"].description.endswith(" many words …")
    assert len(declared["long"].description) < 410
    (tmp_path / "names").write_text("Q1\tUniverse\teverything\n")
    with pytest.raises(DataError, match=r"names:1: is not a pair of an id and a label\. Write: id TAB label\."):
        read_declarations(tmp_path, entity_labels=tmp_path / "names")


def test_what_relations_mean_survives_an_export(tmp_path):
    made = graph_from_facts(
        [("Ann", "height", 1.7), ("Ann", "knows", "Bob")], relation_descriptions={"height": "how tall someone is"}
    )
    for name in ("jsonl", "tsv", "rdf"):
        get_format(name).write(made, tmp_path / name)
        again = read_graph(tmp_path / name, name)
        held = {one.name: one.description for one in again.relations}
        assert held == {"height": "how tall someone is", "knows": ""}, name


def test_id_maps_fix_the_order_and_tables_add_to_it(tmp_path):
    (tmp_path / "entity2id.txt").write_text("2\nQ2\t1\nQ1\t0\n")
    (tmp_path / "relation2id.txt").write_text("P1\t0\n")
    (tmp_path / "entities.jsonl.gz").write_bytes(gzip.compress(b'{"id": "Q2", "label": "Earth"}\n{"id": "Q3"}\n'))
    declared = read_declarations(tmp_path)
    assert declared.entities == (Entity("Q1"), Entity("Q2", "Earth"), Entity("Q3"))
    assert declared.relations == (RelationDeclaration("P1"),)


def test_label_files_are_given_by_path(tmp_path):
    (tmp_path / "names").write_text("Q1\tUniverse\nQ1\tUniverse\n")
    declared = read_declarations(tmp_path, entity_labels=tmp_path / "names", relation_labels=tmp_path / "names")
    assert declared[:3] == Declarations((Entity("Q1", "Universe"),), (RelationDeclaration("Q1", label="Universe"),))[:3]
    assert [(file.what, file.ids) for file in declared.labelled] == [("entity", ("Q1",)), ("relation", ("Q1",))]


@pytest.mark.parametrize(
    "name, text, message",
    [
        (
            "entities.tsv",
            "label\nUniverse\n",
            "entities.tsv:1: the first line is not a header with an id column. Name the columns: id, label, …",
        ),
        (
            "entities.tsv",
            "id\tlabel\nQ1\n",
            "entities.tsv:2: 1 columns where the header has 2. Separate columns with one tab each.",
        ),
        (
            "entities.tsv",
            "id\tlabels\nQ1\tx\n",
            "entities.tsv:2: the column 'labels' is not known here. Did you mean label? Known here: id, label, type.",
        ),
        ("entities.tsv", "id\nQ1\nQ1\n", "entities.tsv:3: 'Q1' is listed twice. Keep one of the lines."),
        ("entities.tsv", "id\tlabel\n\tx\n", "entities.tsv:2: the id is empty. Give it a name, or remove the record."),
        (
            "entities.tsv",
            "id\nQ\0\n",
            "entities.tsv:2: byte 2 is NUL. The file is damaged or not text: write it again.",
        ),
        ("entities.jsonl", '{"id": 5}\n', "entities.jsonl:1: the value of 'id' is not a text. Write it in quotes."),
        (
            "entities.jsonl",
            "{\n",
            "entities.jsonl:1: no valid JSON at character 2: Expecting property name enclosed in double "
            "quotes. Write one JSON object per line.",
        ),
        (
            "entities.jsonl",
            '{"id": "a", "label": "\\u001b"}\n',
            "entities.jsonl:1: the text holds the control character U+001B. Remove it: names are printable text.",
        ),
        (
            "relations.tsv",
            "id\tkind\nr\tnumber2\n",
            "relations.tsv:2: 'number2' is not a kind of a relation. Did you mean number? Known here: entity, "
            "discrete, number, numeric.",
        ),
        (
            "relations.tsv",
            "id\tscale\nr\tLOG\n",
            "relations.tsv:2: 'LOG' is not a scale of a relation. Did you mean log? Known here: linear, log.",
        ),
        ("entity2id.txt", "Q1\tx\n", "entity2id.txt:1: is not a pair of a name and an id. Write: name TAB id."),
        (
            "entity2id.txt",
            "Q1\t0\nQ2\t2\n",
            "entity2id.txt: the ids are not 0 to 1 without gaps. Number the names from 0.",
        ),
        ("entity2id.txt", "Q1\t0\nQ2\t0\n", "entity2id.txt:2: '0' is listed twice. Keep one of the lines."),
        ("entity2id.txt", "Q1\t0\nQ1\t1\n", "entity2id.txt:2: 'Q1' is listed twice. Keep one of the lines."),
        (
            "entity2id.txt",
            "3\nQ1\t0\n",
            "entity2id.txt:1: the first line says 3 names, but there are 1. The file may be cut short: get "
            "it again or correct the line.",
        ),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as error:
        read_declarations(tmp_path)
    assert str(error.value) == f"{tmp_path}/{message}"


def test_two_tables_for_one_thing_are_refused(tmp_path):
    (tmp_path / "entities.tsv").write_text("id\n")
    (tmp_path / "entities.jsonl").write_text("")
    with pytest.raises(DataError, match=r"both entities.jsonl and entities.tsv are there, and could disagree"):
        read_declarations(tmp_path)


@pytest.mark.parametrize("line", ["Q1", "Q1\t", "\tx", "Q1\ta\tb", "Q1\tx\nQ1\ty"])
def test_bad_label_files_are_refused(tmp_path, line):
    (tmp_path / "names").write_text(line + "\n")
    with pytest.raises(DataError, match=r"names:\d: ('Q1' is listed twice|is not a pair of an id and a label)"):
        read_declarations(tmp_path, entity_labels=tmp_path / "names")


@pytest.mark.parametrize("format_name", ["tsv", "jsonl", "hynt"])
def test_export_and_import_keep_ids_labels_units_and_scales(tmp_path, format_name):
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.jsonl").write_text(
        '{"head": "b", "relation": "weight", "tail": {"number": 176.4, "unit": "lb"}}\n'
        '{"head": "a", "relation": "knows", "tail": "b", "qualifiers": [["since", {"date": "1922-01-28"}]]}\n'
    )
    (source / "test.jsonl").write_text('{"head": "c", "relation": "knows", "tail": "a"}\n')
    (source / "entities.jsonl").write_text(
        '{"id": "c", "label": "Cäsar", "type": "human"}\n{"id": "b", "label": "B"}\n'
    )
    (source / "relations.jsonl").write_text('{"id": "weight", "label": "Weight", "kind": "number", "scale": "log"}\n')
    graph = read_graph(source, "jsonl")
    assert graph.relations[0] == Relation("weight", "number", "kg", "log", "Weight")
    assert graph.entities[:2] == (Entity("c", "Cäsar", "human"), Entity("b", "B"))
    get_format(format_name).write(graph, tmp_path / "out")
    again = read_graph(tmp_path / "out", format_name, ImportOptions(units="keep"))
    assert again.vocabulary == graph.vocabulary
    assert again.entities == graph.entities
    assert [fact.key() for fact in again.facts()] == [fact.key() for fact in graph.facts()]
    if format_name != "hynt":
        assert again == graph
