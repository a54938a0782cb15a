from __future__ import annotations

import os
from pathlib import Path

import pytest

from hynt.errors import DataError, UsageError
from hynt.formats.registry import FORMATS, get_format
from hynt.formats.source_files import source_files, title_of


def fill(folder, *names):
    for name in names:
        (folder / name).write_text("")


def parts(folder, format_name="hynt"):
    return [(part.path.name, part.split) for part in source_files(folder, get_format(format_name))]


def test_a_file_is_one_part_whatever_its_name(tmp_path):
    fill(tmp_path, "odd.name")
    assert parts(tmp_path / "odd.name") == [("odd.name", None)]


def test_split_files_are_taken_and_nothing_else(tmp_path):
    fill(tmp_path, "test.txt", "train.txt.gz", "valid.txt", "LICENSE.txt", "entity2id.txt", "notes.md")
    assert parts(tmp_path) == [("train.txt.gz", "train"), ("valid.txt", "valid"), ("test.txt", "test")]


@pytest.mark.parametrize("name", ["dev", "validation", "Valid"])
def test_validation_has_several_names(tmp_path, name):
    fill(tmp_path, f"{name}.tsv.zst", "train.tsv")
    assert parts(tmp_path, "tsv") == [("train.tsv", "train"), (f"{name}.tsv.zst", "valid")]


def test_published_names_and_shards_are_known(tmp_path):
    fill(tmp_path, "n-ary_train.json", "n-ary_valid.json", "n-ary_test.json")
    assert [split for _, split in parts(tmp_path, "nary-json")] == ["train", "valid", "test"]
    shards = tmp_path / "shards"
    shards.mkdir()
    fill(shards, "train-10-of-11.jsonl", "train-9-of-11.jsonl", "test.jsonl")
    assert parts(shards, "jsonl") == [
        ("train-9-of-11.jsonl", "train"),
        ("train-10-of-11.jsonl", "train"),
        ("test.jsonl", "test"),
    ]


def test_without_split_names_every_file_counts_but_sidecars(tmp_path):
    fill(tmp_path, "b10.tsv", "b9.tsv.bz2", "entities.tsv", "relations.tsv", ".hidden.tsv", "x.txt")
    assert parts(tmp_path, "tsv") == [("b9.tsv.bz2", None), ("b10.tsv", None)]


def test_two_files_for_one_split_are_refused(tmp_path):
    fill(tmp_path, "train.txt", "train.txt.gz")
    with pytest.raises(DataError) as error:
        parts(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}: both train.txt and train.txt.gz hold the train split. Keep one of them in the folder."
    )


def test_a_whole_split_beside_its_shards_is_refused(tmp_path):
    fill(tmp_path, "train-0.txt", "train.txt")
    with pytest.raises(DataError, match=r"both train.txt and train-0.txt hold the train split"):
        parts(tmp_path)


def test_nothing_found_says_what_was_looked_for(tmp_path):
    fill(tmp_path, "facts.csv")
    with pytest.raises(DataError) as error:
        parts(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}: no files of the format hynt in this folder: looked for train, valid and test, or any *.txt, "
        "plain or with .gz, .bz2, .zst. Give the folder that holds the files, or one file."
    )


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="missing: cannot be read: no such file"):
        parts(tmp_path / "missing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(DataError, match="loop: cannot be read: too many levels of symbolic links"):
        parts(tmp_path / "loop")
    os.mkfifo(tmp_path / "train.txt")
    with pytest.raises(DataError, match=r"train.txt: is not a regular file"):
        parts(tmp_path)
    with pytest.raises(DataError, match=r"train.txt: is not a regular file"):
        parts(tmp_path / "train.txt")
    (tmp_path / "test.tsv").symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"test.tsv: is not a regular file"):
        parts(tmp_path, "tsv")


def test_a_graph_is_called_after_its_source_without_the_ending(tmp_path, monkeypatch):
    folder = tmp_path / "my.jsonl"
    folder.mkdir()
    sources = ("a.jsonl", "a.b.jsonl.gz", "a.txt", ".jsonl")
    named = {name: title_of(tmp_path / name, get_format("jsonl")) for name in sources}
    assert named == {"a.jsonl": "a", "a.b.jsonl.gz": "a.b", "a.txt": "a.txt", ".jsonl": ".jsonl"}
    assert title_of(folder, get_format("jsonl")) == "my.jsonl"
    monkeypatch.chdir(folder)
    assert title_of(Path(), get_format("jsonl")) == "my.jsonl"


def test_an_unknown_format_is_answered_with_the_nearest():
    with pytest.raises(UsageError) as error:
        get_format("stair")
    assert str(error.value).startswith(
        "--format: unknown format 'stair'. Did you mean stare? Known here: hynt, stare, "
    )
    with pytest.raises(UsageError, match=r"unknown format 'csv'\. Did you mean csv-edges\?"):
        get_format("csv")
    with pytest.raises(UsageError) as error:
        get_format("", "facts.CSV.gz")
    assert error.value.what == "no format was given."
    assert error.value.advice.startswith(
        "By the name of facts.CSV.gz, say --format stare or --format csv-edges. Known here: hynt, stare, nary-json, "
    )
    assert all(name == known.name and known.summary and known.suffixes for name, known in FORMATS.items())
