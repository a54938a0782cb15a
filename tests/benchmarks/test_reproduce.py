"""The reproduction script: several models in processes of their own, crashes recorded, results kept as they come."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from benchmarks import reproduce
from benchmarks.paper.printed import BASELINES
from benchmarks.reproduce import candidates_of
from benchmarks.reproduce_one import AHEAD, EndingClock, without_ahead
from benchmarks.reproduce_search import GRIDS, grid_changes, together
from benchmarks.result_file import read_results
from hynt.graph.storage import save_graph
from tests.conftest import ROOT
from tests.training.small_graph import small_graph

SMALL = ["--set", "transea:model.dimension=8", "--set", "ram:model.dimension=4", "--set", "schedule.epochs=3"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs") / "small"
    save_graph(small_graph(people=40), folder)
    return folder


def reproduced(out, *options, graphs=()):
    given = [part for graph in graphs for part in ("--graph", str(graph))]
    command = [sys.executable, "-m", "benchmarks.reproduce", *given, "--device", "cpu", "--out", str(out), *options]
    environment = {**os.environ, "PYTHONPATH": "src", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return read_results(out), done.stdout


@pytest.mark.slow
def test_rows_are_whole_and_a_crash_ends_nothing_else(saved, tmp_path):
    out = tmp_path / "result.json"
    options = ["--seconds-per-model", "20", "--jobs", "2", "--validation-facts", "5", *SMALL]
    found, said = reproduced(out, "--models", "transea,ram", *options, "--set", "ram:model.basis=0", graphs=[saved])
    row = found.row("small transea")
    run = row.runs[0]
    assert set(run.metrics["test"]) == {"link", "number"}
    assert {"mrr", "hits@1", "hits@3", "hits@10"} <= set(run.metrics["test"]["link"]["all"])
    assert run.cost["epochs"] == run.cost["planned_epochs"] == 3
    assert row.is_cut_short is False
    assert run.curve[-1][0] == 3
    assert run.cost["facts_per_second"] > 0
    assert run.cost["memory_bytes"] > 0
    assert row.changes[0] == "batch_size=1024"
    assert set(run.per_relation) == {"height"}
    assert len(row.fingerprint) == 16
    assert "--models transea" in row.commands[0]
    trivial = {one.name for one in found.rows} - {"small transea", "small ram"}
    assert trivial == {f"small {name}" for name in ("frequency", "relation-mean", "relation-median", "neighbour-mean")}
    failed = found.row("small ram")
    assert "basis" in "\n".join(failed.measured["last_lines"])
    assert "small ram: ended with" in said

    again, said = reproduced(out, "--models", "transea,ram", *options, graphs=[saved])
    assert again.row("small transea") == row
    assert "small transea" not in said  # what is done is not done again
    assert again.row("small ram").runs
    assert "failed" not in again.row("small ram").measured


@pytest.mark.slow
def test_a_budget_that_is_used_up_is_said_and_so_is_a_call_without_time(saved, tmp_path):
    job = f"graph={saved} models=transea seconds=0.01 tasks=link test_facts=2"
    found, _ = reproduced(tmp_path / "result.json", "--job", job, "--as-published")
    row = found.row("small transea")
    run = row.runs[0]
    assert row.is_cut_short
    assert run.cost["epochs"] < run.cost["planned_epochs"] == 500
    assert row.changes == []
    assert not row.settings["with_statistics"]  # the model alone is what the paper's tables compare
    assert set(run.metrics["test"]) == {"link"}
    assert run.metrics["test"]["link"]["all"]["count"] <= 4
    assert run.cost["test_facts"] == 2
    found, _ = reproduced(tmp_path / "none.json", "--limit-seconds", "0", graphs=[saved])
    assert not any(row.runs for row in found.rows)
    assert all("time" in row.measured["failed"] for row in found.rows)


@pytest.mark.slow
def test_a_whole_schedule_ends_with_the_call_and_is_tested(saved, tmp_path):
    limits = ("--limit-seconds", "30", "--seconds-for-test", "10", "--seconds-per-model", "whole", "--as-published")
    long = ("--set", "schedule.epochs=1000000")
    found, said = reproduced(tmp_path / "result.json", "--models", "transea", *limits, *long, graphs=[saved])
    row = found.row("small transea")
    assert row.is_cut_short, said
    assert 0 < row.runs[0].cost["epochs"] < 1000000
    assert row.changes == ["schedule.epochs=1000000"]
    assert row.runs[0].metrics["test"]["link"]


@pytest.mark.slow
def test_a_grid_is_searched_on_validation_before_the_row_is_made(saved, tmp_path):
    found, _ = reproduced(
        tmp_path / "result.json",
        "--models",
        "transea",
        "--seconds-per-model",
        "20",
        "--validation-facts",
        "5",
        "--search",
        "3",
        *SMALL,
        graphs=[saved],
    )
    row = found.row("small transea")
    assert [len(one["changes"]) > 0 for one in row.measured["searched"]] == [False, True, True]
    best = max(row.measured["searched"], key=lambda one: one["value"])
    assert row.changes == ["batch_size=1024", "schedule.epochs=3", "model.dimension=8", *best["changes"]]
    assert row.runs[0].cost["best"]["value"] == pytest.approx(best["value"])  # the same training, once more
    for change in best["changes"]:
        path, _, value = change.partition("=")
        node = row.settings
        for part in path.split("."):
            node = node[part]
        assert str(node) == value


@pytest.mark.slow
def test_named_values_are_tried_on_validation_and_the_best_is_kept(saved, tmp_path):
    rates = ["optimiser.learning_rate=1e-9", "optimiser.learning_rate=0.5"]
    found, _ = reproduced(
        tmp_path / "result.json",
        "--models",
        "transea",
        "--seconds-per-model",
        "20",
        "--validation-facts",
        "5",
        "--try",
        f"transea:{rates[0]}",
        "--try",
        f"transea:{rates[1]}",
        "--search-share",
        "0.5",
        "--set",
        "optimiser.learning_rate=0.1",
        *SMALL,
        graphs=[saved],
    )
    row = found.row("small transea")
    assert [one["changes"] for one in row.measured["searched"]] == [[rate] for rate in rates]
    best = max(row.measured["searched"], key=lambda one: one["value"])
    # The rate that all were to have is not told beside the one that was chosen instead.
    assert [change for change in row.changes if "learning_rate" in change] == best["changes"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--try", "tranze:a=1"], "'tranze:a=1' is for no model. Known: "),
        (["--set", "rom:model.dimension=4"], "'rom:model.dimension=4' is for no model"),
        (["--job", "graph=world fill=maybe"], "cannot read the job 'graph=world fill=maybe'"),
        (["--job", "graph=world fil=yes"], "cannot read the job 'graph=world fil=yes'"),
    ],
)
def test_a_slip_of_the_pen_is_refused_before_anything_is_run(options, told, saved, tmp_path, monkeypatch):
    assert told in refusal(monkeypatch, saved, tmp_path / "out.json", *options)
    assert not (tmp_path / "out.json").exists()


def test_a_damaged_file_of_results_is_left_as_it_is(saved, tmp_path, monkeypatch):
    out = tmp_path / "out.json"
    out.write_text("{", encoding="utf-8")
    assert "cannot be read" in refusal(monkeypatch, saved, out)
    assert out.read_text(encoding="utf-8") == "{"


def refusal(monkeypatch, graph, out, *options):
    """What the script says as it leaves; Python prints such a text and exits with 1."""
    arguments = ["--graph", str(graph), "--models", "transea", "--out", str(out), *options]
    monkeypatch.setattr(sys, "argv", ["reproduce", *arguments])
    with pytest.raises(SystemExit) as left:
        reproduce.main()
    assert isinstance(left.value.code, str)
    return left.value.code


def test_a_model_has_the_candidates_that_name_it():
    tried = ["ram:", "gran:a=9", "ram:a=1;b.c=2"]
    assert candidates_of("ram", tried) == [[], ["a=1", "b.c=2"]]
    assert candidates_of("nalp", tried) == []


def test_of_two_changes_of_one_setting_the_later_counts():
    assert together(["a=1", "b.c=2", "a=3"], ["b.c=x=y"]) == ("a=3", "b.c=x=y")


@pytest.mark.slow
def test_a_schedule_can_be_cut_to_the_time_there_is(saved, tmp_path):
    small = ["--set", "model.dimension=8", "--set", "model.layers=1", "--set", "model.heads=2"]
    small += ["--set", "model.feedforward=8", "--validation-facts", "5", "--jobs", "2"]
    found, _ = reproduced(
        tmp_path / "result.json", *small, "--job", f"graph={saved} models=gran seconds=1 tasks=link fill=yes"
    )
    row = found.row("small gran")
    assert row.settings["schedule"]["seconds"] == 1
    assert row.settings["schedule"]["epochs"] > 10_000  # time alone ends it, and the rate falls by time
    assert row.runs[0].cost["planned_epochs"] == 200  # but the authors' schedule is what the row is measured by
    assert row.is_cut_short is (row.runs[0].cost["epochs"] < 200)


@pytest.mark.slow
def test_training_ends_before_the_call_does_and_leaves_a_row(saved, tmp_path):
    found, _ = reproduced(
        tmp_path / "result.json",
        "--models",
        "transea",
        "--seconds-per-model",
        "600",
        "--as-published",
        "--set",
        "schedule.epochs=1000000",
        "--validation-facts",
        "5",
        "--limit-seconds",
        "45",
        "--seconds-for-test",
        "30",
        graphs=[saved],
    )
    assert not any("failed" in one.measured for one in found.rows)
    row = found.row("small transea")
    assert row.is_cut_short
    assert 0 < row.runs[0].seconds["train"] < 45  # as long as it was, not as the clock was made to say
    assert row.runs[0].metrics["test"]["link"]["all"]["count"] > 0


def test_every_model_of_the_paper_has_a_grid_that_differs_from_its_first():
    assert set(GRIDS) == set(BASELINES)
    for model in GRIDS:
        changes = grid_changes(model, 4)
        assert changes[0] == ()
        assert len(set(changes)) == 4


def test_a_clock_that_is_to_end_runs_ahead_whenever_it_is_asked_and_rows_tell_nothing_of_it():
    clock = EndingClock(time.monotonic() - 1, lambda: 5.0)
    told = [clock() for _ in range(3)]
    assert told[0] == 5.0  # what is counted from
    assert told[2] - told[1] >= AHEAD <= told[1] - told[0]  # a validation in between swallows one, not both
    row = {"train_seconds": told[2] - told[0] + 8.25, "facts_per_second": 1e9, "curve": [{"seconds": AHEAD + 0.5}]}
    assert without_ahead(row) == {"train_seconds": 8.25, "facts_per_second": 1e9, "curve": [{"seconds": 0.5}]}
    assert without_ahead({"train_seconds": 400.25, "epoch_seconds": None}) == {
        "train_seconds": 400.25,
        "epoch_seconds": None,
    }
