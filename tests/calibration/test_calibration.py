"""The calibration of a run: made once, kept with its hash, refused when changed, and honest where there is none."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks import interval_coverage
from benchmarks.result_file import read_measured
from hynt import progress
from hynt.calibration.held_out import read_numbers
from hynt.calibration.measuring import coverage, measure
from hynt.errors import DataError, UsageError
from hynt.files import index_text
from hynt.front.run import load
from hynt.graph.fact_table import HEAD, RELATION, TAIL
from hynt.runs import scoring
from hynt.training.run import start, train
from tests.conftest import ROOT
from tests.town_graph import town_graph
from tests.training.small_graph import contents, tiny_settings

CPU = torch.device("cpu")
QUESTION = ("p2", "born in", "?")


def test_it_is_made_on_first_use_and_kept(run):
    before = contents(run)
    said = []
    first = load(run, "cpu", said.append).predict(QUESTION).to_dict()
    after = contents(run)
    assert said == ["calibrating on the validation split, once for this run"]
    kept = json.loads(after.pop("calibration.json"))
    assert after == before  # nothing else in the run has changed, its manifest included
    assert kept["weights"] == json.loads(before["manifest.json"])["files"]["weights.safetensors"]
    for task in ("link", "relation"):
        assert kept[task]["loss_after"] <= kept[task]["loss_before"]
        assert kept[task]["questions"] == kept[task]["of"] > 0
        assert 0 <= kept[task]["calibration_error_after"] <= 1
    assert set(kept["number"]) == {"height", "date"}
    again = load(run, "cpu", said.append).predict(QUESTION).to_dict()
    assert again == first
    assert len(said) == 1


def test_whoever_is_told_notes_hears_how_long_it_takes(run, monkeypatch):
    """A large model on a CPU is asked for minutes."""
    said = []
    monkeypatch.setattr(progress, "PAUSE_OF_NOTES", 0.0)
    assert load(run, "cpu", said.append).calibration.tasks
    asked = [line for line in said if line.startswith("asking for ")]
    for what in ("links, head", "links, tail", "relations, relation", "numbers"):
        lines = [line for line in asked if line.startswith(f"asking for {what}: ")]
        done, total = lines[-1].split(": ")[1].split(" questions")[0].split(" of ")
        assert done == total


def test_made_and_read_calibrations_agree(run):
    made = load(run, "cpu").calibration
    read = load(run, "cpu").calibration
    assert made.tasks == read.tasks
    assert made.to_mapping(town_graph().vocabulary) == read.to_mapping(town_graph().vocabulary)


def test_it_is_made_without_ever_holding_all_scores(run, monkeypatch):
    """Of ten million entities, the scores of one tile of questions would be gigabytes."""
    whole = load(run, "cpu").calibration
    (run / "calibration.json").unlink()

    def refuse(tile):
        raise AssertionError("all scores at once")

    monkeypatch.setattr(scoring.ReadTile, "entities", refuse)
    monkeypatch.setattr(scoring, "SCORES_AT_ONCE", 7 * scoring.tile_rows(0, torch.device("cpu")))
    found = load(run, "cpu").calibration
    for position in (HEAD, TAIL):
        expected = whole.inverse_temperature("link", position)
        assert found.inverse_temperature("link", position) == pytest.approx(expected, rel=1e-6)
    assert found.inverse_temperature("relation", RELATION) == whole.inverse_temperature("relation", RELATION)


def test_a_changed_calibration_is_refused(run):
    load(run, "cpu").predict(QUESTION)
    path = run / "calibration.json"
    path.write_text(path.read_text().replace('"calibrated": true', '"calibrated": false'))
    with pytest.raises(UsageError, match=r"calibration\.json: the file was changed"):
        load(run, "cpu").predict(QUESTION)


def test_the_calibration_of_another_run_is_refused(run):
    load(run, "cpu").predict(QUESTION)
    path = run / "calibration.json"
    content = json.loads(path.read_text())
    content.pop("sha256")
    path.write_text(index_text(content | {"weights": "0" * 64}))
    with pytest.raises(UsageError, match="made with other weights"):
        load(run, "cpu").predict(QUESTION)
    path.write_text(index_text(content | {"link": {"temperature": -1.0}}))
    with pytest.raises(UsageError, match="the calibration cannot be read"):
        load(run, "cpu").predict(QUESTION)


def beside(part, **changes):
    """A calibration with a temperature beside a relation, and with changes to it, or to the numbers of a relation."""

    def changed(content):
        figures = {name: value for name, value in content["link"].items() if name != "positions"}
        tail = {**figures, "relations": {"P19": 1.0}}
        link = {**figures, "positions": {"tail": tail}}
        number = {**content["number"]}
        {"link": link, "tail": tail, "beside": tail["relations"], "height": {}}[part].update(changes)
        number["height"] = {**number["height"], **(changes if part == "height" else {})}
        return {**content, "link": link, "number": number}

    return changed


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (beside("link", loss_after=float("nan")), "the calibration cannot be read"),
        (beside("link", of=float("inf")), "the calibration cannot be read"),
        (beside("tail", questions="nan"), "the calibration cannot be read"),
        (beside("tail", temperature=5e-324), "the calibration cannot be read"),
        (beside("beside", P19=10**400), "the calibration cannot be read"),
        (beside("beside", P19=1e300), "the calibration cannot be read"),
        (beside("height", values=10**400), "the intervals are not those of this graph"),
        (beside("height", values=-1), "the intervals are not those of this graph"),
        (beside("height", radius={"0.9": float("nan")}), "the intervals are not those of this graph"),
        (beside("height", radius={"0.9": -1.0}), "the intervals are not those of this graph"),
        (lambda content: content | {"reach": {**content["reach"], "constant": 10**400}}, "the sizes of errors"),
    ],
)
def test_figures_that_nobody_fitted_are_refused_though_their_hash_agrees(run, changed, told):
    """A run that is given away may carry any."""
    load(run, "cpu").predict(QUESTION)
    path = run / "calibration.json"
    content = json.loads(path.read_text())
    content.pop("sha256")
    path.write_text(index_text(beside("link")(content)))
    load(run, "cpu").predict(QUESTION)
    path.write_text(index_text(changed(content)))
    with pytest.raises(UsageError, match=told):
        load(run, "cpu").predict(QUESTION)


def test_a_run_trained_on_valid_is_marked_uncalibrated(tmp_path):
    settings = tiny_settings(train_on="train+valid")
    run = train(start(town_graph(), settings, tmp_path / "run", CPU), CPU).path
    predictor = load(run, "cpu")
    found = predictor.predict(QUESTION)
    assert not found.calibrated
    assert found.notes == ("probabilities are not calibrated: the run was trained on the validation split",)
    number = predictor.predict(("p2", "height", "?"))
    assert number[0].interval is None
    assert number.notes == ("there is no interval: the run was trained on the validation split",)
    kept = json.loads((run / "calibration.json").read_text())
    assert kept["calibrated"] is False
    assert load(run, "cpu").predict(QUESTION).notes == found.notes


def test_a_graph_without_valid_is_said_so(tmp_path):
    from hynt.formats.from_python import graph_from_facts

    graph = graph_from_facts({"train": [("a", "r", "b"), ("b", "r", "a"), ("a", "n", 1), ("b", "n", 2)]})
    run = train(start(graph, tiny_settings(), tmp_path / "run", CPU), CPU).path
    assert load(run, "cpu").predict(("a", "r", "?")).notes == (
        "probabilities are not calibrated: the graph has no validation split",
    )


def test_a_folder_that_cannot_be_written_to_is_noted(run, monkeypatch):
    def refuse(path, text):
        raise DataError("the file cannot be written: Permission denied.")

    monkeypatch.setattr("hynt.calibration.calibration.write_whole", refuse)
    said = []
    assert load(run, "cpu", said.append).predict(QUESTION).calibrated
    assert said[-1] == (
        "the calibration cannot be kept in the run: the file cannot be written: Permission denied. "
        "It is made anew each time."
    )
    assert not (run / "calibration.json").exists()


def test_what_is_measured_on_test(predictor):
    found = measure(predictor.loaded, predictor.calibration, "test", CPU)
    assert found["link"]["questions"] == (2 + 1 + 3) * 12
    assert found["relation"]["questions"] == (1 + 1 + 3) * 12
    numbers = found["number"]
    assert numbers["questions"] == 2 * 12
    covered = [numbers["levels"][level]["coverage"] for level in ("0.5", "0.8", "0.9")]
    assert covered == sorted(covered)
    widths = [numbers["levels"][level]["mean_width"] for level in ("0.5", "0.8", "0.9")]
    assert widths == sorted(widths)
    assert numbers["levels"]["0.99"]["without"] == 24  # 24 residuals are too few for 99 %
    assert numbers["levels"]["0.99"]["coverage"] == 0.0
    assert numbers["triplet"]["questions"] == 12  # heights; dates stand in qualifiers
    by_relation = {row["relation"]: row for row in numbers["relations"]}
    assert {name: (row["questions"], row["values"], row["own"]) for name, row in by_relation.items()} == {
        "height": (12, 12, False),
        "date": (12, 12, False),
    }
    assert by_relation["height"]["coverage"] == numbers["triplet"]["levels"]["0.9"]["coverage"]
    assert np.mean([row["coverage"] for row in numbers["relations"]]) == pytest.approx(covered[-1])


def test_a_truth_beyond_the_end_of_its_interval_is_not_covered(predictor):
    """Heights are never negative in training, so an interval that is wide enough for one does not reach it."""
    loaded, radii = predictor.loaded, predictor.calibration.radii
    height = loaded.graph.vocabulary.relation_ids["height"]
    assert radii.ends_at_zero[height]
    wide = replace(radii, radius=np.full_like(radii.radius, 99.0))
    asked = read_numbers(loaded, "test", CPU)
    truth = np.where(asked.questions.relation == height, -1.0, asked.questions.truth)
    asked = asked._replace(questions=replace(asked.questions, truth=truth))
    uncut = replace(wide, ends_at_zero=np.zeros_like(wide.ends_at_zero), limits=None)
    covered = [coverage(loaded, one, asked)["triplet"]["levels"]["0.9"]["coverage"] for one in (wide, uncut)]
    assert covered == [0.0, 1.0]


def test_the_coverage_of_several_runs_is_one_file(run, tmp_path, monkeypatch, capsys):
    out = tmp_path / "coverage.json"

    def command(*said):
        monkeypatch.setattr(sys, "argv", ["interval_coverage", *map(str, said), "--device", "cpu"])
        return interval_coverage.main()

    assert command(run, tmp_path / "nothing", "--out", out) == 1  # one of them is no run
    assert "run (towns, test): all " in capsys.readouterr().err
    told = read_measured(out)
    assert told["level"] == 0.9
    first, second = told["runs"]
    assert (first["graph"], first["split"], first["reads_of_split"]) == ("towns", "test", 1)
    assert first["measured"]["number"]["questions"] == 24
    assert {"calibration_error_before", "calibration_error_after"} <= set(first["measured"]["link"])
    assert "there is no run" in second["error"]
    assert first["halves"]["times"] == 50
    assert 0.85 < first["halves"]["coverage"]["mean"] < 0.98
    assert first["halves"]["own"] is None  # no relation has thirty numbers
    assert first["thirds"]["questions"] == 24
    assert 0.8 < first["thirds"]["for_the_question"]["coverage"]["mean"] <= 1.0
    assert command(run, "--require", 0, 1) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["reads_of_split"] == 2
    assert command(run, "--require", 1.5, 2) == 1


@pytest.mark.parametrize("name", ["world", "benchmarks", "small", "h200"])
def test_measured_intervals_hold_what_they_promise(name):
    path = ROOT / "docs" / "results" / "raw" / f"interval-coverage-{name}.json"
    for told in read_measured(path)["runs"]:
        assert 0.88 <= told["measured"]["number"]["levels"]["0.9"]["coverage"] <= 0.92
