"""What a table may hold that nobody marked is said, with the option that marks it."""

from __future__ import annotations

from tests.formats.graphs import read_file


def hints(text, folder, **options):
    path = folder / "facts.csv"
    path.write_text(text, encoding="utf-8")
    return read_file(path, "csv-edges", **options)[1].hints


def test_unmarked_numbers_and_dates_are_hinted_at_with_the_option(tmp_path):
    text = "head,relation,tail,share,since\nA,height,1.8,5 %,1990-02\nB,height,-1e3,unknown,2001-01-31\nA,knows,B,,\n"
    assert hints(text, tmp_path) == [
        "values of height are written like numbers and were read as names. If they are numbers, add: --numeric height",
        "values of since are written like dates and were read as names. If they are dates, add: --dates since",
    ]
    assert hints(text, tmp_path, numeric=("height",), dates=("since",)) == []
    assert hints('head,relation,tail,"a b,c"\nA,knows,B,7\n', tmp_path)[0].endswith("""add: --numeric '"a b,c"'""")


def test_ids_are_no_numbers(tmp_path):
    assert hints("source,target,type\n1,2,knows\n2,3,knows\n", tmp_path) == []
    assert hints(":START_ID,:END_ID,:TYPE\n1,2,knows\n", tmp_path) == []
