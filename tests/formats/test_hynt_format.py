"""The paper's folders: literal styles, count lines, oddities, and writing them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.formats.hynt import read_token, write_fact, write_token
from hynt.formats.importing import ImportOptions, read_graph
from hynt.formats.registry import get_format
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.units.dates import decimal_year
from tests.formats.graphs import facts, only_problem, read_file, read_text, values


@pytest.mark.parametrize(
    "token, value, unit",
    [
        ('"73.32"^^<km2>', 73.32, "km2"),
        ('"687"^^</km2>', 687, "/km2"),
        ('"-0.2"^^<percent>', -0.2, "percent"),
        ('"2016"^^xsd:integer', 2016, ""),
        ('"33.6"^^<http://www.w3.org/2001/XMLSchema#decimal>', 33.6, ""),
        ('"1949-12-25"^^xsd:date', decimal_year(1949, 12, 25), "date"),
        ('"1980"^^<http://www.w3.org/2001/XMLSchema#gYear>', 1980, "date"),
        ('"1824-12"^^<http://www.w3.org/2001/XMLSchema#gYearMonth>', decimal_year(1824, 12), "date"),
        ('"1949-##-##"^^xsd:date', 1949, "date"),
        ('"62"', 62, ""),
        ("+0.557", 0.557, ""),
        ("39025505.0", 39025505, ""),
        ("-22.89824", -22.89824, ""),
        ("10", 10, ""),
        ("4.2681785207785885e-06", 4.2681785207785885e-06, ""),
        ("+00000002011-01-01T00:00:00Z", 2011, "date"),
        ("+1950-00-00T00:00:00Z", 1950, "date"),
        ("-0044-03-15T00:00:00Z", decimal_year(-43, 3, 15), "date"),
    ],
)
def test_every_published_style_of_number_is_known(token, value, unit):
    assert read_token(token) == Number(value, token, unit)


@pytest.mark.parametrize("token", ["Q42", "YAGO_10", "m.0", "7up", "2011-01-01", "+x", "nancy", "é", "1.2.3", "."])
def test_everything_else_is_an_entity(token):
    assert read_token(token) == token


@pytest.mark.parametrize(
    "token, reason, what",
    [
        ("nan", "bad-number", "'nan' is not a finite number."),
        ("-inf", "bad-number", "'-inf' is not a finite number."),
        ("1e999", "bad-number", "'1e999' is too large for a double-precision number."),
        ("１２", "bad-number", "'１２' is written with characters that are not ASCII."),
        ('"abc"^^<km2>', "bad-number", "'abc' is not a number."),
        ('"abc"', "bad-number", "'abc' is not a number."),
        ('"abc"@en', "bad-literal", '"abc"@en is not a literal that this format knows.'),
        ('"3"^^km2', "bad-literal", '"3"^^km2 is not a literal that this format knows.'),
        ('"3', "bad-literal", '"3 is not a literal that this format knows.'),
        (
            '"a"^^xsd:string',
            "unknown-datatype",
            '"a"^^xsd:string has the datatype xsd:string, which is neither a number nor a date.',
        ),
        ('"soon"^^xsd:date', "bad-date", "'soon' is not a date."),
        ("+0000-01-01T00:00:00Z", "bad-date", "'+0000-01-01T00:00:00Z' has year 0, which Wikidata's count lacks."),
    ],
)
def test_broken_numbers_are_refused_in_words(tmp_path, token, reason, what):
    where, *rest = only_problem(f"a\tr\t{token}\n", "hynt", tmp_path)
    assert where == "facts:1"
    assert rest[:2] == [reason, what]
    assert rest[2]


def test_facts_with_and_without_qualifiers_are_read(tmp_path):
    found, report = read_text('2\nQ1\tP1\tQ2\nQ1\tP2\t+3\tP3\tQ4\tP4\t"5"^^<m>\n', "hynt", tmp_path)
    five = Number(5.0, '"5"^^<m>', "m")
    assert found == [
        Fact("Q1", "P1", "Q2"),
        Fact("Q1", "P2", Number(3.0, "+3"), (Qualifier("P3", "Q4"), Qualifier("P4", five))),
    ]
    assert report.to_mapping() == {"read": 2, "kept": 2, "rejected": {}, "noted": {}}


@pytest.mark.parametrize(
    "line, reason, what",
    [
        ("a\tr", "missing-columns", "2 columns where a fact has at least 3: head, relation, tail."),
        ("a", "missing-columns", "1 column where a fact has at least 3: head, relation, tail."),
        ("a\tr\tb\tq", "qualifier-without-value", "the last qualifier, 'q', has no value."),
        ("\tr\tb", "empty-name", "the head is empty."),
        ("a\t\tb", "empty-name", "the relation is empty."),
        ("a\tr\t", "empty-name", "the tail is empty."),
        ("a\tr\tb\t\tv", "empty-name", "the relation of qualifier 1 is empty."),
        ("a\tr\tb\tq\tv\tq\t", "empty-name", "the value of qualifier 2 is empty."),
        ("80\tr\tb", "number-as-head", "the head is a number: 80"),
        ('"5"^^<m>\tr\tb', "number-as-head", 'the head is a number: "5"^^<m>'),
    ],
)
def test_badly_shaped_lines_are_refused_in_words(tmp_path, line, reason, what):
    where, *rest = only_problem(f"1\n{line}\n", "hynt", tmp_path)
    assert where == "facts:2"
    assert rest[:2] == [reason, what]
    assert rest[2]


def test_a_wrong_count_is_noted_and_refused_when_strict(tmp_path):
    found, report = read_text("3\na\tr\tb\n", "hynt", tmp_path)
    assert len(found) == 1
    assert report.noted == {"wrong-count": 1}
    assert report.notes[0].where == f"{tmp_path}/facts:1"
    assert report.notes[0].what == "the first line says 3 facts, but there are 1."
    with pytest.raises(DataError) as error:
        read_text("3\na\tr\tb\n", "hynt", tmp_path, strict=True)
    assert str(error.value) == (
        f"{tmp_path}/facts:1: the first line says 3 facts, but there are 1. The file may be cut short: get it again or "
        "correct the line."
    )


def test_an_impossible_date_is_kept_as_the_authors_did_and_refused_when_strict(tmp_path):
    line = 'a\tborn\t"2016-20-11"^^xsd:date\n'
    found, report = read_text(line * 2, "hynt", tmp_path)
    assert found[0].tail == Number(2016 + 376 / 366, '"2016-20-11"^^xsd:date', "date")
    assert report.noted == {"impossible-date": 2}
    assert [note.where for note in report.notes] == [f"{tmp_path}/facts:1", f"{tmp_path}/facts:2"]
    where, reason, what, _ = only_problem(line, "hynt", tmp_path, strict=True)
    assert (where, reason, what) == (
        "facts:1",
        "impossible-date",
        '"2016-20-11"^^xsd:date is a date that no calendar has.',
    )


@given(values)
def test_what_is_written_reads_back(value):
    token = write_token(value)
    if token is None:
        return
    assert "\t" not in token
    assert "\n" not in token
    found = read_token(token)
    if isinstance(value, Number):
        assert isinstance(found, Number)
        assert found.value == value.value
        assert found.unit == value.unit or "" in (found.unit, value.unit)
    else:
        assert found == value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(facts, max_size=5))
def test_a_fact_is_written_so_that_it_reads_back_or_not_at_all(tmp_path, given_facts):
    lines, expected = [], []
    for fact in given_facts:
        try:
            lines.append(write_fact(fact))
        except DataError as error:
            assert error.advice == "Export to tsv or jsonl, which can write every fact."
        else:
            expected.append(fact)
    found, report = read_text("\n".join([str(len(lines)), *lines]), "hynt", tmp_path)
    assert [fact.key() for fact in found] == [fact.key() for fact in expected]
    assert not report.noted.keys() - {"impossible-date"}


def test_numbers_from_other_formats_get_a_spelling():
    assert write_token(Number(80.0, "176.4", "kg")) == '"80.0"^^<kg>'
    assert write_token(Number(80.0, "80", "kg")) == "80"
    assert write_token(Number(decimal_year(1922, 1, 28), "1922-01-28", "date")) == '"1922-01-28"^^xsd:date'
    assert write_token(Number(decimal_year(1922, 1, 28), "28 January", "date")) == '"1922-01-28"^^xsd:date'
    assert write_token(Number(1922.123, "?", "date")) == '"1922.123"^^<date>'
    assert write_token(Number(1.0, "?", "a>b")) is None
    assert write_token("12") is None
    assert write_token("a\tb") is None


def test_a_written_folder_is_the_same_graph(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.txt").write_text('2\na\tarea\t"5"^^<km2>\nb\tsize\t+7\tin\t"1949-12-25"^^xsd:date\n')
    (source / "test.txt").write_text("1\na\tnear\tb\n")
    (source / "relations.tsv").write_text("id\tlabel\tkind\tunit\tscale\nsize\tSize\tnumeric\tkg\tlog\n")
    graph = read_graph(source, "hynt")
    written = list(get_format("hynt").write(graph, tmp_path / "out"))
    assert [path.name for path in written] == ["train.txt", "test.txt", "entities.jsonl", "relations.jsonl"]
    assert (tmp_path / "out" / "train.txt").read_text() == (source / "train.txt").read_text()
    assert read_graph(tmp_path / "out", "hynt") == graph


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"head": "12", "relation": "r", "tail": "b"}\n')
    graph = read_graph(tmp_path / "in.jsonl", "jsonl")
    with pytest.raises(DataError) as error:
        get_format("hynt").write(graph, tmp_path / "out")
    assert "the format hynt cannot write '12' of Fact(head='12'" in str(error.value)
    assert str(error.value).endswith("Export to tsv or jsonl, which can write every fact.")
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match=r"out: already exists. Choose a new name, or remove it first."):
        get_format("hynt").write(graph, tmp_path / "out")


@pytest.mark.parametrize(
    "folder, format_name, count, noted",
    [
        ("HN-YG/raw", "hynt", 76_383, {"impossible-date": 1}),
        ("HN-YG/normalized", "hynt", 76_383, {}),
        ("HN-WK-resplit", "hynt", 59_364, {"impossible-date": 2}),
        ("HN-FB-S-part", "hynt", 21_635, {}),
        ("WikiPeople-", "hynt", 363_040, {}),
        ("WD50K", "stare", 236_507, {}),
    ],
)
def test_published_folders_are_read_without_a_rejection(shared_data, folder, format_name, count, noted):
    total, notes = 0, {}
    for path in [*(shared_data / folder).glob("t*.txt"), shared_data / folder / "valid.txt"]:
        found, report = read_file(path, format_name)
        assert not report.rejected
        total += len(found)
        notes |= report.noted
    assert total == count
    assert notes == noted


def test_the_impossible_date_of_the_yago_graph_is_found(shared_data):
    _, report = read_file(shared_data / "HN-YG" / "raw" / "train.txt", "hynt")
    assert report.notes[0].where.endswith("train.txt:10406")
    assert '"2016-20-11"' in report.notes[0].what


def test_units_are_kept_unless_asked_for(tmp_path):
    (tmp_path / "f.txt").write_text('a\tarea\t"5"^^<km2>\n')
    assert read_graph(tmp_path / "f.txt", "hynt").relations[0].unit == "km2"
    assert read_graph(tmp_path / "f.txt", "hynt", ImportOptions(units="si")).relations[0].unit != "km2"
