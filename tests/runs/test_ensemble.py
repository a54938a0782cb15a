"""Runs of one graph as one run: it answers as its members weighed together, and is refused where it cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import hynt
from hynt.errors import UsageError
from hynt.evaluation import combining
from hynt.files import index_text, read_index
from hynt.graph.storage import load_graph
from hynt.models.combination import Combination
from hynt.runs.run_folder import COMBINATION, MEMBERS
from hynt.training.run import start, train
from tests.town_graph import town_graph
from tests.training.small_graph import NO_DROPOUT, tiny_settings

CPU = torch.device("cpu")


def trained(folder: Path, name: str = "hynt", **changes) -> hynt.Run:
    settings = tiny_settings(name, **{"schedule": {"epochs": 2, "period": 2}, **changes})
    return hynt.Run(train(start(town_graph(), settings, folder, CPU), CPU).path, "cpu")


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> list[hynt.Run]:
    place = tmp_path_factory.mktemp("members")
    return [
        trained(place / "first", with_statistics=True),
        trained(place / "second", seed=1),
        trained(place / "third", "gran", model=NO_DROPOUT["gran"]),
    ]


@pytest.fixture(scope="module")
def joined(members, tmp_path_factory: pytest.TempPathFactory) -> hynt.Run:
    return hynt.ensemble(members, tmp_path_factory.mktemp("joined") / "run", device="cpu")


def test_an_ensemble_answers_and_evaluates_like_any_run(joined):
    found = joined.evaluate(progress=False)
    assert list(found.found["members"]) == ["hynt alone", "hynt 2 alone", "gran alone"]
    rows = {(row["model"], row["task"], row["scope"]): row for row in found.rows()}
    best = max(rows[name, "link", "all"]["mrr"] for name in found.found["members"])
    assert rows["ensemble with statistics", "link", "all"]["mrr"] > best
    for name in ("ensemble with statistics", "hynt 2 alone", "frequency"):
        assert name in repr(found)
    assert len(joined.predict("p1", "P19", "?").to_pandas())
    assert len(joined.predict("p1", "height", "?").to_pandas())
    assert joined.explain("p1", "P26", "?", {"place": "t1"}).influences


def test_it_is_weighed_by_more_questions_than_a_run_that_ends(members, monkeypatch):
    kind, most = combining._Kind, []
    monkeypatch.setattr(combining, "_Kind", lambda *given: most.append(given[5]) or kind(*given))
    hynt.ensemble(members[:2], device="cpu")
    assert set(most) == {combining.MANY_QUESTIONS}
    assert combining.MANY_QUESTIONS > combining.QUESTIONS


def test_it_moves_as_one_folder_and_answers_the_same(joined, tmp_path):
    copy = joined.save(tmp_path / "copy")
    here, there = (run.predict("p1", "P108", "?", top=5).to_pandas() for run in (joined, copy))
    assert here.equals(there)
    hynt.push(joined.path, tmp_path / "given")
    fetched = hynt.pull(tmp_path / "given", tmp_path / "fetched")
    assert hynt.load(tmp_path / "fetched", "cpu").predict("p1", "P108", "?", top=5).to_pandas().equals(here), fetched


def test_a_member_alone_is_the_run_alone(members, joined):
    second = members[1].evaluate(references=False, progress=False).metric("link.all.mrr")
    assert joined.evaluate(progress=False).found["members"]["hynt 2 alone"]["link"]["all"]["mrr"] == second


def test_what_cannot_be_one_run_is_refused(members, joined, tmp_path):
    def refused(runs, text):
        with pytest.raises(UsageError, match=text):
            hynt.ensemble(runs, tmp_path / "out", device="cpu")

    refused([members[0]], "two runs or more")
    refused([members[0], joined], "is an ensemble itself")
    other = trained(tmp_path / "all splits", scale_on="all-splits")
    refused([members[0], other], "scales numbers otherwise")
    on_all = trained(tmp_path / "all", train_on="train+valid")
    refused([on_all, members[0]], "leaves no validation split|scales numbers otherwise")
    world = train(start(load_graph("world"), tiny_settings("frequency"), tmp_path / "world", CPU), CPU)
    refused([members[0], world.path], "another graph")
    assert not (tmp_path / "out").exists()


def test_runs_that_were_updated_are_joined_as_they_were_trained(inductive_run, tmp_path):
    """Members that know other entities and relations cannot read one another's facts."""
    plain, updated = (hynt.load(inductive_run, "cpu").save(tmp_path / name) for name in ("plain", "updated"))
    updated.update([("Zoe", "adores", "person 1"), ("Zoe", "weighs", 50)])
    answers = []
    for order in ((plain, updated), (updated, plain)):
        said = []
        made = hynt.ensemble(order, tmp_path / f"joined {len(answers)}", device="cpu", note=said.append)
        assert said == [
            f"{updated.path} was updated: the new run answers of the graph that it was trained on, without the updates"
        ]
        assert "Zoe" not in made.graph
        answers.append(made.predict("person 1", "born in", "?", top=3).to_dict())
    assert answers[0]["answers"] == answers[1]["answers"]
    with pytest.raises(UsageError, match="a run of 'ensemble' cannot follow its graph"):
        made.update([("Zoe", "knows", "person 1")])


