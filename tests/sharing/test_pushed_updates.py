"""Updates of a run's graph go with it when it is given away, all or the first of them."""

from __future__ import annotations

import shutil

import pytest

import hynt
from hynt.cli.application import run as invoke
from hynt.runs.journal import UPDATES

NEW = [("Zoe", "knows", "person 1"), ("Zoe", "height", 171, [("year", 2001)]), ("Zoe", "owns", "Rex")]


@pytest.fixture
def folder(inductive_run, tmp_path):
    return shutil.copytree(inductive_run, tmp_path / "run")


@pytest.fixture
def run(folder):
    return hynt.load(folder, "cpu")


def test_a_run_that_is_given_away_takes_its_updates_along(folder, run, tmp_path, capsys):
    later = run.update(NEW, source="the registry").update(remove=NEW[:1])
    assert invoke(["push", str(folder), str(tmp_path / "given")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "with 2 updates of its graph, which anyone who pulls it can read" in told
    assert "left out" not in told, "the lock of writers is nobody's loss"
    card = (tmp_path / "given" / "README.md").read_text()
    assert "2 updates since training added 3 facts and took away 1." in card
    assert invoke(["pull", str(tmp_path / "given"), str(tmp_path / "pulled")]) == 0
    assert "with 2 updates of its graph: hynt update" in " ".join(capsys.readouterr().out.split())
    pulled = hynt.load(tmp_path / "pulled", "cpu")
    assert (pulled.version, pulled.versions()) == (2, later.versions())
    assert pulled.graph == later.graph
    assert str(pulled.predict("Zoe", "height", "?")) == str(later.predict("Zoe", "height", "?"))
    assert pulled.update(NEW[:1]).version == 3


def test_a_run_is_given_away_as_it_was(folder, run, tmp_path, capsys):
    later = run.update(NEW[:1]).update(NEW[1:])
    given = str(tmp_path / "given")
    assert invoke(["push", str(folder), given, "--as-of", "1"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "with 1 update of its graph" in told
    assert "without 1 later update of its graph" in told
    hynt.pull(given, tmp_path / "first")
    assert hynt.load(tmp_path / "first", "cpu").graph == hynt.load(folder, "cpu", version=1).graph
    assert hynt.push(later, given, version=0, overwrite=True)["updates_left_out"] == 2
    assert not (tmp_path / "given" / UPDATES).exists() or not list((tmp_path / "given" / UPDATES).iterdir())
    assert hynt.pull(given, tmp_path / "trained").version == 0
    hynt.push(hynt.load(folder, "cpu", version=1), tmp_path / "opened")
    assert hynt.pull(tmp_path / "opened", tmp_path / "second").version == 1
    assert invoke(["push", str(folder), given, "--as-of", "3", "--overwrite"]) == 2
    assert "there is no version 3 of this run" in capsys.readouterr().err


def test_a_damaged_update_is_not_given_away(folder, run, tmp_path, capsys):
    run.update(NEW)
    (folder / UPDATES / "000001.jsonl").write_text("")
    assert invoke(["push", str(folder), str(tmp_path / "given")]) == 2
    assert "its hash is not the journal's" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "given").exists()
