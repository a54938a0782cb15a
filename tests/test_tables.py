"""What results have in common: ways out as a table, and reading as plain values."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest

from hynt.results import PlainValues, Table, csv_text


class Counted(PlainValues, Table):
    def to_dict(self):
        return {"facts": 3}

    def to_arrow(self):
        return pa.table({"facts": [3]})


@pytest.mark.parametrize("kind, missing", [(Table, "to_arrow"), (PlainValues, "to_dict")])
def test_a_result_without_its_one_method_cannot_be_made(kind, missing):
    with pytest.raises(TypeError, match=missing):
        type("Incomplete", (kind,), {})()


def test_one_method_each_gives_all_forms():
    found = Counted()
    assert found["facts"] == 3
    assert "facts" in found
    assert dict(found) == {"facts": 3}
    assert found == {"facts": 3}
    assert found != {"facts": 4}
    assert found.to_pandas()["facts"].tolist() == [3]
    assert found.to_polars()["facts"].to_list() == [3]
    assert pa.table(found).column_names == ["facts"]


FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-1 km", '=HYPERLINK("a")')


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_is_no_formula_to_a_spreadsheet(text):
    written = csv_text([{text: text, "several": [text, "b"], "said": [{"text": text}]}])
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows == [[f"'{text}", "several", "said"], [f"'{text}", f"'{text}; b", f"'{text}"]]


def test_a_number_stays_one():
    assert csv_text([{"a": -1.5, "b": "-500", "c": "+1,000.5", "d": True, "e": 1e-320}]) == (
        'a,b,c,d,e\n-1.5,-500,"+1,000.5",true,1e-320\n'
    )


def test_cells_of_a_table_in_csv():
    assert csv_text([]) == ""
    assert csv_text([{"known": [{"value": 1.5, "splits": ["train"]}]}]) == "known\n1.5\n"
    assert csv_text([{"a": 'x"y', "b": ["1", "2"], "c": None}, {"d": 5}]) == 'a,b,c,d\n"x""y",1; 2,,\n,,,5\n'
