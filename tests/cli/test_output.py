"""Saved files are whole, and text from data is harmless on a terminal."""

from __future__ import annotations

import io
import os

import pytest

from hynt.errors import UsageError
from hynt.files import check_parquet
from hynt.progress import visible


def test_parquet_is_not_written_under_the_name_of_another_format(tmp_path):
    check_parquet(tmp_path / "vectors.parquet", "out")
    check_parquet(tmp_path / "vectors", "out")
    with pytest.raises(UsageError) as refused:
        check_parquet(tmp_path / "vectors.CSV", "out")
    assert "vectors.CSV would hold Parquet under the name of another format" in str(refused.value)
    assert "Name it vectors.parquet; pandas, polars and DuckDB read it." in str(refused.value)


@pytest.mark.parametrize(
    "text, shown",
    [("Café · 東京", "Café · 東京"), ("\x1b[31m", "\\x1b[31m"), ("a\u202eb", "a\\u202eb"), ("tab\there", "tab\\there")],
)
def test_control_characters_are_shown(text, shown):
    assert visible(text) == shown


def test_a_narrow_window_breaks_no_word_and_cuts_no_number(monkeypatch, capsys):
    from rich.table import Table

    from hynt.cli import output

    monkeypatch.setattr(output, "_WIDTH_OF_FILES", 60)
    table = Table("relation", "unit")
    for name in ("frequency", "minimum", "maximum", "standard deviation"):
        table.add_column(name, justify="right")
    table.add_row("electricity generation share", "percent", "19,982", "1,419,316,933", "110,816,261.5", "0.123456789")
    output.console().print(table)
    told = capsys.readouterr().out
    assert all(len(line) <= 60 for line in told.splitlines())
    assert "…" not in told
    for word in ("percent", "19,982", "1,419,316,933", "frequency", "110,816,261.5", "deviation", "0.123456789"):
        assert told.count(word) == 1, "each column once, those without room in a table below"
    for word in ("electricity", "generation", "relation"):
        assert told.count(word) == 2, "each part says what its rows are about"


def test_a_long_id_goes_on_in_the_next_line(monkeypatch, capsys):
    from rich.table import Table

    from hynt.cli import output

    monkeypatch.setattr(output, "_WIDTH_OF_FILES", 60)
    long = "https://example.org/an/id/of/more/than/the/longest/word/that/is/kept/whole"
    table = Table("id", "name")
    table.add_row(long, "one")
    output.console().print(table)
    told = capsys.readouterr().out
    assert "…" not in told
    assert long in "".join(line.split("│")[1].strip() for line in told.splitlines() if "│" in line)


def test_a_comparison_is_told_whole_in_eighty_columns(monkeypatch, capsys):
    from hynt.cli import output
    from hynt.comparison.table import COLUMNS

    monkeypatch.setattr(output, "_WIDTH_OF_FILES", 80)
    rows = [[model, *(f"{place}.{place:03}" for place in range(len(COLUMNS)))] for model in ("hynt", "hynt-inductive")]
    output.print_table(output.console(), ["model", *COLUMNS], rows)
    told = capsys.readouterr().out
    assert all(len(line) <= 80 for line in told.splitlines())
    assert all(told.count(f" {place}.{place:03} ") == 2 for place in range(len(COLUMNS)))
    assert "…" not in told


def test_what_fits_is_left_alone(capsys):
    from rich.table import Table

    from hynt.cli import output

    table = Table("a", "b")
    table.add_row("one two three", "4")
    output.console().print(table)
    told = capsys.readouterr().out
    assert told.count("one two three") == 1


def test_what_is_set_in_goes_on_below_itself():
    from hynt.cli.output import hanging

    text = "A line that is not set in stays as it is, however long\n  in the graph, valid: CHARLES III; rank 1, judged"
    assert hanging(text, 30).splitlines() == [
        "A line that is not set in stays as it is, however long",
        "  in the graph, valid: CHARLES",
        "    III; rank 1, judged",
    ]


def test_lines_end_at_words_on_a_terminal_alone(monkeypatch):
    from hynt.cli.output import wrapped

    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((30, 20)))
    text = "note: an error that says what to do\n  what to do: give a path/of/more/than/thirty/signs.parquet"
    stream = io.StringIO()
    assert wrapped(text, stream) == text
    stream.isatty = lambda: True
    assert wrapped(text, stream).split() == text.split()
    assert "path/of/more/than/thirty/signs.parquet" in wrapped(text, stream)
    assert all(len(line) <= 30 or "signs.parquet" in line for line in wrapped(text, stream).splitlines())
