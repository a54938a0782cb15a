"""Published graphs by name: their layout is known, and where their counts differ is said."""

from __future__ import annotations

import pytest

import hynt
from hynt.cli.application import run
from hynt.errors import DataError, UsageError
from hynt.formats.importing import ImportOptions, read_graph
from hynt.formats.registry import FORMATS, PUBLISHED


@pytest.fixture
def wd50k(tmp_path):
    folder = tmp_path / "wd50k" / "statements"
    folder.mkdir(parents=True)
    for name in ("train", "valid", "test"):
        (folder / f"{name}.txt").write_text("Q1,P1,Q2,P3,Q4\n")
    return folder.parent


def test_the_layout_licence_and_counts_of_a_published_graph_are_known(wd50k):
    graph = read_graph(wd50k, "", ImportOptions(published="wd50k"))
    assert (graph.name, graph.manifest.licence, graph.manifest.format) == ("WD50K", "CC BY 4.0", "stare")
    told = graph.manifest.importing["published"]
    assert told["name"] == "WD50K"
    assert told["differences"]["train"] == {"published": 166_435, "here": 1}


def test_the_command_says_where_counts_differ(capfd, wd50k, tmp_path):
    arguments = ["--published", "WD50K", "--from", str(wd50k), "--out", str(tmp_path / "g")]
    assert run(["data", "import", *arguments]) == 0
    assert "WD50K was published with 47,155 entities, and here are 3." in capfd.readouterr().out


def test_a_published_graph_of_several_parts_is_read_whole(tmp_path):
    for folder, text in (("", "a\tr\tb\n"), ("numbers", "a\theight\t1.7\n")):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in ("train", "valid", "test"):
            (tmp_path / folder / f"{name}.txt").write_text(text)
    graph = read_graph(tmp_path, "", ImportOptions(published="FB15K-237-numeric"))
    assert {name: len(table) for name, table in graph.splits.items()} == {"train": 2, "valid": 2, "test": 2}
    (tmp_path / "msg.txt").write_text("c\tr\td\n")
    asked = read_graph(tmp_path, "", ImportOptions(published="WD20K100-v1-asked"))
    assert [fact.head for fact in asked.facts("train")] == ["c"]


def test_what_is_not_known_or_not_there_is_said(wd50k, tmp_path):
    with pytest.raises(UsageError, match=r"no published graph 'WD50' is known\. Did you mean"):
        read_graph(wd50k, "", ImportOptions(published="WD50"))
    with pytest.raises(DataError, match="there are no splits of the graph here"):
        read_graph(tmp_path, "", ImportOptions(published="WD50K"))


def test_every_published_graph_has_a_format_and_counts():
    assert all(one.format in FORMATS and one.licence and one.counts for one in PUBLISHED.values())
    assert [one["name"] for one in hynt.list_published()] == list(PUBLISHED)


@pytest.mark.parametrize(
    "name, folder",
    [
        ("HN-YG", "HN-YG"),
        ("WD50K", "WD50K"),
        ("FB15K-237-numeric", "FB15K-237-numeric"),
        ("WD20K100-v1-asked", "WD20K100-v1"),
    ],
)
def test_the_real_ones_have_the_published_counts(shared_data, name, folder):
    graph = read_graph(shared_data / folder, "", ImportOptions(published=name))
    assert graph.manifest.importing["published"]["differences"] == {}
