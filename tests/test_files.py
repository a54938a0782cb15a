"""A file or a folder is there whole, or not at all, or as it was; and a stopped job knows what it has done."""

from __future__ import annotations

import shutil

import pytest

from hynt.errors import DataError, UsageError
from hynt.files import (
    WorkFolder,
    changes,
    check_new_folder,
    check_place,
    index_text,
    new_folder,
    read_index,
    remove_partial,
    whole_file,
    write_whole,
)


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


def names_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_folder_appears_when_it_is_full(tmp_path):
    with new_folder(tmp_path / "deep" / "made") as staging:
        (staging / "inner").mkdir()
        (staging / "inner" / "file").write_text("x")
        assert not (tmp_path / "deep" / "made").exists()
    assert names_in(tmp_path) == ["deep", "deep/made", "deep/made/inner", "deep/made/inner/file"]
    with pytest.raises(DataError, match="made: already exists"), new_folder(tmp_path / "deep" / "made"):
        pass


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_folder_that_fails_leaves_what_was_there(tmp_path, problem):
    with new_folder(tmp_path / "made") as staging:
        (staging / "old").touch()

    def stopped_halfway():
        with new_folder(tmp_path / "made", overwrite=True) as staging:
            (staging / "new").touch()
            raise problem

    with pytest.raises(KeyboardInterrupt if problem is KeyboardInterrupt else DataError):
        stopped_halfway()
    assert names_in(tmp_path) == ["made", "made/old"]
    with new_folder(tmp_path / "made", overwrite=True) as staging:
        (staging / "new").touch()
    assert names_in(tmp_path) == ["made", "made/new"]


def test_a_copy_that_fails_says_why_once(tmp_path):
    refused = shutil.Error([(name, name, f"[Errno 28] No space left on device: {name!r}") for name in "abc"])
    with pytest.raises(DataError) as told, new_folder(tmp_path / "made"):
        raise refused
    assert told.value.what == "the folder cannot be written: No space left on device."


def test_what_a_kill_left_is_removed_at_any_depth(tmp_path):
    (tmp_path / "inner" / ".partial-folder-x").mkdir(parents=True)
    (tmp_path / "inner" / ".partial-folder-x" / ".partial-file-y").touch()
    (tmp_path / ".partial-file-z").touch()
    (tmp_path / "partial-mine").touch()
    remove_partial(tmp_path)
    assert names_in(tmp_path) == ["inner", "partial-mine"]


def test_an_index_knows_when_it_was_changed(tmp_path):
    write_whole(tmp_path / "index.json", index_text({"name": "Köln", "files": {"a": "0"}}))
    assert read_index(tmp_path / "index.json") == {"name": "Köln", "files": {"a": "0"}}
    text = (tmp_path / "index.json").read_text()
    (tmp_path / "index.json").write_text(text.replace("Köln", "Koln"))
    with pytest.raises(DataError, match="does not match its own hash"):
        read_index(tmp_path / "index.json")


PLAN = {"graph": "world", "settings": {"epochs": 3, "rates": (1, 2)}}


class TestWorkFolder:
    @pytest.fixture
    def work(self, tmp_path):
        work = WorkFolder(tmp_path / "work")
        work.open(PLAN)
        write_whole(work.file("first", "txt"), b"one")
        work.keep("first", {"count": 1, "quoted": "half a letter: \ud800"}, ["txt"])
        return work

    def test_goes_on_where_it_was(self, work):
        again = WorkFolder(work.path)
        assert again.is_begun(PLAN)
        (work.path / ".partial-second.txt-x").touch()
        again.open(PLAN)
        kept = again.kept("first")
        assert kept is not None
        assert (kept["count"], kept["quoted"]) == (1, "half a letter: \ud800")
        assert again.kept("second") is None
        assert names_in(work.path) == ["first.json", "first.txt", "plan.json"]

    @pytest.mark.parametrize("name", ["first.txt", "first.json"])
    @pytest.mark.parametrize("content", [None, b"", b"{}", b"other"])
    def test_a_damaged_part_is_to_do_again(self, work, name, content):
        (work.path / name).unlink()
        if content is not None:
            (work.path / name).write_bytes(content)
        assert work.kept("first") is None

    def test_another_job_is_refused_with_what_differs(self, work):
        other = {"graph": "w" * 200, "settings": {"epochs": 4, "rates": [1, 2]}, "new": True}
        with pytest.raises(UsageError) as refused:
            work.open(other)
        assert refused.value.what == (
            "the work begun here is that of another job: graph changed; new: none → True; settings.epochs: 3 → 4."
        )
        assert work.kept("first") is not None

    def test_a_folder_of_something_else_is_left_alone(self, tmp_path):
        (tmp_path / "mine").write_text("dear")
        for path in (tmp_path, tmp_path / "mine"):
            with pytest.raises(UsageError, match="something other than the work of a job"):
                WorkFolder(path).open(PLAN)
        assert names_in(tmp_path) == ["mine"]

    def test_a_damaged_plan_is_told(self, work):
        (work.path / "plan.json").write_text("[")
        with pytest.raises(UsageError, match=r"plan\.json: the file is damaged\. Remove its folder"):
            work.open(PLAN)

    def test_a_job_killed_before_its_plan_was_written_begins(self, tmp_path):
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / ".partial-plan.json-x").write_text("{")
        work = WorkFolder(tmp_path / "work")
        assert not work.is_begun(PLAN)
        work.open(PLAN)
        assert names_in(work.path) == ["plan.json"]


def test_equal_contents_have_no_changes():
    assert changes({"a": {"b": [1]}}, {"a": {"b": [1]}}) == []
    assert changes({"a": {"b": 1}}, {"a": 2}) == ["a: {'b': 1} → 2"]
