"""Tables as people have them: wide, with one relation, with names beside ids, with dates in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hynt
from hynt.errors import RecordProblem, UsageError
from hynt.formats.format import ReadOptions
from hynt.formats.importing import ImportOptions, check_source, read_graph
from hynt.formats.values import read_written_date, read_written_number, read_written_quantity
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


RIVERS = "station,flow [m3/s],length (km),in (no unit),height\nAorra,15.5,80,1,7\nBelt,3.1,22,2,9\n"


@pytest.mark.filterwarnings("ignore:values of .* were read as names")
def test_a_column_gets_the_unit_that_its_reader_knows(tmp_path):
    path = tmp_path / "rivers.csv"
    path.write_text(RIVERS, encoding="utf-8")
    options = {"wide": True, "head": "station", "name": "rivers"}
    units = {"length (km)": "km", "height": "ft"}
    graph = hynt.import_graph(path, "csv-edges", **options, unit_of=units)
    said = {"Belt · length (km) · 22 km", "Belt · height · 9 ft", "Belt · in (no unit) · 2"}
    assert said < set(graph["Belt"].texts())
    assert {one.name: str(one.unit) for one in graph.relations if one.kind == "number"} == {
        "length (km)": "m",
        "height": "m",
    }
    with pytest.raises(hynt.DataError, match=r"--unit-of: unknown unit 'kmm'\. Did you mean"):
        hynt.import_graph(path, "csv-edges", **options, unit_of={"height": "kmm"})
    kept = hynt.import_graph(path, "csv-edges", **options, unit_of={"height": "kmm"}, units="keep")
    assert "Belt · height · 9 kmm" in kept["Belt"].texts()


def test_units_in_the_heads_of_columns_are_offered(tmp_path):
    path = tmp_path / "rivers.csv"
    path.write_text(RIVERS, encoding="utf-8")
    numeric = {"numeric": ("flow [m3/s]", "length (km)", "in (no unit)", "height")}
    options = ImportOptions(ReadOptions(wide=True, head="station", **numeric))
    report, _ = check_source(path, "csv-edges", options)
    assert report.hints == [
        "the names of flow [m3/s], length (km) seem to say the unit of their numbers. To keep it with them, add: "
        "--unit-of 'flow [m3/s]=m3/s' --unit-of 'length (km)=km'"
    ]
    units = {"flow [m3/s]": "m3/s", "length (km)": "km"}
    report, _ = check_source(path, "csv-edges", replace(options, unit_of=units))
    assert report.hints == []


def test_a_unit_is_not_said_twice(tmp_path):
    (tmp_path / "train.tsv").write_text("Ann\theight\t170\n")
    (tmp_path / "relations.tsv").write_text("id\tkind\tunit\nheight\tnumber\tcm\n")
    with pytest.raises(UsageError, match="the unit of 'height' is cm by"):
        hynt.import_graph(tmp_path, "tsv", numeric="height", unit_of={"height": "m"})
    assert hynt.import_graph(tmp_path, "tsv", unit_of={"height": "cm"})["Ann"].texts() == ["Ann · height · 170 cm"]


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


def test_dates_and_years_stand_in_one_column_whatever_the_format():
    for text, date_format, value in (
        ("1889", "%d/%m/%Y", 1889.0),
        ("25 March 2015", "%d/%m/%Y", 2015 + 83 / 365),
        ("2015-03-25", "%d/%m/%Y", 2015 + 83 / 365),
        ("03/25/2015", "%m/%d/%Y", 2015 + 83 / 365),
    ):
        assert read_written_date(text, date_format) == Number(value, text, "date")
    for text, date_format in (("13/25/2015", "%d/%m/%Y"), ("2015/03/25", "%d/%m/%Y"), ("2015-03-25", "%Y-%d-%m")):
        with pytest.raises(RecordProblem, match=f"is not written as {date_format}"):
            read_written_date(text, date_format)


@pytest.mark.parametrize("text", ["c. 1850", "ca 1850", "circa 1850", "~1850", "about 1850"])
@pytest.mark.parametrize("date_format", ["", "%d/%m/%Y"])
def test_about_when_is_no_date(text, date_format):
    with pytest.raises(RecordProblem, match="says about when") as problem:
        read_written_date(text, date_format)
    assert problem.value.advice == "Write the year alone, 1850, or leave the date out."


CLUBS = "club,founded,value,opened,country\nA,1886,€692m,{},England\nB,c. 1900,€3m,02/01/1931,–\nC,1901,$5k,,unknown\n"


@pytest.mark.parametrize(
    ("first", "date_format"), [("28/03/1929", "%d/%m/%Y"), ("03/28/1929", "%m/%d/%Y"), ("01/02/1929", "%d/%m/%Y")]
)
def test_dates_with_slashes_are_hinted_at_with_their_format(tmp_path, first, date_format):
    path = tmp_path / "clubs.csv"
    path.write_text(CLUBS.format(first), encoding="utf-8")
    report, _ = check_source(path, "", ImportOptions(ReadOptions(wide=True, head="club")))
    said = "\n".join(report.hints)
    assert (
        f"values of opened are written like dates and were read as names. If they are dates, add: --dates opened "
        f"--date-format {date_format}" in said
    )
    assert "values of value are written like numbers with units" in said
    assert report.noted["missing-value"] == 2


FILMS = (
    '\ufefftitle,year,directors,budget\r\nFargo,1996,Joel Coen; Ethan Coen,"7,000,000"\r\n'
    'Solaris,1972,Andrei Tarkovsky,"1,000,000"\r\nSolaris,2002,Steven Soderbergh,"47,000,000"\r\n'
    'The Matrix,1999,Lana Wachowski; Lilly Wachowski,"63,000,000"\r\n'
)


@pytest.mark.parametrize(
    ("text", "number_format", "value"),
    [
        ("839,727", "1,234.5", 839727.0),
        ("-1,234.25", "1,234.5", -1234.25),
        ("12", "1,234", 12.0),
        ("1.234,5", "1.234,5", 1234.5),
        ("1.234", "1.234", 1234.0),
        ("0,5", "1234,5", 0.5),
        ("1\u202f234\u00a0567,5", "1 234,5", 1234567.5),
        ("1'234.5", "1'234.5", 1234.5),
    ],
)
def test_numbers_are_read_as_an_example_shows(text, number_format, value):
    assert read_written_number(text, number_format) == Number(value, text)


def test_numbers_that_are_not_written_as_the_example_are_refused():
    for text, number_format in {"1,2345": "1,234.5", "12.34": "1.234,5", "1,5": "1,234.5"}.items():
        with pytest.raises(RecordProblem, match=f"is not written as {number_format}"):
            read_written_number(text, number_format)
    with pytest.raises(RecordProblem, match="'5 km' is not a number") as problem:
        read_written_number("5 km", "1,234")
    assert problem.value.advice == "Correct it, or leave it empty."
    with pytest.raises(RecordProblem) as problem:
        read_written_number("839,727")
    assert problem.value.advice == "Say how numbers are written: --number-format '1,234.5'."
    for wrong in ("1.2", "1.234.5", "12,345"):
        with pytest.raises(UsageError, match="does not show how numbers are written"):
            read_written_number("5", wrong)


@pytest.mark.parametrize(
    ("text", "number_format", "number"),
    [
        ("1486.18 g", "", Number(1486.18, "1486.18", "g")),
        ("12%", "", Number(12.0, "12", "%")),
        ("−4 °C", "", Number(-4.0, "-4", "°C")),
        ("1e-3 km/h", "", Number(0.001, "1e-3", "km/h")),
        ("$60,000", "1,234.5", Number(60000.0, "60,000", "$")),
        ("1.234,5 €", "1.234,5", Number(1234.5, "1.234,5", "€")),
        ("€692m", "", Number(692.0, "692", "million €")),
        ("-US$1.2 bn", "", Number(-1.2, "-1.2", "billion US$")),
        ("£5k", "1,234.5", Number(5.0, "5", "thousand £")),
        ("1,200M EUR", "1,234.5", Number(1200.0, "1,200", "million EUR")),
        ("291 million EUR", "", Number(291.0, "291", "million EUR")),
        ("692 m", "", Number(692.0, "692", "m")),
        ("7", "", Number(7.0, "7")),
    ],
)
def test_a_cell_may_say_the_unit_of_its_number(text, number_format, number):
    assert read_written_quantity(text, number_format) == number


@pytest.mark.parametrize("text", ["3/4/2020", "5 pcs", "80 kg of 3", "kg", "1.2.3"])
def test_what_names_no_unit_is_no_number_with_one(text):
    with pytest.raises(RecordProblem, match="is not a number"):
        read_written_quantity(text)


GOODS = "name,weight,price,launched,sku\na,1.5 kg,$5,2019,00001\nb,500 g,$6.50,2020-03-04,00002\nc,2 lb,$7,2021,00003\n"


def test_numbers_with_units_and_dates_of_mixed_precision_are_hinted_at_and_read(tmp_path):
    path = tmp_path / "goods.csv"
    path.write_text(GOODS, encoding="utf-8")
    report, _ = check_source(path, "", ImportOptions(ReadOptions(wide=True, head="name")))
    assert report.hints == [
        "values of weight, price are written like numbers with units and were read as names. If they are numbers with "
        "units, add: --numeric weight,price",
        "values of launched are written like dates and were read as names. If they are dates, add: --dates launched",
    ]  # and no word of sku, whose zeros say that it is a code
    reading = ReadOptions(wide=True, head="name", numeric=("auto",), dates=("auto",))
    graph = read_graph(path, "", ImportOptions(reading))
    assert {one.name: str(one.unit) for one in graph.relations if one.kind == "number"} == {
        "weight": "kg",
        "price": "USD",
        "launched": "date",
    }
    assert "b · weight · 0.5 kg" in graph["b"].texts()


def test_a_unit_is_said_once(tmp_path):
    rows = "head,relation,tail,unit\na,mass,80 kg,kilogram\nb,mass,3 kg,g\n"
    found, report = table(tmp_path, rows, numeric=("mass",))
    assert [fact.tail for fact in found] == [Number(80.0, "80", "kilogram")]
    assert report.problems[0].what == "the tail says 'kg', and the unit beside it is 'g'."


def test_cells_with_several_values_are_as_many_facts(tmp_path):
    wide = {"wide": True, "head": "title", "numeric": ("budget",), "number_format": "1,234.5"}
    found, report = table(tmp_path, FILMS, several=("directors",), **wide)
    assert [fact.tail for fact in found if fact.relation == "directors"][:2] == ["Joel Coen", "Ethan Coen"]
    assert Fact("Fargo", "budget", Number(7e6, "7,000,000")) in found
    assert report.rejected == {}
    found, _ = table(tmp_path, FILMS.replace(";", " and"), several=("directors",), several_by=" and ", **wide)
    assert Fact("Fargo", "directors", "Ethan Coen") in found
    with pytest.raises(UsageError, match=r"'director' is not a column of values.*"):
        table(tmp_path, FILMS, several=("director",), **wide)


def test_what_a_wide_table_seems_to_mean_is_hinted(tmp_path):
    path = tmp_path / "films.csv"
    path.write_text(FILMS, encoding="utf-8")
    with pytest.raises(UsageError, match="table with the columns 'title', 'year', 'directors', 'budget'") as error:
        check_source(path, "")
    assert "--wide --head title" in error.value.advice
    report, _ = check_source(path, "", ImportOptions(ReadOptions(wide=True, head="title")))
    said = " ".join(report.hints)
    assert "a name of title stands in more than one row, such as Solaris in lines 3 and 4" in said
    assert "add: --several directors" in said
    assert "values of budget are written like numbers" in said
    assert "add: --numeric budget --number-format 1,234.5" in said
    assert "values of year are written like years and were read as names. If they are years, add: --dates year" in said
    options = ReadOptions(
        wide=True, head="title", numeric=("budget",), number_format="1,234.5", dates=("year",), several=("directors",),
        qualifier=("year",),
    )  # fmt: skip
    report, _ = check_source(path, "", ImportOptions(options))
    assert report.hints == []


def test_a_problem_names_its_column_and_every_reason_is_shown(tmp_path):
    rows = "".join(f"film {number},{number} reels,1999\n" for number in range(30))
    _, report = table(
        tmp_path,
        f"title,runtime,year\n{rows}last,90,soon\n",
        wide=True,
        head="title",
        numeric=("runtime",),
        dates=("year",),
    )
    assert report.problems[0].what == "runtime: '0 reels' is not a number."
    assert len(report.problems) == 20
    assert report.problems[-1].what.startswith("year: 'soon' is not")


def test_a_misspelt_column_is_told_however_much_else_there_is_to_tell(tmp_path):
    path = tmp_path / "clubs.csv"
    path.write_text("club,Capacity\nc,5\n" + "".join(f"c{number},n/a\n" for number in range(30)), encoding="utf-8")
    report, _ = check_source(path, "", ImportOptions(ReadOptions(wide=True, head="club", numeric=("capacity",))))
    assert report.noted == {"missing-value": 30, "unused-name": 1}
    (told,) = [note for note in report.notes if note.reason == "unused-name"]
    assert told.advice == "Did you mean Capacity? Known here: Capacity."
