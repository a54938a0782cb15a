"""Questions as tables: what people have in a spreadsheet or a data frame asks the same as JSON lines."""

from __future__ import annotations

import gzip
import json

import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import hynt
from hynt.completion.completing import complete
from hynt.completion.question_files import open_questions
from hynt.errors import UsageError
from hynt.formats.registry import FORMATS

CSV = 'head,relation,tail,date,place\np3,spouse,p10,1993,?\n\n"Person 2",born in,?,,\n?,height,170 cm,,\n'
LINES = [
    {"head": "p3", "relation": "spouse", "tail": "p10", "qualifiers": [["date", "1993"], ["place", "?"]]},
    {"head": "Person 2", "relation": "born in", "tail": "?"},
    {"head": "?", "relation": "height", "tail": "170 cm"},
]


def told(path, size=100):
    batches = open_questions(path).batches(size)
    return [batch.questions.parts(row) for batch in batches for row in range(len(batch.numbers))]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", CSV),
        ("q.csv", CSV.replace(",", ";")),
        ("q.CSV", CSV.replace("head,relation,tail", "Subject,predicate,Object")),
        ("q.tsv", CSV.replace(",", "\t")),
        ("q.tab", CSV.replace(",", "\t")),
        ("q.tsv", "p3\tspouse\tp10\tdate\t1993\tplace\t?\nPerson 2\tborn in\t?\n?\theight\t170 cm\n"),
    ],
    ids=["comma", "semicolon", "subject", "tab", "ending", "ours"],
)
def test_tables_ask_what_lines_ask(lines, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert told(tmp_path / name) == told(lines)
    assert told(tmp_path / name, 1) == told(lines)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert told(tmp_path / f"{name}.gz") == told(lines)


def test_our_own_table_marks_numbers(tmp_path):
    (tmp_path / "q.tsv").write_text("head\trelation\ttail\n?\theight\t=170 cm\n")
    ((_, _, tail, _),) = told(tmp_path / "q.tsv")
    assert (tail.value, tail.unit) == (170.0, "cm")


def test_every_text_that_is_read_is_one_of_the_formats(tmp_path):
    for ending, format_name in ((".csv", "csv-edges"), (".tsv", "tsv"), (".jsonl", "jsonl")):
        assert ending in FORMATS[format_name].suffixes


def test_bad_rows_are_kept_in_their_places(tmp_path):
    (tmp_path / "q.csv").write_text("head,relation,tail\np1,born in,?\np1,born in\n,born in,?\n?,born in,t1\n")
    (batch,) = open_questions(tmp_path / "q.csv").batches(100)
    assert (batch.numbers.tolist(), batch.lines.tolist()) == ([1, 4], [2, 5])
    assert [(bad.number, bad.line) for bad in batch.bad] == [(2, 3), (3, 4)]
    assert batch.bad[0].problem.what == "the row has 2 columns, the header 3."


def test_a_table_without_the_columns_is_refused_at_once(tmp_path):
    (tmp_path / "q.csv").write_text("country,question\nJapan,capital\n")
    with pytest.raises(UsageError, match="no column for the head and the relation and the tail") as problem:
        open_questions(tmp_path / "q.csv")
    assert problem.value.where == f"{tmp_path / 'q.csv'}:1"
    assert (
        problem.value.advice == "Its first line names the columns: head, relation and tail, then those of qualifiers."
    )
    (tmp_path / "q.csv").write_text("")
    with pytest.raises(UsageError, match="the file is empty"):
        open_questions(tmp_path / "q.csv")


def test_the_answers_are_the_same(predictor, lines, tmp_path):
    (tmp_path / "q.csv").write_text(CSV)
    for name in ("jsonl", "csv"):
        complete(predictor, tmp_path / f"q.{name}", tmp_path / f"{name}.answers")
    first, second = (parquet.read_table(tmp_path / f"{name}.answers") for name in ("jsonl", "csv"))
    assert first.equals(second)


def test_a_bad_row_is_told_by_its_line(predictor, tmp_path):
    (tmp_path / "q.csv").write_text("head,relation,tail\np1,born in,?\n\np1,borne in,?\n")
    with pytest.raises(UsageError, match="the graph has no relation called 'borne in'") as problem:
        complete(predictor, tmp_path / "q.csv", tmp_path / "answers.parquet")
    assert problem.value.where == f"{tmp_path / 'q.csv'}:4, relation"


@pytest.mark.parametrize("library", [pandas.DataFrame, polars.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_data_frame_asks_with_all_of_its_columns(predictor, library):
    """As in `graph_from_table`, a column beside head, relation and tail is a qualifier."""
    run = hynt.load(predictor.path, "cpu")
    columns = {"head": ["p3", "p1"], "relation": ["spouse", "born in"], "tail": ["p10", "?"], "place": ["?", None]}
    told = run.complete(library(columns), top=2).to_arrow()
    assert told.equals(
        run.complete([("p3", "spouse", "p10", {"place": "?"}), ("p1", "born in", "?")], top=2).to_arrow()
    )
