from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.formats.importing import read_graph
from hynt.formats.plain import write_fact
from hynt.formats.registry import get_format
from hynt.graph.fact import Fact, Qualifier
from tests.formats.graphs import facts, only_problem, read_text


def test_all_values_are_entities(tmp_path):
    found, report = read_text("Q1,P1,Q2\r\nQ1,P2,1980,P3,Q4,P3,Q5\n\n", "stare", tmp_path)
    assert found == [Fact("Q1", "P1", "Q2"), Fact("Q1", "P2", "1980", (Qualifier("P3", "Q4"), Qualifier("P3", "Q5")))]
    assert report.read == 2


@pytest.mark.parametrize(
    "line, reason, what, advice",
    [
        (
            "Q1\tP1\tQ2",
            "missing-columns",
            "1 column where a fact has at least 3: head, relation, tail.",
            "Separate them with a comma.",
        ),
        (
            "Q1,P1,Q2,P3",
            "qualifier-without-value",
            "the last qualifier, 'P3', has no value.",
            "After head, relation and tail come pairs: a qualifier's relation and its value.",
        ),
        ("Q1,,Q2", "empty-name", "the relation is empty.", "Give it a name, or remove the record."),
    ],
)
def test_bad_lines_are_refused_in_words(tmp_path, line, reason, what, advice):
    assert only_problem(line, "stare", tmp_path) == ("facts:1", reason, what, advice)


def test_a_written_folder_is_the_same_graph(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.txt").write_text("Q1,P1,Q2\nQ3,P2,Q1,P3,Q4\n")
    (source / "valid.txt").write_text("Q2,P1,Q3\n")
    graph = read_graph(source, "stare")
    get_format("stare").write(graph, tmp_path / "out")
    assert (tmp_path / "out" / "train.txt").read_text() == (source / "train.txt").read_text()
    assert read_graph(tmp_path / "out", "stare") == graph


@pytest.mark.parametrize(
    "line, what",
    [
        ("a\tr\t=5", "the format stare cannot write numbers, and a fact of 'a' has one."),
        ("a,b\tr\tc", "the format stare cannot write the name 'a,b': it has no way to write a comma"),
        ("a\\nb\tr\tc", "the format stare cannot write the name 'a\\nb'"),
    ],
)
def test_what_it_cannot_say_is_refused(tmp_path, line, what):
    (tmp_path / "in.tsv").write_text(line + "\n")
    graph = read_graph(tmp_path / "in.tsv", "tsv")
    with pytest.raises(DataError) as error:
        get_format("stare").write(graph, tmp_path / "out")
    assert str(error.value).startswith(what)
    assert not (tmp_path / "out").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(facts, max_size=8))
def test_a_fact_is_written_so_that_it_reads_back_or_not_at_all(tmp_path, given_facts):
    lines, expected = [], []
    for fact in given_facts:
        try:
            lines.append(write_fact(fact))
        except DataError as error:
            assert error.advice.startswith("Export to tsv")
        else:
            expected.append(fact)
    found, report = read_text("\n".join(["a,r,b", *lines]), "stare", tmp_path)
    assert found == [Fact("a", "r", "b"), *expected]
    assert not report.rejected
