"""Save → load is identity; the folder is whole or absent; any changed byte is found and named."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import DataError, UsageError
from hynt.graph.assembly import Assembler
from hynt.graph.encoding import RelationDeclaration
from hynt.graph.fact import fact
from hynt.graph.knowledge_graph import Manifest
from hynt.graph.storage import load_graph, save_assembly, save_graph
from hynt.graph.vocabulary import Entity, Vocabulary
from tests.graph.fact_strategies import facts
from tests.graph.small_graphs import assembled

MADE = [fact(f"e{index % 7}", "r", f"e{index % 5}", [("year", index)] * (index % 3)) for index in range(60)] + [
    fact("e0", "height", 1.85),
    fact("e1", "height", -0.0),
]


@pytest.fixture
def folder(tmp_path):
    save_graph(assembled(MADE), tmp_path / "graph")
    return tmp_path / "graph"


@given(made=st.lists(facts(), min_size=1, max_size=30))
def test_save_then_load_is_identity(made, tmp_path_factory):
    graph = assembled(made)
    folder = tmp_path_factory.mktemp("graphs") / "graph"
    save_graph(graph, folder)
    assert load_graph(folder) == graph


def test_names_types_and_source_come_back(tmp_path):
    details = {"Q1": Entity("Q1", "Universe", "thing")}
    with Assembler(details=details) as assembler:
        assembler.encoder.declare_relation(RelationDeclaration("P1", "number", "kg", "log", "mass"))
        assembler.add(fact("Q1", "P1", 3))
        manifest = Manifest(name="tiny", source="typed by hand", format="test", licence="CC0-1.0")
        save_assembly(assembler.finish(), manifest, tmp_path / "graph")
    graph = load_graph(tmp_path / "graph")
    assert graph.entities == (Entity("Q1", "Universe", "thing"),)
    assert (graph.relations[0].label, graph.relations[0].scale) == ("mass", "log")
    assert (graph.name, graph.manifest.licence, graph.manifest.source) == ("tiny", "CC0-1.0", "typed by hand")
    assert graph.manifest.counts == {"entities": 1, "relations": 1, "number_relations": 1, "train": 1}


def test_what_relations_mean_comes_back_and_a_graph_without_it_is_as_it_was(tmp_path):
    plain = assembled(MADE)
    save_graph(plain, tmp_path / "plain")
    assert "descriptions" not in (tmp_path / "plain" / "manifest.json").read_text()
    known = plain.vocabulary.relations
    told = tuple(one._replace(description="how tall") if one.name == "height" else one for one in known)
    save_graph(replace(plain, vocabulary=Vocabulary(plain.vocabulary.entities, told)), tmp_path / "told")
    many = tuple(one._replace(description="語" * 2_000_000) for one in told)
    with pytest.raises(DataError, match="descriptions of relations are too long together"):
        save_graph(replace(plain, vocabulary=Vocabulary(plain.vocabulary.entities, many)), tmp_path / "many")
    assert not (tmp_path / "many").exists()
    assert {one.name: one.description for one in load_graph(tmp_path / "told").relations} == {
        "r": "",
        "year": "",
        "height": "how tall",
    }
    for name in ("relations.parquet", "entities.parquet", "train.parquet"):
        assert (tmp_path / "told" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()


def test_other_tools_read_the_columns_as_documented(folder):
    path = folder / "train.parquet"
    columns = ["head", "relation", "tail_entity", "tail_number", "tail_literal", "qualifiers"]
    assert list(pd.read_parquet(path).columns) == columns
    assert pl.read_parquet(path).columns == columns
    files = [str(folder / f"{split}.parquet") for split in ("train", "valid", "test")]
    (tallest,) = duckdb.sql(
        f"select head, tail_number, tail_literal from read_parquet({files}) "
        "where relation = 'height' and tail_number > 0"
    ).fetchall()
    assert tallest == ("e0", 1.85, "1.85")


def test_every_changed_byte_is_found_and_named(folder):
    for path in sorted(folder.iterdir()):
        original = path.read_bytes()
        for place in range(0, len(original), max(1, len(original) // 60)):
            damaged = bytearray(original)
            damaged[place] ^= 0x41
            path.write_bytes(bytes(damaged))
            with pytest.raises(DataError) as refused:
                load_graph(folder)
            assert refused.value.where == str(path)
        path.write_bytes(original)
    load_graph(folder)


@pytest.mark.parametrize("name", ["train.parquet", "entities.parquet", "relations.parquet"])
def test_a_missing_or_shortened_file_is_named(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1])
    with pytest.raises(DataError, match="the file was changed") as problem:
        load_graph(folder)
    assert problem.value.where == str(folder / name)
    (folder / name).unlink()
    with pytest.raises(DataError, match="the file is missing"):
        load_graph(folder)


@pytest.mark.parametrize("version, word", [(2, "newer"), (0, "unknown"), ("1", "unknown"), (None, "unknown")])
def test_another_schema_version_is_refused_by_name(folder, version, word):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "schema_version": version}))
    with pytest.raises(DataError, match=rf"schema version {version!r}, {word} to this hynt, which reads version 1"):
        load_graph(folder)


def test_a_folder_that_is_no_graph_says_so(tmp_path):
    with pytest.raises(DataError, match=r"not a saved graph: it has no manifest\.json"):
        load_graph(tmp_path)
    with pytest.raises(UsageError, match="there is no graph at"):
        load_graph(tmp_path / "nothing")


def test_an_existing_folder_is_not_replaced_unless_asked(folder, tmp_path):
    other = assembled([fact("x", "r", "y")])
    with pytest.raises(UsageError, match="exists already"):
        save_graph(other, folder)
    save_graph(other, folder, overwrite=True)
    assert load_graph(folder) == other
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_folder_with_other_things_in_it_is_never_replaced(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is not a saved graph, so it is not replaced"):
        save_graph(assembled(MADE), tmp_path / "home", overwrite=True)
    assert (tmp_path / "home" / "letter.txt").read_text() == "dear"


def test_a_failure_while_writing_leaves_nothing(tmp_path, monkeypatch):
    def full_disk(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        save_graph(assembled(MADE), tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_replacing_keeps_the_old_graph(folder, tmp_path, monkeypatch):
    before = load_graph(folder)
    monkeypatch.setattr(Manifest, "to_json", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_graph(assembled([fact("x", "r", "y")]), folder, overwrite=True)
    monkeypatch.undo()
    assert load_graph(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def _interrupted(*_):
    raise KeyboardInterrupt
