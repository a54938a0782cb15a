"""Saved files are whole, and text from data is harmless on a terminal."""

from __future__ import annotations

import pytest

from hynt.cli.output import check_parquet, visible
from hynt.errors import UsageError


def test_parquet_is_not_written_under_the_name_of_another_format(tmp_path):
    check_parquet(tmp_path / "vectors.parquet")
    check_parquet(tmp_path / "vectors")
    with pytest.raises(UsageError) as refused:
        check_parquet(tmp_path / "vectors.CSV")
    assert "vectors.CSV would hold Parquet under the name of another format" in str(refused.value)
    assert "Name it vectors.parquet; pandas, polars and DuckDB read it." in str(refused.value)


@pytest.mark.parametrize(
    "text, shown",
    [("Café · 東京", "Café · 東京"), ("\x1b[31m", "\\x1b[31m"), ("a\u202eb", "a\\u202eb"), ("tab\there", "tab\\there")],
)
def test_control_characters_are_shown(text, shown):
    assert visible(text) == shown
