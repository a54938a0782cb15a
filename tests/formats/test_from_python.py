"""Graphs from lists and tables in one call."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hynt
from hynt.errors import DataError, UsageError
from hynt.formats.from_python import graph_from_facts, graph_from_table
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.splitting import SplitRule
from tests.formats.graphs import names

TUPLES = [
    ("Ann", "knows", "Bob"),
    ("Ann", "height", 1.7, [("year", 2020), ("source", "web")]),
    ["Bob", "born", datetime.date(1922, 1, 28)],
    Fact("Bob", "weight", Number(176.4, "176.4", "lb"), (Qualifier("year", Number(2021.0, "2021")),)),
]


def test_a_list_of_tuples_becomes_a_graph():
    graph = graph_from_facts(
        {"train": TUPLES}, labels={"Ann": "Ann Example"}, relation_labels={"knows": "is friends with"}
    )
    assert list(graph.facts()) == [
        Fact("Ann", "knows", "Bob"),
        Fact(
            "Ann", "height", Number(1.7, "1.7"), (Qualifier("year", Number(2020.0, "2020")), Qualifier("source", "web"))
        ),
        Fact("Bob", "born", Number(1922 + 27 / 365, "1922-01-28", "date")),
        Fact("Bob", "weight", Number(176.4 * 0.45359237, "176.4", "kg"), (Qualifier("year", Number(2021.0, "2021")),)),
    ]
    assert graph.entity_labels[0] == "Ann Example"
    assert graph.relation_labels[0] == "is friends with"


def test_relations_are_given_a_meaning_in_words():
    told = {"height": "how tall\nsomeone is", "knows": "has met"}
    graph = graph_from_facts(TUPLES, relation_descriptions=told)
    said = {one.name: one.description for one in graph.relations}
    assert (said["height"], said["knows"], said["born"]) == ("how tall someone is", "has met", "")
    table = pa.table({"head": ["Ann"], "relation": ["knows"], "tail": ["Bob"]})
    assert graph_from_table(table, relation_descriptions=told).relations[0].description == "has met"


def test_splits_are_given_or_made():
    given = graph_from_facts([("a", "r", "b")], valid=[("a", "r", "c")], test=[("c", "r", "b")])
    assert {name: len(table) for name, table in given.splits.items()} == {"train": 1, "valid": 1, "test": 1}
    many = [(f"e{index % 50}", "r", f"e{index // 50}") for index in range(1000)]
    made = graph_from_facts(many)
    assert len(made) == 1000
    assert 700 < len(made.split("train")) < 900
    halves = graph_from_facts(iter(many), split=SplitRule((1.0, 0.0, 1.0)))
    assert list(halves.splits) == ["train", "test"]
    assert graph_from_facts(many, split="1:0:1") == halves


def test_units_of_bare_numbers_can_be_said():
    graph = graph_from_facts({"train": [("a", "height", 170)]}, units={"height": "cm"})
    assert [fact.tail for fact in graph.facts()] == [Number(1.7, "170", "m")]
    kept = graph_from_facts({"train": [("a", "height", 170)]}, units={"height": "cm"}, convert_units=False)
    assert [(fact.tail.value, fact.tail.unit) for fact in kept.facts()] == [(170.0, "cm")]


@pytest.mark.parametrize(
    "make",
    [graph_from_facts, graph_from_table, hynt.import_graph, lambda _, **said: hynt.create("yago", "", "", **said)],
)
def test_an_option_that_nobody_knows_is_refused(make):
    table = pd.DataFrame({"head": ["a"], "relation": ["height"], "tail": [170]})
    with pytest.raises(UsageError, match=r"has no option 'unit'\. Did you mean units\?"):
        make(table if make is graph_from_table else [], unit={"height": "cm"})


def test_qualifiers_may_be_a_mapping_as_in_questions():
    told = [("a", "r", "b", {"year": 2003, "with": ["c", "d"]}), ("a", "r", "b", [("year", 2003), ("with", "c")])]
    one, other = graph_from_facts({"train": told}).facts()
    assert one.qualifiers == (*other.qualifiers, Qualifier("with", "d"))


def test_numbers_of_numpy_are_numbers():
    graph = graph_from_facts({"train": [("a", "n", np.int64(5)), ("a", "x", np.float32(0.5))]})
    assert [fact.tail for fact in graph.facts()] == [Number(5.0, "5"), Number(0.5, "0.5")]


@pytest.mark.parametrize(
    "fact, message",
    [
        (("a", "r"), "train fact 2: ('a', 'r') is not a fact. Give a list of facts, each (head, relation, tail) or"),
        ("abc", "train fact 2: 'abc' is not a fact."),
        (
            (1, "r", "b"),
            "train fact 2: the head is 1, which is not text. Entities and relations are strings: use str(…).",
        ),
        (("a", "", "b"), "train fact 2: the relation is empty."),
        (("a", "r", None), "train fact 2: the tail is None. Give a string, a number, a date or a hynt Number."),
        (("a", "r", True), "train fact 2: the tail is True."),
        (("a", "r2", float("nan")), "train fact 2: 'nan' is not a finite number."),
        (("a", "r", "b", "q"), "train fact 2: 'q' is not a list of qualifiers. Give pairs (relation, value)."),
        (("a", "r", "b", [("q",)]), "train fact 2: ('q',) is not a qualifier. Give pairs (relation, value)."),
        (("a", "r", "b", [("q", None)]), "train fact 2: the qualifier 'q' is None."),
        (
            ("a", "r", 5),
            "train fact 2: the relation 'r' has a number here: (a, r, 5); but an entity before: (a, r, b).",
        ),
    ],
)
def test_a_wrong_fact_is_named(fact, message):
    with pytest.raises(DataError) as problem:
        graph_from_facts({"train": [("a", "r", "b"), fact]})
    assert message in str(problem.value)


def test_wrong_use_is_said():
    with pytest.raises(UsageError, match="'dev' is not a split"):
        graph_from_facts({"dev": [("a", "r", "b")]})
    with pytest.raises(UsageError, match="valid and test are given twice"):
        graph_from_facts({"train": [("a", "r", "b")]}, test=[("a", "r", "b")])
    with pytest.raises(UsageError, match="list is not a table"):
        graph_from_table([("a", "r", "b")])
    with pytest.raises(DataError, match="there are no facts"):
        graph_from_facts([])


COLUMNS = {
    "head": ["Ann", "Bob"],
    "relation": ["knows", "knows"],
    "tail": ["Bob", "Ann"],
    "year": [2020, None],
    "since": [datetime.date(1922, 1, 28), None],
    "place": [None, "Rome"],
}
MAKERS = {
    "arrow": pa.table,
    "polars": pl.DataFrame,
    "pandas": lambda columns: pd.DataFrame(columns, index=["x", "y"]).astype({"year": "Int64"}),
}


@pytest.mark.parametrize("library", list(MAKERS))
def test_a_table_of_any_library_becomes_the_same_graph(library):
    table = MAKERS[library](COLUMNS)
    graph = graph_from_table(table, valid=table, units={"year": "year"})
    assert list(graph.facts("train")) == [
        Fact(
            "Ann",
            "knows",
            "Bob",
            (
                Qualifier("year", Number(2020.0, "2020", "year")),
                Qualifier("since", Number(1922 + 27 / 365, "1922-01-28", "date")),
            ),
        ),
        Fact("Bob", "knows", "Ann", (Qualifier("place", "Rome"),)),
    ]
    assert list(graph.splits) == ["train", "valid"]


@pytest.mark.filterwarnings("ignore:values of .* were read as names")
def test_columns_are_named_and_text_can_be_declared():
    table = pa.table(
        {
            "who": ["a", "a", "a"],
            "what": ["height", "born", "likes"],
            "value": ["1.5", "1922", "7"],
            "n": ["1", "2", "3"],
            "x": ["u", "v", "w"],
        }
    )
    graph = graph_from_table(
        table,
        test=table,
        head="who",
        relation="what",
        tail="value",
        qualifiers=["n"],
        numeric=["height", "n"],
        dates=["born"],
    )
    assert list(graph.facts("train")) == [
        Fact("a", "height", Number(1.5, "1.5"), (Qualifier("n", Number(1.0, "1")),)),
        Fact("a", "born", Number(1922.0, "1922", "date"), (Qualifier("n", Number(2.0, "2")),)),
        Fact("a", "likes", "7", (Qualifier("n", Number(3.0, "3")),)),
    ]


def test_numbers_that_are_declared_dates_are_years():
    columns = {"head": ["a", "b"], "relation": ["r", "r"], "tail": ["x", "y"], "since": [1922, None], "n": [1.5, 2.0]}
    graph = graph_from_table(pa.table(columns), dates=["since"])
    assert [fact.qualifiers for fact in graph.facts()] == [
        (Qualifier("since", Number(1922.0, "1922", "date")), Qualifier("n", Number(1.5, "1.5"))),
        (Qualifier("n", Number(2.0, "2.0")),),
    ]
    tails = pa.table({"head": ["a", "b"], "relation": ["born", "size"], "tail": [1922.0, 3.0]})
    assert [fact.tail for fact in graph_from_table(tails, dates=["born"]).facts()] == [
        Number(1922.0, "1922", "date"),
        Number(3.0, "3.0"),
    ]


@pytest.mark.parametrize(
    "columns, options, error, message",
    [
        ({"tail": [19.5]}, {"dates": ["tail"]}, DataError, "train table, row 1: 19.5 is not a year."),
        ({"tail": [float("nan")]}, {"dates": ["r"]}, DataError, "train table, row 1: nan is not a year."),
        ({"head": ["a"]}, {}, DataError, "the train table has no column 'relation'. Known here: head."),
        ({"tail": ["b"]}, {"qualifiers": ["when"]}, DataError, "the train table has no column 'when'."),
        ({"head": [1], "tail": ["b"]}, {}, UsageError, "the column 'head' holds int64, but names are text."),
        ({"tail": [[1]]}, {}, UsageError, "the column 'tail' holds list<"),
        ({"tail": [None]}, {}, DataError, "train table, row 1: the tail is null. Give it a value, or remove the row."),
        ({"head": [None], "tail": ["b"]}, {}, DataError, "train table, row 1: the head is empty."),
        ({"tail": ["x"]}, {"numeric": ["r"]}, DataError, "train table, row 1: 'x' is not a number."),
        ({"tail": [float("inf")]}, {}, DataError, "train table, row 1: 'inf' is not a finite number."),
    ],
)
def test_a_wrong_table_is_named(columns, options, error, message):
    whole = columns if columns == {"head": ["a"]} else {"head": ["a"], "relation": ["r"], **columns}
    if whole.get("head") == [None]:
        whole["head"] = pa.array([None], pa.string())
    with pytest.raises(error) as problem:
        graph_from_table(pa.table(whole), **options)
    assert message in str(problem.value)


def test_a_column_of_mixed_types_is_refused():
    frame = pd.DataFrame({"head": ["a", "b"], "relation": ["r", "r"], "tail": ["x", 5]})
    with pytest.raises(UsageError, match="mixes types"):
        graph_from_table(frame)


@pytest.mark.filterwarnings("ignore:values of .* were read as names")
@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=8, unique=True))
def test_a_table_and_its_rows_give_the_same_graph(rows):
    heads, relations, tails = zip(*rows, strict=True)
    table = pa.table({"head": heads, "relation": relations, "tail": tails})
    assert graph_from_table(table) == graph_from_facts(rows)


def test_the_types_of_a_data_frame_are_understood():
    frame = pd.DataFrame(
        {
            "head": pd.Categorical(["Ann", "Bob"]),
            "relation": pd.Categorical(["knows", "knows"]),
            "tail": ["Bob", "Ann"],
            "when": pd.to_datetime(["2020-01-02 13:45", None]),
            "at": pd.to_datetime(["2020-01-02 13:45", "2021-01-01 00:00"], utc=True),
            "count": pd.array([5, None], dtype="Int64"),
            "share": [0.5, float("nan")],
            "wait": pd.to_timedelta([90, 1], unit="s"),
            "sure": [True, False],
        }
    )
    first, second = sorted(graph_from_table(frame).facts())
    found = {qualifier.relation: qualifier.value for qualifier in first.qualifiers}
    assert int(found["when"].value) == 2020
    assert found["when"].unit == "date"
    assert found["at"].literal == "2020-01-02T13:45:00+00:00"
    assert found["count"] == Number(5.0, "5")
    assert (found["wait"].value, found["wait"].unit) == (90.0, "s")
    assert found["sure"] == "true"
    assert {qualifier.relation for qualifier in second.qualifiers} == {"at", "wait", "sure"}


def test_a_decimal_is_a_number():
    (fact,) = graph_from_facts([("a", "r", decimal.Decimal("1.50"))]).facts()
    assert fact.tail == Number(1.5, "1.50")


def test_a_wide_table_has_a_fact_for_each_value():
    table = pd.DataFrame(
        {
            "country": ["Japan", "France"],
            "year": [2020, 2021],
            "population": [126.1, None],
            "capital": ["Tokyo", "Paris"],
        }
    )
    graph = graph_from_table(table, head="country", wide=True, qualifiers=["year"], dates=["year"], split="1:0:0")
    year = [Qualifier("year", Number(float(number), str(number), "date")) for number in (2020, 2021)]
    assert set(graph.facts()) == {
        Fact("Japan", "population", Number(126.1, "126.1"), (year[0],)),
        Fact("Japan", "capital", "Tokyo", (year[0],)),
        Fact("France", "capital", "Paris", (year[1],)),
    }
    without = graph_from_table(table.drop(columns="year"), head="country", wide=True)
    assert {one.name: one.kind for one in without.relations} == {"population": "number", "capital": "entity"}
    with pytest.raises(DataError, match=r"no column 'relation'.*If the columns are relations, say wide=True\."):
        graph_from_table(table, head="country")
    with pytest.raises(DataError, match="train table, row 1: b: the value holds the control character"):
        graph_from_table(pd.DataFrame({"head": ["a"], "b": ["\x07"]}), wide=True)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_each_value_of_a_list_is_one(library):
    table = library({"film": ["Heat", "Up"], "tags": [["crime", "long"], []], "runs": [[170, 172], [96]]})
    graph = graph_from_table(table, wide=True, head="film")
    assert {(fact.head, fact.relation, fact.tail) for fact in graph.facts()} == {
        ("Heat", "tags", "crime"),
        ("Heat", "tags", "long"),
        ("Heat", "runs", Number(170.0, "170")),
        ("Heat", "runs", Number(172.0, "172")),
        ("Up", "runs", Number(96.0, "96")),
    }
    edges = pa.table({"head": ["a"], "relation": ["r"], "tail": ["b"], "role": [["x", "y"]]})
    (fact,) = graph_from_table(edges).facts()
    assert fact.qualifiers == (Qualifier("role", "x"), Qualifier("role", "y"))


def test_an_empty_text_in_a_table_says_nothing_and_a_wrong_one_is_named_by_its_column():
    table = pa.table({"name": ["a", "b"], "mass": ["3 kg", ""], "city": ["", "Rome"]})
    graph = graph_from_table(table, wide=True, head="name", numeric=["mass"])
    assert {(fact.head, fact.relation) for fact in graph.facts()} == {("a", "mass"), ("b", "city")}
    wrong = pa.table({"name": ["a", "b"], "mass": ["3 kg", "much"]})
    with pytest.raises(DataError, match="train table, row 2: mass: 'much' is not a number"):
        graph_from_table(wrong, wide=True, head="name", numeric=["mass"])
    with pytest.raises(DataError, match="train table, row 1: the head is empty"):
        graph_from_table(pa.table({"name": [""], "city": ["Rome"]}), wide=True, head="name")


def test_texts_of_a_table_that_look_like_numbers_or_dates_are_a_warning():
    columns = {"club": ["A", "B"], "seats": ["88,212", "5,000"], "opened": ["26/07/1950", "01/02/1960"]}
    with pytest.warns(UserWarning, match="were read as names") as told:
        graph_from_table(pa.table(columns), head="club", wide=True)
    assert [str(one.message) for one in told] == [
        "values of seats are written like numbers and were read as names. If they are numbers, add: "
        "numeric=['seats'], number_format='1,234.5'",
        "values of opened are written like dates and were read as names. If they are dates, add: "
        "dates=['opened'], date_format='%d/%m/%Y'",
    ]
    assert told[0].filename == __file__
    words = {"numeric": ["seats"], "number_format": "1,234.5", "dates": ["opened"], "date_format": "%d/%m/%Y"}
    graph = graph_from_table(pa.table(columns), head="club", wide=True, **words)
    assert sorted(graph["A"].texts()) == ["A · opened · 1950-07-26", "A · seats · 88,212"]
    for left_out, told in (("number_format", "number_format '1,234.5'"), ("date_format", "date_format %d/%m/%Y")):
        fewer = {name: word for name, word in words.items() if name != left_out}
        with pytest.raises(DataError) as problem:
            graph_from_table(pa.table(columns), head="club", wide=True, **fewer)
        assert told in problem.value.advice
        assert "--" not in problem.value.advice


def test_a_relation_that_loses_its_unit_is_told():
    """Two currencies under one relation cannot be compared, so its numbers have none."""
    facts = [("a", "budget", hynt.number(100, "USD")), ("b", "budget", hynt.number(90, "EUR"))]
    with pytest.warns(UserWarning, match="the relation 'budget' mixes units: 90 has EUR, others USD") as told:
        graph = graph_from_facts(facts)
    assert told[0].filename == __file__
    assert "give each unit a relation of its own" in str(told[0].message)
    assert graph.relations[0].unit == ""
    films = pd.DataFrame({"film": ["a", "b"], "budget": ["100 USD", "90 EUR"]})
    with pytest.warns(UserWarning, match="mixes units") as told:
        graph_from_table(films, head="film", wide=True, numeric=["budget"])
    assert told[0].filename == __file__
