"""Tables as people have them: wide, with one relation, with names beside ids, with dates in words."""

from __future__ import annotations

import pytest

from hynt.errors import RecordProblem, UsageError
from hynt.formats.format import ReadOptions
from hynt.formats.importing import ImportOptions, read_graph
from hynt.formats.values import read_written_date
from hynt.graph.fact import Fact, Number, Qualifier
from tests.formats.graphs import read_file

WIDE = (
    "country,year,population,capital,area\n"
    "Japan,2020,126.1,Tokyo,..\nJapan,2021,125.7,Tokyo,\nFrance,2020,67,Paris,640679\n"
)


def table(folder, text, **options):
    path = folder / "facts.csv"
    path.write_text(text, encoding="utf-8")
    return read_file(path, "csv-edges", **options)


def test_a_wide_table_has_a_fact_for_each_cell(tmp_path):
    options = {"wide": True, "head": "country", "qualifier": ("year",), "numeric": ("population", "area", "year")}
    found, report = table(tmp_path, WIDE, **options)
    year = Qualifier("year", Number(2020.0, "2020"))
    assert len(found) == 7
    assert Fact("Japan", "population", Number(126.1, "126.1"), (year,)) in found
    assert Fact("France", "capital", "Paris", (year,)) in found
    assert dict(report.noted) == {"missing-value": 1}


def test_the_numbers_of_a_wide_table_are_marked_on_request(tmp_path):
    path = tmp_path / "facts.csv"
    path.write_text(WIDE, encoding="utf-8")
    reading = ReadOptions(wide=True, head="country", qualifier=("year",), numeric=("auto",))
    graph = read_graph(path, "csv-edges", ImportOptions(reading))
    assert {one.name: one.kind for one in graph.relations} == {
        "population": "number",
        "capital": "entity",
        "area": "number",
        "year": "number",
    }


def test_a_wide_table_says_what_it_lacks(tmp_path):
    with pytest.raises(UsageError, match="a wide table needs the column of its entities"):
        table(tmp_path, WIDE, wide=True)
    with pytest.raises(UsageError, match=r"has no column 'yaer'\. Did you mean year"):
        table(tmp_path, WIDE, wide=True, head="country", qualifier=("yaer",))


def test_one_relation_for_all_rows(tmp_path):
    found, _ = table(tmp_path, "source,target,since\na,b,1999\n", relation_name="cites")
    assert found == [Fact("a", "cites", "b", (Qualifier("since", "1999"),))]


def test_names_beside_ids(tmp_path):
    found, report = table(tmp_path, "id:ID,name,:LABEL,motto\n1,Keanu Reeves,Person,whoa\n")
    assert found == [Fact("1", ":LABEL", "Person")]
    assert report.labels == {"1": "Keanu Reeves"}
    assert dict(report.noted) == {"text-property": 1}
    _, report = table(tmp_path, "head,relation,tail,head name\nQ1,r,Q2,Ann\n", label="head name")
    assert report.labels == {"Q1": "Ann"}
    path = tmp_path / "nodes.csv"
    path.write_text("id:ID,name,:LABEL\n1,Keanu Reeves,Person\n", encoding="utf-8")
    assert read_graph(path, "")["Keanu Reeves"].texts() == ["Keanu Reeves · :LABEL · Person"]


@pytest.mark.parametrize(
    "text", ["Mar 25, 2015", "March 25, 2015", "25 Mar 2015", "25 March 2015", "2015/03/25", "25.03.2015"]
)
def test_dates_are_read_as_people_write_them(text):
    assert read_written_date(text) == Number(2015 + 83 / 365, text, "date")


def test_a_date_that_could_be_two_needs_a_format(tmp_path):
    with pytest.raises(RecordProblem) as problem:
        read_written_date("03/04/2015")
    assert problem.value.advice.endswith("Or say how it is written, as in --date-format %d/%m/%Y.")
    rows = "head,relation,tail\na,born,03/04/2015\nb,born,4. April\n"
    found, report = table(tmp_path, rows, dates=("born",), date_format="%d/%m/%Y")
    assert found == [Fact("a", "born", Number(2015 + 92 / 365, "03/04/2015", "date"))]
    assert report.problems[0].what == "'4. April' is not written as %d/%m/%Y."
