"""What was encoded once is found by the next process; what is damaged, or of other facts, is encoded again."""

from __future__ import annotations

import errno
import os
import shutil

import pytest

import hynt
from hynt.front.run import load
from hynt.models.hynt_inductive import HyntInductive
from hynt.runs import kept_states
from hynt.service.inference.answering import FollowingJobs


@pytest.fixture(scope="module")
def calibrated(inductive_run, tmp_path_factory):
    """The run with its calibration, which else is made by the first answer."""
    folder = shutil.copytree(inductive_run, tmp_path_factory.mktemp("calibrated") / "run")
    _ = hynt.load(folder, "cpu").calibration
    return folder


@pytest.fixture
def encoded(monkeypatch):
    """A list with an item for each time that facts were encoded."""
    times, encode = [], HyntInductive.encode
    monkeypatch.setattr(HyntInductive, "encode", lambda model, *facts: times.append(1) or encode(model, *facts))
    return times


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """Where states are kept, of small graphs too."""
    monkeypatch.setattr(kept_states, "FEWEST_FACTS", 0)
    monkeypatch.setenv("HYNT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "states"


def answers(folder, version=None):
    """Of a run that was just opened, to a question whose answer is stored, so that it is asked of two sets of facts."""
    run = hynt.load(folder, "cpu", version=version)
    head = next(one for one in run.graph.facts() if one.relation == "born in").head
    return run.predict(head, "born in", "?").to_dict()


def test_a_fresh_run_encodes_nothing_that_was_encoded_before(calibrated, kept, encoded):
    first = answers(calibrated)
    assert (len(encoded), len(list(kept.iterdir()))) == (2, 2)
    assert answers(calibrated) == first
    assert len(encoded) == 2


@pytest.mark.parametrize("damage", ["a byte", "its end", "all of it", "more of it", "a pipe"])
def test_what_is_damaged_is_encoded_again(damage, calibrated, kept, encoded):
    first = answers(calibrated)
    for path in list(kept.iterdir()):
        content = bytearray(path.read_bytes())
        content[-9] ^= 1
        changed = {"a byte": content, "its end": content[:-4], "all of it": b"", "more of it": content + bytes(2**17)}
        path.unlink()
        os.mkfifo(path) if damage == "a pipe" else path.write_bytes(changed[damage])
    assert answers(calibrated) == first
    assert len(encoded) == 4
    assert answers(calibrated) == first
    assert len(encoded) == 4  # and it was kept anew


def test_states_of_another_shape_are_not_taken(calibrated, kept, encoded):
    first = answers(calibrated)
    layers = hynt.load(calibrated, "cpu").loaded.trained.states().layers
    for path in kept.iterdir():
        kept_states._write(path, layers[:-1])
    encoded.clear()
    assert answers(calibrated) == first
    assert len(encoded) == 2


def test_other_facts_and_other_weights_have_states_of_their_own(calibrated, kept, encoded, tmp_path):
    folder = shutil.copytree(calibrated, tmp_path / "run")
    answers(folder)
    hynt.load(folder, "cpu").update([("Zoe", "knows", "person 1")])
    answers(folder)
    assert len(encoded) == 4
    assert answers(folder, version=0)
    assert len(encoded) == 4
    run = hynt.load(folder, "cpu")
    run.loaded.trained.entity_start.data += 1
    run.predict("Zoe", "knows", "?")
    assert len(encoded) > 4


def test_the_oldest_states_go_first(calibrated, kept, encoded, monkeypatch):
    answers(calibrated)
    oldest, newest = sorted(kept.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    os.utime(oldest, (1, 1))
    monkeypatch.setattr(kept_states, "MOST_BYTES", 2 * newest.stat().st_size + 1_000)
    hynt.load(calibrated, "cpu").with_facts([("Zoe", "knows", "person 1")]).predict("Zoe", "born in", "?")
    assert newest.exists()
    assert not oldest.exists()
    assert sum(path.stat().st_size for path in kept.iterdir()) <= kept_states.MOST_BYTES


@pytest.mark.parametrize("whose", ["everybody", "their group", "somebody else"])
def test_a_folder_that_others_may_write_to_is_not_used(whose, calibrated, kept, encoded, monkeypatch):
    first = answers(calibrated)
    if whose == "somebody else":
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    else:
        kept.chmod(0o777 if whose == "everybody" else 0o770)
    before = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert answers(calibrated) == first
    assert len(encoded) == 4
    assert {path: path.stat().st_mtime_ns for path in kept.iterdir()} == before


def test_a_folder_that_may_only_be_read_is_read(calibrated, kept, encoded, monkeypatch):
    first = answers(calibrated)

    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert answers(calibrated) == first
    assert len(encoded) == 2


def test_what_a_killed_process_left_half_written_goes_after_a_day(calibrated, kept):
    kept.mkdir(mode=0o700, parents=True)
    old, new = (kept / f".partial-one.states-{ending}" for ending in ("abcdefgh", "ijklmnop"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    answers(calibrated)
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize("place", ["off", "a file", "few facts"])
def test_where_nothing_can_be_kept_answers_are_the_same(place, calibrated, kept, encoded, monkeypatch, tmp_path):
    first = answers(calibrated)
    (tmp_path / "a file").touch()
    if place == "few facts":
        monkeypatch.setattr(kept_states, "FEWEST_FACTS", 10**6)
    else:
        monkeypatch.setenv("HYNT_CACHE", "off" if place == "off" else str(tmp_path / place))
    assert answers(calibrated) == first
    assert len(encoded) == 4


def test_a_service_that_follows_its_graph_writes_none(calibrated, kept, encoded, tmp_path):
    folder = shutil.copytree(calibrated, tmp_path / "run")
    following = FollowingJobs(load(folder, "cpu"))
    following.now.warm_up()
    before = set(kept.iterdir())
    hynt.load(folder, "cpu").update([("Zoe", "knows", "person 1")])
    following._catch_up()
    assert following.now.predictor.version == 1
    assert len(encoded) == 2
    assert set(kept.iterdir()) == before
