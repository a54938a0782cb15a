"""Runs on the Hugging Face hub: the real library against a server that speaks the hub's language."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from huggingface_hub import constants

from hynt.errors import DataError, UsageError
from hynt.front.run import load
from hynt.runs.journal import UPDATES
from hynt.sharing.cards import CROISSANT
from hynt.sharing.push_and_pull import CARD, LIST, Repository, pull, push
from tests.sharing.hub_server import TOKEN, hub_on_loopback
from tests.training.small_graph import contents

# The library's own, which pytest would make an error. Any other warning is one.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The hub that the library talks to, as somebody who may write."""
    with hub_on_loopback() as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        template = running.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield running
        assert not [call for call in running.not_known if "ann/" in call], "a call that the real hub may know"


def test_a_run_goes_to_the_hub_and_comes_back(original, hub, tmp_path, capfd):
    push(original, "hf:ann/towns")
    assert hub.private == {"ann/towns": True}
    assert set(hub.files["ann/towns"]) == {*contents(original), CARD, CROISSANT, LIST}
    assert len(hub.commits["ann/towns"]) == 2, "all files in one commit"
    hub.files["ann/towns"]["evil.py"] = b"raise SystemExit"
    result = pull("hf:ann/towns@main", tmp_path / "pulled")
    assert contents(tmp_path / "pulled") == contents(original)
    assert set(result["files"]) == set(contents(original))
    assert capfd.readouterr().err == "", "bars are for terminals"
    assert not [call for call in hub.asked if "evil.py" in call], "what no run has is not even fetched"
    before = hub.commits["ann/towns"][-1]
    assert pull(f"hf:ann/towns@{before}", tmp_path / "again")["files"] == result["files"]


def test_pushing_again_replaces_the_run_and_spares_other_files(original, hub, tmp_path):
    push(original, "hf:ann/towns", private=False)
    assert hub.private == {"ann/towns": False}
    hub.files["ann/towns"]["notes.txt"] = b"mine"
    smaller = Path(shutil.copytree(original, tmp_path / "smaller"))
    (smaller / "calibration.json").unlink()
    push(smaller, "hf:ann/towns")
    assert set(hub.files["ann/towns"]) == {*contents(smaller), CARD, CROISSANT, LIST, "notes.txt"}
    pull("hf:ann/towns", tmp_path / "pulled")
    assert contents(tmp_path / "pulled") == contents(smaller)


def test_updates_go_to_the_hub_and_an_earlier_push_leaves_none(inductive_run, hub, tmp_path):
    run = load(Path(shutil.copytree(inductive_run, tmp_path / "run")), "cpu")
    later = run.update([("Zoe", "knows", "person 1")]).update([("Zoe", "knows", "person 2")])
    push(later.path, "hf:ann/towns")
    hub.files["ann/towns"][f"{UPDATES}/evil.py"] = b"raise SystemExit"
    pull("hf:ann/towns", tmp_path / "pulled")
    assert load(tmp_path / "pulled", "cpu").graph == later.graph
    assert not [call for call in hub.asked if "evil.py" in call], "what no run has is not even fetched"
    push(later.path, "hf:ann/towns", version=1)
    updates = [name for name in hub.files["ann/towns"] if name.startswith(UPDATES) and name.endswith(".jsonl")]
    assert sorted(updates) == [f"{UPDATES}/000001.jsonl", f"{UPDATES}/journal.jsonl"]
    pull("hf:ann/towns", tmp_path / "first")
    assert load(tmp_path / "first", "cpu").version == 1


def refused(source, target) -> str:
    with pytest.raises(DataError, match="the hub did not do it: ") as problem:
        pull(source, target)
    assert problem.value.where == source.partition("@")[0]
    assert "hf auth login" in problem.value.advice
    assert not target.exists()
    return problem.value.what


def test_a_hub_that_refuses_is_told_in_words(original, hub, tmp_path, monkeypatch):
    assert "404" in refused("hf:ann/nowhere", tmp_path / "pulled")
    push(original, "hf:ann/towns")
    assert "404" in refused("hf:ann/towns@v9", tmp_path / "pulled")
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody_else")
    assert "401" in refused("hf:ann/towns", tmp_path / "pulled")
    with pytest.raises(DataError, match=r"the hub did not do it: .*401"):
        push(original, "hf:ann/towns")
    changed = bytearray(hub.files["ann/towns"]["weights.safetensors"])
    changed[-1] ^= 1
    hub.files["ann/towns"]["weights.safetensors"] = bytes(changed)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(DataError, match="was changed"):
        pull("hf:ann/towns", tmp_path / "pulled")
    assert not (tmp_path / "pulled").exists()


def test_a_hub_that_cannot_be_reached_is_told_in_words(original, hub, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # the library tries again, with pauses
    hub.refuses_with = 503
    with pytest.raises(DataError, match=r"the hub did not do it: .*503"):
        push(original, "hf:ann/towns")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(DataError, match=r"the hub did not do it: .*[Cc]onnection") as problem:
        push(original, "hf:ann/towns")
    assert problem.value.where == "hf:ann/towns"
    refused("hf:ann/towns", tmp_path / "pulled")


def test_what_is_no_name_of_a_repository():
    for wrong in ("hf:towns", "hf:a/b/c", "hf:a/../b", "hf:ann/towns@a b"):
        with pytest.raises(UsageError, match="is not a repository"):
            Repository.of(wrong)
