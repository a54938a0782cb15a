"""Benchmarks in several parts: an observed graph in a file of its own, and numbers with splits of their own."""

from __future__ import annotations

import gzip

import pytest

import hynt
from hynt.errors import UsageError


@pytest.fixture
def folder(tmp_path):
    for name, lines in {
        "train": ["a\tr\tb", "b\tr\tc"],
        "msg": ["x\tr\ty\tq\tz", "y\tr\tx"],
        "valid": ["x\tr\tz"],
        "test": ["z\tr\ty"],
    }.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_another_file_can_be_the_training_split_and_the_usual_one_is_named(folder, tmp_path):
    graph = hynt.import_graph(folder, format="hynt", train_file="msg.txt")
    assert {name: len(table) for name, table in graph.splits.items()} == {"train": 2, "valid": 1, "test": 1}
    assert set(graph.vocabulary.entities) == {"x", "y", "z"}
    assert graph.manifest.importing["beside"] == ["train.txt"]
    assert graph.manifest.importing["files"] == ["msg.txt", "valid.txt", "test.txt"]


def test_what_is_no_training_file_is_refused(folder):
    with pytest.raises(UsageError, match=r"--train-file: there is no file 'massage\.txt' in"):
        hynt.import_graph(folder, format="hynt", train_file="massage.txt")
    with pytest.raises(UsageError, match="only a folder with valid or test files"):
        hynt.import_graph(folder / "train.txt", format="hynt", train_file="msg.txt")


def test_a_further_source_keeps_its_splits_when_told_to(folder):
    (folder / "numbers").mkdir()
    for name, line in {"train": "a\theight\t1.5", "valid": "b\theight\t1.7", "test": "c\theight\t1.9"}.items():
        (folder / "numbers" / f"{name}.txt.gz").write_bytes(gzip.compress(f"{line}\n".encode()))
    (folder / "msg.txt").unlink()
    sources = [folder, folder / "numbers"]
    kept, joined = (hynt.import_graph(sources, format="hynt", keep_splits=keep) for keep in (True, False))
    assert [len(kept.split(name)) for name in ("train", "valid", "test")] == [3, 2, 2]
    assert [len(joined.split(name)) for name in ("train", "valid", "test")] == [5, 1, 1]
    assert [fact.relation for fact in kept.facts("test")] == ["r", "height"]


def test_the_published_folders(shared_data):
    asked = hynt.import_graph(shared_data / "WD20K100-v1", format="hynt", train_file="msg.txt")
    assert [len(asked.split(name)) for name in ("train", "valid", "test")] == [2667, 295, 365]
    assert len(asked.entities) == 4286
    train = hynt.import_graph(shared_data / "WD20K100-v1" / "train.txt", format="hynt", split="1:0:0")
    assert (len(train), len(train.splits)) == (7785, 1)
    numbers = hynt.import_graph(shared_data / "FB15K-237-numeric" / "numbers", format="hynt")
    assert [len(numbers.split(name)) for name in ("train", "valid", "test")] == [18615, 2306, 2329]
    assert all(relation.kind == "number" for relation in numbers.relations)
