"""Nothing in a folder is passed over without a word: every file that was not read is named, with what reads it."""

from __future__ import annotations

import pytest

from hynt.formats.importing import ImportOptions, check_source, read_graph
from hynt.graph.fact import Fact, Number

FACTS = {
    "train.txt": "/m/1\tnear\t/m/2\n/m/2\tnear\t/m/3\n/m/3\tnear\t/m/1\n",
    "valid.txt": "/m/1\tnear\t/m/3\n",
    "test.txt": "/m/2\tnear\t/m/1\n",
}
BESIDE = {
    "numeric_literals.txt": "/m/1\tlongitude\t9.7\n/m/2\tlongitude\t-3\n",
    "text_literals.txt": "/m/1\tthe first\n/m/2\tthe second\n",
    "relation_names.txt": "near\tlies near\n",
    "entity_ids.dict": "/m/1\t0\n/m/2\t1\n",
    "types.txt": "/m/1\ttype\tcity\n",
    "LICENSE": "Do what you like.\n",
    "entities.txt": "/m/1\n/m/2\n",
    "msg.txt": "/m/8\tnear\t/m/9\n",
    "picture.png": b"\x89PNG\r\n\x00\x00",
}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "graph"
    place.mkdir()
    for name, text in (FACTS | BESIDE).items():
        (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (place / "inductive").mkdir()
    (place / "inductive" / "train.txt").write_text(FACTS["train.txt"])
    return place


def test_every_file_beside_the_splits_is_named_with_what_reads_it(folder):
    report, _ = check_source(folder, "hynt")
    found = {beside.file.removeprefix(f"{folder}/"): (beside.what, beside.option) for beside in report.beside}
    assert found == {
        "LICENSE": ("no facts that can be told from its first lines", ""),
        "entities.txt": ("names that the facts have too", ""),
        "entity_ids.dict": ("ids by number, which hynt gives itself", ""),
        "inductive": ("a folder", f"{folder}/inductive after {folder}, and --keep-splits for its own splits"),
        "msg.txt": (
            "the facts that are observed where an inductive benchmark is asked",
            "--train-file msg.txt, for a second graph whose valid and test facts are asked",
        ),
        "numeric_literals.txt": (
            "facts with numbers, 2 of the first 2 about entities of this graph",
            f"{folder}/numeric_literals.txt after {folder}, and --numeric auto",
        ),
        "picture.png": ("no facts that can be told from its first lines", ""),
        "relation_names.txt": (
            "texts for 1 of its first 1 relations",
            f"--relation-labels {folder}/relation_names.txt",
        ),
        "text_literals.txt": ("texts for 2 of its first 2 entities", f"--entity-labels {folder}/text_literals.txt"),
        "types.txt": ("facts, 1 of the first 1 about entities of this graph", f"{folder}/types.txt after {folder}"),
    }


def test_what_it_says_reads_the_file_and_leaves_it_out_of_the_list(folder, hynt, tmp_path):
    done = hynt(
        "data",
        "import",
        folder,
        folder / "numeric_literals.txt",
        "--numeric",
        "auto",
        "--out",
        tmp_path / "g",
        "--entity-labels",
        folder / "text_literals.txt",
    )
    assert done.code == 0, done.err
    assert "2 facts of further sources joined train." in done.out
    assert "2 relations, 1 of them with numbers." in done.out
    assert "unused-name" not in done.out
    assert "types.txt: facts, 1 of the first 1 about entities of this graph; to read it, add: " in done.out
    assert "numeric_literals.txt" not in done.out
    assert "text_literals.txt" not in done.out


def test_a_single_file_has_nothing_beside_it(folder):
    assert check_source(folder / "train.txt", "hynt")[0].beside == []


def test_a_second_source_joins_train_and_gives_no_answers_away(folder, tmp_path):
    more = tmp_path / "more.txt"
    more.write_text(FACTS["test.txt"] + FACTS["train.txt"] + BESIDE["numeric_literals.txt"] + "/m/4\tnear\t/m/1\n")
    graph = read_graph([folder, more], "hynt")
    assert {name: len(list(graph.facts(name))) for name in graph.splits} == {"train": 6, "valid": 1, "test": 1}
    assert Fact("/m/1", "longitude", Number(9.7, "9.7")) in list(graph.facts("train"))
    assert Fact("/m/2", "near", "/m/1") not in list(graph.facts("train"))
    assert graph.manifest.importing["added"] == {"facts": 3, "held_out": 1}
    assert graph.manifest.importing["duplicates"] == 3


def test_labels_that_belong_to_nothing_are_counted(tmp_path):
    (tmp_path / "facts.txt").write_text("Q17\tP1082_Q199\t5\nQ17\tP36\tQ1490\n")
    (tmp_path / "names").write_text("P1082\tpopulation\nP36\tcapital\nP999\tother\n")
    options = ImportOptions(relation_labels=tmp_path / "names")
    (hint,) = check_source(tmp_path / "facts.txt", "hynt", options)[0].hints
    assert hint == (
        f"2 of 3 labels in {tmp_path}/names belong to no relation of this graph, such as 'P1082', "
        "while it has 'P1082_Q199'."
    )
