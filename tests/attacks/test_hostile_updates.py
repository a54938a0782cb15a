"""A run that someone gives away with updates of its graph: every hash in order, and something hostile in them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

import hynt as library
from hynt.files import index_text
from hynt.runs.journal import JOURNAL, UPDATES
from hynt.sharing.push_and_pull import LIST, push
from tests.attacks.forging import sign_updates

NEW = [("Zoe", "knows", "person 1"), ("Zoe", "height", 171, [("year", 2001)])]
FIRST, SECOND = (f"{UPDATES}/00000{number}.jsonl" for number in (1, 2))


@pytest.fixture
def updated(inductive_run, tmp_path) -> Path:
    """What `hynt push` makes of a run with two updates."""
    run = library.load(shutil.copytree(inductive_run, tmp_path / "run"), "cpu")
    run.update(NEW[:1]).update(NEW[1:])
    push(run.path, str(tmp_path / "updated"))
    return tmp_path / "updated"


def listed(away: Path, *added: str, without: str = "") -> None:
    """Makes the list agree with the files, and with these besides."""
    names = {*json.loads((away / LIST).read_text())["files"], *added} - {without}
    digests = {
        name: hashlib.sha256((away / name).read_bytes() if (away / name).is_file() else b"").hexdigest()
        for name in names
    }
    (away / LIST).write_text(index_text({"kind": "hynt run", "files": digests}))


def refused(hynt, away: Path, tmp_path: Path) -> str:
    outcome = hynt.fair("pull", away, tmp_path / "pulled")
    assert outcome.code == 1
    assert not (tmp_path / "pulled").exists()
    return outcome.said


def test_what_was_given_away_can_be_pulled(hynt, updated, tmp_path):
    listed(updated)
    assert hynt.fair("pull", updated, tmp_path / "pulled").code == 0


@pytest.mark.parametrize(
    "name",
    [
        f"{UPDATES}/1.jsonl",
        f"{UPDATES}/../evil.jsonl",
        f"{UPDATES}/lock",
        f"{UPDATES}/000001.py",
        f"{UPDATES}/000001.jsonl\n",
        f"{UPDATES}/٠٠٠٠٠١.jsonl",
        f"graph/{UPDATES}/000001.jsonl",
    ],
)
def test_a_list_that_asks_for_other_files_is_refused(hynt, updated, tmp_path, name):
    listed(updated, name)
    assert "which is not a file of a run" in refused(hynt, updated, tmp_path)


def test_an_update_that_the_journal_lacks_and_one_that_is_not_there_are_refused(hynt, updated, tmp_path):
    shutil.copyfile(updated / FIRST, updated / UPDATES / "000003.jsonl")
    listed(updated, f"{UPDATES}/000003.jsonl")
    assert "the journal does not have this update" in refused(hynt, updated, tmp_path)
    (updated / UPDATES / "000003.jsonl").unlink()
    listed(updated, without=f"{UPDATES}/000003.jsonl")
    (updated / SECOND).unlink()
    listed(updated, without=SECOND)
    assert "the file of this update is missing" in refused(hynt, updated, tmp_path)
    (updated / UPDATES / JOURNAL).unlink()
    listed(updated, without=f"{UPDATES}/{JOURNAL}")
    assert "the journal does not have this update" in refused(hynt, updated, tmp_path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"add": {"head": "Zoe", "relation": "height", "tail": "tall"}}, "has an entity here"),
        (
            {"add": {"head": "Zoe", "relation": "height", "tail": {"number": 1e999, "literal": "", "unit": ""}}},
            "not changes of a graph",
        ),
        ({"remove": {"head": "Nobody", "relation": "knows", "tail": "person 1"}}, "the graph does not hold this"),
        ({"remove_entity": "Nobody"}, "the graph has no entity 'Nobody'"),
        ({"add": {"head": "\x1b[2JZoe", "relation": "knows", "tail": "person 1"}}, "these are not changes of a graph"),
        ({"label": ["Zoe", "\x1b[2J", ""]}, "these are not changes of a graph"),
        ({"run": "import os"}, "these are not changes of a graph"),
        ({"merge": ["person 1", "person 1"]}, "an entity cannot be merged with itself"),
    ],
    ids=str,
)
def test_changes_that_do_not_fit_the_graph_are_refused(hynt, updated, tmp_path, line, told):
    (updated / SECOND).write_text(json.dumps(line) + "\n")
    sign_updates(updated)
    listed(updated)
    assert told in refused(hynt, updated, tmp_path)


def test_updates_of_a_run_that_cannot_follow_its_graph_are_refused(hynt, updated, away, tmp_path):
    shutil.copytree(updated / UPDATES, away / UPDATES)
    listed(away, FIRST, SECOND, f"{UPDATES}/{JOURNAL}")
    assert "answers about the graph it was trained on and about no other" in refused(hynt, away, tmp_path)


def test_a_link_in_place_of_an_update_is_refused(hynt, updated, tmp_path):
    (updated / FIRST).rename(tmp_path / "elsewhere.jsonl")
    (updated / FIRST).symlink_to(tmp_path / "elsewhere.jsonl")
    assert "this is a link, or no file at all" in refused(hynt, updated, tmp_path)


def test_updates_that_were_not_listed_stay_behind(hynt, updated, tmp_path):
    for name in (FIRST, SECOND):
        listed(updated, without=name)
    listed(updated, without=f"{UPDATES}/{JOURNAL}")
    assert hynt.fair("pull", updated, tmp_path / "pulled").code == 0
    assert not (tmp_path / "pulled" / UPDATES).exists()


def test_where_an_update_comes_from_commands_no_terminal(hynt, updated, tmp_path):
    lines = [json.loads(line) for line in (updated / UPDATES / JOURNAL).read_text().splitlines()]
    for line in lines:
        line["source"] = line["at"] = "\x1b[2J\u202e"
    (updated / UPDATES / JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in lines))
    sign_updates(updated)
    listed(updated)
    assert hynt.fair("pull", updated, tmp_path / "pulled").code == 0
    asked = ("--head", "Zoe", "--relation", "knows", "--tail", "?")
    for command in (("update", tmp_path / "pulled", "--log"), ("predict", tmp_path / "pulled", *asked)):
        told = hynt.fair(*command).printed
        assert r"\x1b[2J\u202e" in "".join(told.split())
        assert "\x1b" not in told
        assert "\u202e" not in told