def test_half_an_ensemble_is_never_there(members, tmp_path, monkeypatch):
    """A kill leaves nothing under its name: there is no `--resume` to go on with it."""
    from hynt.runs.run_folder import RunFolder

    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(UsageError, match=r"taken exists already\. Choose another folder\."):
        hynt.ensemble(members[:2], tmp_path / "taken", device="cpu")
    (tmp_path / "both").mkdir()  # empty: it may be filled
    real, seen = RunFolder.finish, []
    monkeypatch.setattr(
        RunFolder,
        "finish",
        lambda run, *given, **named: seen.append((tmp_path / "both").exists()) or real(run, *given, **named),
    )
    assert hynt.ensemble(members[:2], tmp_path / "both", device="cpu").predict("p1", "P108", "?").to_dict()
    assert seen == [False]


@pytest.mark.parametrize("name", [COMBINATION, MEMBERS])
def test_a_changed_file_is_refused(joined, tmp_path, name):
    copy = joined.save(tmp_path / name)
    content = read_index(copy.path / name)
    (copy.path / name).write_text(index_text({**content, "more": 1}), encoding="utf-8")
    with pytest.raises(UsageError, match=name):
        hynt.load(copy.path, "cpu")


def test_an_ensemble_is_not_audited_by_folds(joined, tmp_path):
    with pytest.raises(UsageError, match="no single model to train again"):
        joined.audit(tmp_path / "audit")


def test_a_run_with_statistics_shows_what_they_add_and_answers_with_them(members):
    run = members[0]
    assert isinstance(run.loaded.model, Combination)
    found = run.evaluate(progress=False).found
    assert found["protocol"]["combined_with"]
    assert list(found["members"]) == ["hynt alone"]
    assert found["link"]["all"]["mrr"] > found["members"]["hynt alone"]["link"]["all"]["mrr"]
    assert run.embeddings().shape[0] == run.graph.vocabulary.entity_count
    assert run.explain("p1", "P19", "?").attention is not None


def test_statistics_are_for_graphs_of_ones_own_and_for_what_leaves_validation_out(tmp_path):
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings

    graph = town_graph()
    assert resolve_settings(SettingsRequest(), graph, on_gpu=False).with_statistics
    assert resolve_settings(SettingsRequest("transea"), graph, on_gpu=False).with_statistics
    assert not resolve_settings(SettingsRequest("transea", "transea-paper"), graph, on_gpu=False).with_statistics
    assert not resolve_settings(SettingsRequest("frequency"), graph, on_gpu=False).with_statistics
    assert not isinstance(
        trained(tmp_path / "run", train_on="train+valid", with_statistics=True).loaded.model, Combination
    )
