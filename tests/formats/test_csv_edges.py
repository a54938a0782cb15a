"""Edge lists and Neo4j exports: headers, quoting, kinds, bad input."""

from __future__ import annotations

import csv
import io
import resource
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import DataError, UsageError
from hynt.formats.csv_edges import csv_records
from hynt.formats.format import ReadReport
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.units.dates import decimal_year, parse_iso_date
from tests.formats.graphs import mutated, names, read_file


def read(text, folder, name="facts.csv", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_file(path, "csv-edges", **options)


def edges(text, folder, **options):
    return read(text, folder, **options)[0]


def test_other_columns_become_qualifiers_where_they_are_not_empty(tmp_path):
    found = edges(
        "head,relation,tail,year,place,born\nAnn,knows,Bob,2020,Rome,\nBob,knows,Ann,,,1990-02\n",
        tmp_path,
        numeric=("year",),
        dates=("born",),
    )
    assert found == [
        Fact("Ann", "knows", "Bob", (Qualifier("year", Number(2020.0, "2020")), Qualifier("place", "Rome"))),
        Fact("Bob", "knows", "Ann", (Qualifier("born", Number(1990 + 31 / 365, "1990-02", "date")),)),
    ]


def test_nothing_is_a_number_unless_it_is_said(tmp_path):
    found = edges("head,relation,tail,year\n1,2,3,2020\n", tmp_path)
    assert found == [Fact("1", "2", "3", (Qualifier("year", "2020"),))]


def test_relations_whose_tail_is_a_number_or_a_date_are_named(tmp_path):
    text = "subject,predicate,object\nA,height,1.8\nA,born,1922-01-28\nA,knows,7\n"
    found = edges(text, tmp_path, numeric=("height",), dates=("born",))
    assert [fact.tail for fact in found] == [Number(1.8, "1.8"), Number(1922 + 27 / 365, "1922-01-28", "date"), "7"]
    assert edges("head,relation,tail\nA,height,1.8\n", tmp_path, numeric=("tail",)) == [
        Fact("A", "height", Number(1.8, "1.8"))
    ]


def test_a_column_called_unit_holds_units_of_numbers(tmp_path):
    text = "head,relation,tail,Unit,year\nA,mass,80,kg,2020\nA,height,1.8,,\nA,knows,B,,\nA,born,1922,date,\n"
    found = edges(text, tmp_path, numeric=("mass", "height"), dates=("born",))
    assert found == [
        Fact("A", "mass", Number(80.0, "80", "kg"), (Qualifier("year", "2020"),)),
        Fact("A", "height", Number(1.8, "1.8")),
        Fact("A", "knows", "B"),
        Fact("A", "born", Number(1922.0, "1922", "date")),
    ]
    assert edges("head,unit,tail\nA,km,B\n", tmp_path, relation="unit") == [Fact("A", "km", "B")]


def test_a_header_that_comes_again_is_no_fact(tmp_path):
    """Files joined by a shell have one for each part."""
    found, report = read("head,relation,tail\nA,r,B\nhead,relation,tail\nB,r,C\n", tmp_path)
    assert found == [Fact("A", "r", "B"), Fact("B", "r", "C")]
    assert (dict(report.noted), report.notes[0].where.endswith(":3")) == ({"repeated-header": 1}, True)


def test_a_unit_says_that_its_tail_is_a_number(tmp_path):
    text = "head,relation,tail,unit\nA,mass,80,kg\nA,price,$60,USD\nA,born,1922-01,date\n"
    assert edges(text, tmp_path) == [
        Fact("A", "mass", Number(80.0, "80", "kg")),
        Fact("A", "price", Number(60.0, "60", "USD")),
        Fact("A", "born", Number(decimal_year(1922, 1), "1922-01", "date")),
    ]


def test_a_unit_beside_what_is_no_number_is_refused(tmp_path):
    text = "head,relation,tail,unit\nA,mass,80 or so,kg\nA,born,1922,years\n"
    found, report = read(text, tmp_path, dates=("born",))
    assert found == []
    assert [(problem.reason, problem.what, problem.advice) for problem in report.problems] == [
        (
            "unit-without-number",
            "the tail '80 or so' has the unit 'kg' and is not a number.",
            "Leave the unit empty where the tail is a name. "
            "Write a finite decimal number in ASCII, such as 80, -0.5 or 1.2e6.",
        ),
        ("unit-of-date", "a date has no unit, and here it is 'years'.", "Leave the unit empty."),
    ]


@pytest.mark.parametrize(
    "header",
    [
        "head,relation,tail",
        "source,type,target",
        "Subject,Predicate,Object",
        "from,rel,to",
        "_start,_type,_end",
        ":START_ID,:TYPE,:END_ID",
        "start,edge,end",
        "src,property,dst",
    ],
)
def test_the_main_columns_have_several_names(tmp_path, header):
    assert edges(f"{header}\nA,r,B\n", tmp_path) == [Fact("A", "r", "B")]


def test_the_first_known_pair_counts_and_others_are_qualifiers(tmp_path):
    found = edges("from,to,relation,tail,head\n1990,1995,r,B,A\n", tmp_path)
    assert found == [Fact("A", "r", "B", (Qualifier("from", "1990"), Qualifier("to", "1995")))]


def test_columns_can_be_named(tmp_path):
    found = edges("who,does,whom,source\nA,r,B,web\n", tmp_path, head="who", relation="does", tail="whom")
    assert found == [Fact("A", "r", "B", (Qualifier("source", "web"),))]


@pytest.mark.parametrize(
    "name, delimiter, option",
    [
        ("facts.csv", ";", ""),
        ("facts.csv", "\t", ""),
        ("facts.tsv", "\t", ""),
        ("facts.csv", "|", "|"),
        ("facts.csv", "\t", "tab"),
    ],
)
def test_delimiters(tmp_path, name, delimiter, option):
    text = delimiter.join(["head", "relation", "tail"]) + "\n" + delimiter.join(["A", "r", "B,C"]) + "\n"
    assert read(text, tmp_path, name, delimiter=option)[0] == [Fact("A", "r", "B,C")]


def test_quotes_breaks_inside_them_and_a_byte_order_mark(tmp_path):
    text = (
        '\ufeff"head","relation","tail","note"\r\n"A ""the first""",r,"two\nlines, one field",\r\nB,r,5" pipe,"x"\r\n'
    )
    found, report = read(text, tmp_path)
    assert found == [
        Fact('A "the first"', "r", "two\nlines, one field"),
        Fact("B", "r", '5" pipe', (Qualifier("note", "x"),)),
    ]
    assert report.line == 4


def test_neo4j_relationships_have_typed_columns_and_id_spaces(tmp_path):
    found = edges(
        ":START_ID(Person),role,since:date,at:datetime,weight:float,tags:string[],scores:int[],:END_ID(Movie),:TYPE,x:IGNORE\n"
        "1,Neo,1999-03-31,2015-06-24T12:50:35.556+0100,0.5,a;b,1;2,1,ACTED_IN,zzz\n",
        tmp_path,
    )
    assert found == [
        Fact(
            "Person:1",
            "ACTED_IN",
            "Movie:1",
            (
                Qualifier("role", "Neo"),
                Qualifier("since", Number(1999 + 89 / 365, "1999-03-31", "date")),
                Qualifier(
                    "at", Number(parse_iso_date("2015-06-24T12:50:35.556")[0], "2015-06-24T12:50:35.556+0100", "date")
                ),
                Qualifier("weight", Number(0.5, "0.5")),
                Qualifier("tags", "a"),
                Qualifier("tags", "b"),
                Qualifier("scores", Number(1.0, "1")),
                Qualifier("scores", Number(2.0, "2")),
            ),
        )
    ]


def test_neo4j_nodes_give_their_labels_numbers_and_dates(tmp_path):
    found, report = read(
        "id:ID(City),:LABEL,name,population:int,founded:date,height:double\n"
        "1,City;Capital,Rome,2800000,-0752-04-21,\n2,City,Nowhere,many,,\n,City,,,,\n",
        tmp_path,
    )
    assert found == [
        Fact("City:1", ":LABEL", "City"),
        Fact("City:1", ":LABEL", "Capital"),
        Fact("City:1", "population", Number(2_800_000.0, "2800000")),
        Fact("City:1", "founded", Number(-752 + 111 / 366, "-0752-04-21", "date")),
        Fact("City:2", ":LABEL", "City"),
    ]
    assert report.to_mapping() == {"read": 7, "kept": 5, "rejected": {"bad-number": 1, "empty-name": 1}, "noted": {}}
    assert report.labels == {"City:1": "Rome", "City:2": "Nowhere"}


def test_apoc_exports_hold_nodes_and_relationships_in_one_file(tmp_path):
    found = edges(
        '"_id","_labels","age","name","_start","_end","_type","since"\n'
        '"0",":Person:Actor","33","Ann",,,,\n"1",":Person","","Bob",,,,\n,,,,"0","1","KNOWS","2012"\n',
        tmp_path,
        numeric=("age", "since"),
    )
    assert found == [
        Fact("0", ":LABEL", "Person"),
        Fact("0", ":LABEL", "Actor"),
        Fact("0", "age", Number(33.0, "33")),
        Fact("1", ":LABEL", "Person"),
        Fact("0", "KNOWS", "1", (Qualifier("since", Number(2012.0, "2012")),)),
    ]


@pytest.mark.parametrize(
    "row, line, reason, what",
    [
        ("A,r", 2, "wrong-columns", "the row has 2 columns, the header 4."),
        ("A,r,B,1,2", 2, "wrong-columns", "the row has 5 columns, the header 4."),
        (",r,B,", 2, "empty-name", "the head is empty."),
        ("A,,B,", 2, "empty-name", "the relation is empty."),
        ("A,r,,", 2, "empty-name", "the tail is empty."),
        ("A,r,B,nan", 2, "bad-number", "'nan' is not a finite number."),
        ("A,r,B,1e999", 2, "bad-number", "'1e999' is too large for a double-precision number."),
        ("A,r,B,１２", 2, "bad-number", "'１２' is written with characters that are not ASCII."),
        (
            "A,born,1990-13,",
            2,
            "bad-date",
            "impossible date: year 1990, month 13, day 1 is not in the Gregorian calendar.",
        ),
        ('A,r,"B"x,', 2, "bad-quotes", "field 3 goes on after its closing quote: 'x,'."),
        ('\nA,r,"B\n\n",nan', 3, "bad-number", "'nan' is not a finite number."),
        ("A,r,B\x00,1", 2, "nul-byte", "byte 6 is NUL."),
    ],
)
def test_a_bad_row_is_rejected_with_its_line_and_the_rest_is_read(tmp_path, row, line, reason, what):
    text = f"head,relation,tail,year\n{row}\nA,r,C,5\n"
    found, report = read(text, tmp_path, numeric=("year",), dates=("born",))
    assert [fact.tail for fact in found] == ["C"]
    assert [problem[:3] for problem in report.problems] == [(f"{tmp_path}/facts.csv:{line}", reason, what)]


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("", {}, "the file is empty. The first line names the columns."),
        (
            "a,b\n1,2\n",
            {},
            "facts.csv:1: no column for the head and the relation and the tail in the header: a, b. "
            "Name the columns with --head, --relation and --tail; or say --relation-name NAME for one relation",
        ),
        ("head,tail\n", {}, "no column for the relation in the header: head, tail."),
        (":START_ID,:END_ID\n", {}, "facts.csv:1: the header lacks :TYPE."),
        ("head,relation,tail,x,x\n", {}, "two columns are called 'x'. Rename one of them."),
        ("head,relation,tail,tail\n", {}, "two columns are called 'tail'. Rename one of them."),
        ("id,x,id\n", {"wide": True, "head": "id"}, "two columns are called 'id'. Rename one of them."),
        ('head,"relation\n', {}, "facts.csv:1: a quote that opens in this record is not closed in the rest of the"),
        ('head,"relation"x,tail\n', {}, "facts.csv:1: field 2 goes on after its closing quote: 'x,tail'."),
    ],
)
def test_a_bad_header_is_an_error(tmp_path, text, options, message):
    with pytest.raises(DataError) as problem:
        read(text, tmp_path, **options)
    assert message in str(problem.value)


