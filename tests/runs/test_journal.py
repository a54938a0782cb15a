"""The journal of updates: one writer, nothing lost and nothing half-written, and forged or damaged ones refused."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace

import pytest

import hynt
from hynt.errors import DataError, UsageError
from hynt.runs.journal import JOURNAL, LOCK, UPDATES, Journal

NEW = [("Zoe", "knows", "person 1"), ("Zoe", "height", 171, [("year", 2001)]), ("Zoe", "owns", "Rex")]


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / UPDATES).glob("*.jsonl")}


def test_two_writers(folder, run):
    with Journal(folder).writer(), pytest.raises(UsageError, match="another process is updating this run"):
        run.update(NEW)
    handle = os.open(folder / UPDATES / LOCK, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)  # as another process has it
    assert hynt.load(folder, "cpu").version == 0  # readers do not wait
    os.close(handle)
    assert run.update(NEW).version == 1


def test_a_mark_is_another_after_each_version(folder, run):
    marks = [Journal(folder).mark()]
    for number in range(2):
        run = run.update([(f"new {number}", "knows", "person 1")])
        marks.append(Journal(folder).mark())
    assert marks[0] == (0, 0)
    assert len(set(marks)) == 3
    assert Journal(folder).mark() == marks[-1]


def test_a_full_disk_leaves_the_last_version(folder, run, monkeypatch):
    run.update(NEW[:1])
    before = files(folder)

    def full(handle, line, end):
        os.write(handle, line[:7])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DataError, match=r"the journal of updates cannot be written: No space left on device\."):
        run.update(NEW[1:])
    monkeypatch.undo()
    assert files(folder)[JOURNAL] == before[JOURNAL]
    assert hynt.load(folder, "cpu").update(NEW[1:]).version == 2


def test_a_journal_that_is_no_file_is_refused_and_not_waited_for(folder, run):
    run.update(NEW)
    (folder / UPDATES / JOURNAL).unlink()
    (folder / UPDATES / JOURNAL).symlink_to("/dev/zero")  # which never ends
    with pytest.raises(UsageError, match="is not a regular file"):
        hynt.load(folder, "cpu")


@pytest.mark.parametrize("name", [JOURNAL, LOCK])
def test_a_link_in_a_run_leads_no_writer_away(folder, run, tmp_path, name):
    (tmp_path / "precious").write_bytes(b"no end of line")
    (folder / UPDATES).mkdir()
    (folder / UPDATES / name).symlink_to(tmp_path / "precious")
    with pytest.raises(DataError, match=r"the journal of updates cannot be written: Too many levels of symbolic links"):
        run.update(NEW[:1])
    assert (tmp_path / "precious").read_bytes() == b"no end of line"


def test_a_journal_that_is_a_folder_is_told(folder, run):
    (folder / UPDATES / JOURNAL).mkdir(parents=True)
    with pytest.raises(DataError, match=r"the journal of updates cannot be read: Is a directory"):
        run.update(NEW[:1])


def test_a_torn_line_is_not_there_and_a_damaged_one_is_named(folder, run):
    later = run.update(NEW[:1]).update(NEW[1:])
    path = folder / UPDATES / JOURNAL
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        path.write_bytes(whole[:cut])
        assert Journal(folder).latest() == 1
    assert hynt.load(folder, "cpu").update(NEW[1:]).graph == later.graph
    assert path.read_bytes().count(b"\n") == 2
    path.write_bytes(b"x" + whole[1:])
    with pytest.raises(UsageError, match=r"journal\.jsonl:1: the journal of updates is damaged"):
        hynt.load(folder, "cpu")
    path.write_bytes(whole)
    (folder / UPDATES / "000001.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match=r"000001\.jsonl: the file was changed"):
        hynt.load(folder, "cpu")


def test_a_changed_last_line_is_not_taken_for_a_torn_one(folder, run):
    run.update(NEW[:1])
    path = folder / UPDATES / JOURNAL
    path.write_bytes(path.read_bytes().replace(b'"added": 1', b'"added": 2'))
    with pytest.raises(UsageError, match=r"journal\.jsonl:1: the journal of updates is damaged"):
        hynt.load(folder, "cpu")


def test_a_key_without_end_is_refused_before_anything_is_written(folder, run):
    with pytest.raises(UsageError, match="the key is too long"):
        run.update(NEW[:1], key="k" * 70_000)
    assert Journal(folder).latest() == 0
    assert run.update(NEW[:1]).version == 1


FORGED = [
    "null",
    "[" * 100_000,
    '{"zap": 1}',
    '{"add": {}}',
    '{"add": {"head": 5, "relation": [], "tail": null}}',
    '{"add": {"head": "a", "relation": "born in", "tail": "b", "qualifiers": [["year"]]}}',
    '{"add": {"head": "a", "relation": "height", "tail": {"number": "x", "literal": "x", "unit": ""}}}',
    '{"add": {"head": "a", "relation": "height", "tail": {"number": 1, "literal": 5, "unit": ""}}}',
    f'{{"add": {{"head": "a", "relation": "height", "tail": {{"number": 1{"0" * 400}, "literal": "", "unit": ""}}}}}}',
    '{"add": {"head": "a", "relation": "height", "tail": {"number": NaN, "literal": "", "unit": ""}}}',
    '{"add": {"head": "a", "relation": "height", "tail": {"number": 1, "literal": "\\ud800", "unit": ""}}}',
    '{"remove_entity": "\\ud800"}',
    '{"merge": ["a"]}',
    '{"merge": [["x"], {}]}',
    '{"remove_entity": 5}',
]


@pytest.mark.parametrize("line", FORGED)
def test_changes_that_nobody_wrote_are_refused_though_their_hash_agrees(tmp_path, line):
    import hashlib

    from hynt.runs.journal import Version, _line

    content = f"{line}\n".encode()
    (tmp_path / UPDATES).mkdir()
    (tmp_path / UPDATES / "000001.jsonl").write_bytes(content)
    version = Version(1, "2026-01-01", "x", hashlib.sha256(content).hexdigest())
    (tmp_path / UPDATES / JOURNAL).write_bytes(_line(version))
    (found,) = Journal(tmp_path).versions()
    with pytest.raises(DataError, match=r"000001\.jsonl: these are not changes of a graph"):
        Journal(tmp_path).change(found)


@pytest.mark.parametrize(
    "change",
    [{"facts": "x"}, {"at": 5}, {"source": []}, {"version": 1.0}, {"key": {}}, {"added": 10**400}, {"removed": -1}],
)
def test_a_line_whose_values_are_of_another_kind_is_damaged(tmp_path, change):
    from hynt.runs.journal import Version, _line

    (tmp_path / UPDATES).mkdir()
    line = _line(replace(Version(1, "2026-01-01", "x", "0" * 64), **change))
    (tmp_path / UPDATES / JOURNAL).write_bytes(line)
    with pytest.raises(DataError, match=r"journal\.jsonl:1: the journal of updates is damaged"):
        Journal(tmp_path).versions()
