"""A file is there whole, or not at all, or as it was."""

from __future__ import annotations

import pytest

from hynt.errors import DataError, UsageError
from hynt.files import check_new_folder, check_place, whole_file, write_whole


def test_a_file_is_replaced_at_once(tmp_path):
    path = tmp_path / "result.json"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [found.name for found in tmp_path.iterdir()] == ["result.json"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        write_whole(tmp_path / "no" / "result.json", b"")


def test_a_job_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "result.json"
    write_whole(path, b"old")

    def stopped_halfway():
        with whole_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_halfway()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_is_checked_before_the_work(tmp_path):
    check_place(tmp_path / "new.json", "--out")
    with pytest.raises(UsageError, match=r"--out: .* is a folder\. Give the name"):
        check_place(tmp_path, "--out")
    with pytest.raises(UsageError, match=r"--save: there is no folder .*/no\. Make it first"):
        check_place(tmp_path / "no" / "new.json", "--save")


def test_a_place_without_rights_is_refused_before_the_work(tmp_path, monkeypatch):
    def refused(**options):
        raise PermissionError(13, "Permission denied")

    check_place(tmp_path / "new.json", "--out")
    check_new_folder(tmp_path / "some" / "where" / "run", "--out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--out: .*/file is a file, so no folder can be made in it\."):
        check_new_folder(tmp_path / "file" / "run", "--out")
    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    for check in (check_place, check_new_folder):
        with pytest.raises(UsageError, match=r"--out: nothing can be written in .*: Permission denied\."):
            check(tmp_path / "new.json", "--out")