def test_a_name_among_very_many_is_told_with_some_of_them(tmp_path):
    with pytest.raises(UsageError, match=r"Known here: a, c0, c1, .*, c683 and more\.$"):
        read(f"a,{','.join(f'c{at}' for at in range(10_000))}\n", tmp_path, head="b")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"head": "hed"}, "has no column 'hed'. Did you mean head? Known here: head, relation, tail."),
        ({"numeric": ("head",)}, "the column 'head' holds heads or relations, which are never numbers."),
        ({"numeric": ("x",), "dates": ("x",)}, "'x' is named both as a number and as a date."),
        ({"delimiter": "::"}, "'::' is not a delimiter. Give one character, or one of comma, semicolon, tab, pipe."),
    ],
)
def test_wrong_options_are_wrong_use(tmp_path, options, message):
    with pytest.raises(UsageError) as problem:
        read("head,relation,tail\nA,r,B\n", tmp_path, **options)
    assert message in str(problem.value)


@pytest.mark.parametrize("damage", [b"\xff", b"\x00"])
def test_a_row_never_takes_the_place_of_a_damaged_header(tmp_path, damage):
    with pytest.raises(DataError, match=r"facts\.csv:1: the header is not clean UTF-8 text"):
        read(b"head,relation,tail" + damage + b"\nhead,relation,tail\nA,r,B\n", tmp_path)


