"""The run that comes with hynt: small, checked like any other, asked by the name of its graph, and never written to."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import hynt
from hynt.asking.examples import EXAMPLES, _found
from hynt.calibration.calibration import CALIBRATION, calibrate
from hynt.cli.application import run as invoke
from hynt.errors import UsageError
from hynt.files import sha256_of
from hynt.front.serving import serve
from hynt.graph.sentences import Sentences
from hynt.reporting.report.trust import kept_measurements
from hynt.runs import WEIGHTS
from hynt.runs.place import SavedRun, run_place
from hynt.runs.run_folder import RunFolder
from hynt.service.pages.doubtful import DEFAULT, Doubtful, most_doubtful
from tests.conftest import ROOT
from tools.ready_world import LARGEST, PACKAGED

CPU = torch.device("cpu")
QUESTION = ("Japan", "life expectancy", "?", {"point in time": 2024, "sex": "female"})


@pytest.fixture(scope="module")
def world():
    return hynt.load("world", "cpu")


def files():
    return {str(path): sha256_of(path) for path in PACKAGED.rglob("*") if path.is_file()}


def test_it_is_small_whole_and_of_the_promised_kind(world):
    assert world.path == PACKAGED
    assert sum(path.stat().st_size for path in PACKAGED.rglob("*")) <= LARGEST == 3_000_000
    assert (world.settings.model_name, world.settings.model.dimension) == ("hynt-inductive", 64)
    assert {tensor.dtype for tensor in load_file(PACKAGED / WEIGHTS).values()} == {torch.bfloat16}
    best = world.manifest["training"]["best"]
    assert (best["metric"], best["value"] > 0.35) == ("link.all.mrr", True)  # validation chose
    assert world.settings.train_on == "train"
    assert not (PACKAGED / "updates").exists()
    assert "/" not in json.dumps(json.loads((PACKAGED / "environment.json").read_text()))


def test_its_figures_and_its_most_doubtful_facts_come_with_it(world):
    weights = world.manifest["files"][WEIGHTS]
    kept = kept_measurements(PACKAGED, "test", weights)
    assert kept is not None
    assert kept["reads_of_split"] == RunFolder.open(PACKAGED).reads("test")
    doubtful = Doubtful(PACKAGED / DEFAULT)
    page = doubtful.page(None, 0)
    assert 6_000 < page.judged <= len(world.graph)
    assert page.kept == page.total == most_doubtful(page.judged)
    words = Sentences(world.graph)
    for row in page.rows:
        (fact,) = world.graph.split(row["split"]).take(np.array([row["row"]])).facts(world.graph.vocabulary)
        assert row["fact"] == words.fact(fact)


@pytest.mark.slow
def test_it_is_calibrated_and_begins_with_questions_as_the_code_does_today(world):
    made = calibrate(world.loaded, CPU).to_mapping(world.graph.vocabulary)
    kept = json.loads((PACKAGED / CALIBRATION).read_text())
    for task in ("link", "relation"):
        assert made[task]["temperature"] == pytest.approx(kept[task]["temperature"], rel=1e-3)
    radii = [{name: one["radius"].get("0.9") for name, one in of["number"].items()} for of in (made, kept)]
    assert radii[0] == pytest.approx(radii[1], rel=1e-3)
    kept = json.loads((PACKAGED / EXAMPLES).read_text())["examples"]
    assert [list(one) for one in _found(world.loaded, world.calibration, CPU)] == kept


def test_it_answers_by_its_name_with_an_interval_and_nothing_is_written(world):
    before = files()
    found = world.predict(*QUESTION)
    assert found.calibrated
    (answer,) = found
    low, high = answer.interval
    assert 60 < low < answer.value < high < 110
    assert {one.type for one in world.similar("Japan", 5)} == {"country"}
    folder = RunFolder.open(PACKAGED)
    assert folder.count_read("valid") == folder.reads("valid") + 1  # told, and not kept
    assert files() == before


def test_a_run_of_that_name_at_hand_comes_first_and_a_graph_does_not(inductive_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "src/hynt/world/graph", "world")
    assert run_place("world") == PACKAGED
    shutil.rmtree("world")
    shutil.copytree(inductive_run, "world")
    assert SavedRun.open(run_place("world")).manifest["graph"]["name"] != "world"


def test_what_is_installed_is_not_changed_but_a_copy_is(tmp_path, capsys, world):
    before, more = files(), tmp_path / "more.jsonl"
    more.write_text('{"head": "Atlantis", "relation": "shares border with", "tail": "Japan"}\n')
    assert invoke(["update", "world", str(more)]) == 2
    told = capsys.readouterr().err
    assert "this run comes with hynt, and what is installed is not changed" in told
    assert "hynt update world --out RUN" in told
    with pytest.raises(UsageError, match="what is installed is not changed"):
        world.update([("Atlantis", "shares border with", "Japan")])
    with pytest.raises(UsageError, match="what is installed is not changed"):
        serve("world", port=0, token_file=_token(tmp_path), accept_updates=True)
    assert invoke(["train", "world", "--out", "world", "--resume"]) == 2
    assert "there is no run at 'world'" in capsys.readouterr().err
    assert files() == before
    assert invoke(["update", "world", str(more), "--out", str(tmp_path / "mine")]) == 0
    assert "1 fact added" in capsys.readouterr().out
    copy = RunFolder.open(tmp_path / "mine")
    assert copy.manifest["graph"]["path"] == "graph"
    assert copy.count_read("test") == RunFolder.open(tmp_path / "mine").reads("test")
    assert "Atlantis" in hynt.load(tmp_path / "mine", "cpu").graph
    assert files() == before
    assert invoke(["update", "world", "--out", str(tmp_path / "plain")]) == 0  # to change it later, on its pages
    assert f"Copied to {tmp_path / 'plain'}." in capsys.readouterr().out
    assert hynt.load(tmp_path / "plain", "cpu").version == 0
    assert invoke(["update", str(tmp_path / "plain")]) == 2
    assert "nothing was given to change" in capsys.readouterr().err


def test_it_can_be_given_away_with_its_graph(tmp_path):
    told = hynt.push("world", tmp_path / "given")
    assert told["graph_included"]
    assert hynt.pull(tmp_path / "given", tmp_path / "taken", "cpu").graph == hynt.read_graph("world")


def _token(folder):
    path = folder / "token"
    path.write_text("a-token-of-enough-length")
    path.chmod(0o600)
    return path


def test_whoever_is_asked_beside_changes_an_answer_by_rounding_alone(world):
    """The shapes of its products follow the questions that are asked together."""
    facts = [fact for fact in world.graph.facts("test") if not isinstance(fact.tail, str)][:12]
    questions = [(one.head, one.relation, "?", [(q.relation, q.value) for q in one.qualifiers]) for one in facts]
    questions.append(("Japan", "currency", "?"))
    together = world.predict_many(questions, top=5)
    for question, beside in zip(questions, together, strict=True):
        for alone, other in zip(world.predict(question, top=5).to_dict()["answers"], beside, strict=True):
            named = other.to_dict()
            numbers = {name: value for name, value in alone.items() if isinstance(value, float)}
            assert {name: named[name] for name in numbers} == pytest.approx(numbers, rel=1e-4)
