"""A graph whose numbers nobody marked gets one hint, from training and from comparing; others get none."""

from __future__ import annotations

import pytest

from hynt.formats.from_python import graph_from_facts
from hynt.formats.outcome import hint_at_numbers
from hynt.graph.storage import save_graph

PEOPLE = [
    (f"person {number}", "height, cm", str(150 + number), [("year", str(2000 + number % 9))]) for number in range(20)
] + [(f"person {number}", "lives in", f"town {number % 3}") for number in range(20)]


@pytest.fixture
def unmarked(tmp_path):
    save_graph(graph_from_facts(PEOPLE, name="people"), tmp_path / "people")
    return tmp_path / "people"


def test_relations_whose_values_are_written_like_numbers_are_found():
    assert "values of height, cm, year look like numbers" in hint_at_numbers(graph_from_facts(PEOPLE))


@pytest.mark.parametrize(
    "facts",
    [
        [*PEOPLE, ("person 1", "weight", 70.0)],  # somebody knows how numbers are marked
        [("12", "knows", "17"), ("17", "knows", "12")],  # entities whose names are numbers
        [("a", "lives in", "town"), ("a", "born on", "about 1990")],
    ],
)
def test_other_graphs_get_no_hint(facts):
    assert hint_at_numbers(graph_from_facts(facts)) is None


def test_training_and_comparing_say_it_once(unmarked, tmp_path, hynt):
    small = ["--device", "cpu", "--epochs", "1", "--preset", "hynt-small"]
    trained = hynt("train", unmarked, "--out", tmp_path / "run", *small)
    assert trained.code == 0
    words = " ".join(trained.err.split())
    assert words.count("note: this graph holds no numbers, but values of height, cm, year look like numbers.") == 1
    assert "import the graph again with --numeric auto" in words
    again = hynt("train", unmarked, "--out", tmp_path / "run", "--resume", "--device", "cpu")
    assert "holds no numbers" not in again.err
    compared = hynt(
        "compare",
        "--graph",
        unmarked,
        "--models",
        "transea",
        "--minutes-per-model",
        "0.001",
        "--device",
        "cpu",
        "--out",
        tmp_path / "compared",
    )
    assert compared.err.count("this graph holds no numbers") == 1