def test_a_name_that_fits_nothing_is_noted(tmp_path):
    _, report = read("head,relation,tail,year\nA,r,B,1\n", tmp_path, numeric=("year", "yaer"))
    assert [note[1:3] for note in report.notes] == [("unused-name", "'yaer' is neither a column nor a relation here.")]


def test_a_quote_that_never_closes_is_an_error_in_bounded_memory(tmp_path):
    path = tmp_path / "facts.csv"
    with path.open("w") as file:
        file.write('head,relation,tail\nA,r,"B\n')
        for _ in range(400):
            file.write(("x" * 99 + "\n") * 1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError) as problem:
        read_file(path, "csv-edges", max_line_bytes=2**20)
    assert f"{path}:2: a quote that opens in this record is not closed within 1,048,576 characters." in str(
        problem.value
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # KiB, where the file has 40 MB


def test_quotes_that_open_and_close_on_every_line_take_linear_time(tmp_path):
    text = 'head,relation,tail\n"' + 'a","b\n' * 300_000 + '"\n'
    started = time.perf_counter()
    _, report = read(text, tmp_path)
    assert dict(report.rejected) == {"wrong-columns": 1}
    assert time.perf_counter() - started < 20


cells = st.one_of(names.filter(lambda text: "\r" not in text), st.sampled_from(['"', '""', ",", ";", '","', "a b"]))


@given(rows=st.lists(st.tuples(cells, cells, cells, st.one_of(st.just(""), cells)), max_size=5))
def test_what_pythons_csv_module_writes_is_read(tmp_path_factory, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["head", "relation", "tail", "note"])
    writer.writerows(rows)
    found = edges(text.getvalue(), tmp_path_factory.mktemp("csv"))
    assert found == [
        Fact(head, relation, tail, (Qualifier("note", note),) if note else ()) for head, relation, tail, note in rows
    ]


ROWS = ["Ann,knows,Bob,2020,1990-01-02", 'Ann,"kn""ows","B,ob",,', "Ann,height,1.8,1e3,1990", ",,,,", '"x","y","z",1,']


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_mutated_rows_give_facts_or_located_problems(tmp_path, count):
    options = {"numeric": ("year", "height"), "dates": ("day",)}
    header = "head,relation,tail,year,day\n"
    rows = list(mutated(ROWS, "\",;'\\\t\r\x00\x07\ufeff１é\u2028ab01-+eE. \udc80", count, seed=11))
    report = ReadReport(file="facts.csv", line=2)
    closed = []
    for row in rows:
        try:
            list(csv_records(iter([row]), ",", 1000, report))
            closed.append(row)
        except DataError as problem:
            assert str(problem).startswith("facts.csv:2: a quote that opens in this record is not closed in the rest")
    assert count / 50 < len(rows) - len(closed) < count / 2
    found, report = read(header + "\n".join(closed) + "\n", tmp_path, **options)  # read_file holds the counts
    assert len(found) > count / 10
    assert report.read > 0.9 * len(closed)
    assert {"wrong-columns", "empty-name", "bad-number", "bad-date", "bad-quotes", "nul-byte"} <= set(report.rejected)
    assert all(problem.where.startswith(f"{tmp_path}/facts.csv:") for problem in report.problems)
