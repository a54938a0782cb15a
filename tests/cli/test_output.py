"""Saved files are whole, and text from data is harmless on a terminal."""

from __future__ import annotations

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
