"""Saved files are whole, and text from data is harmless on a terminal."""

from __future__ import annotations

import pytest

from hynt.cli.output import visible, write_whole
from hynt.errors import DataError


def test_a_file_is_replaced_at_once(tmp_path):
    path = tmp_path / "result.json"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [found.name for found in tmp_path.iterdir()] == ["result.json"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        write_whole(tmp_path / "no" / "result.json", b"")


@pytest.mark.parametrize(
    "text, shown",
    [("Café · 東京", "Café · 東京"), ("\x1b[31m", "\\x1b[31m"), ("a\u202eb", "a\\u202eb"), ("tab\there", "tab\\there")],
)
def test_control_characters_are_shown(text, shown):
    assert visible(text) == shown
