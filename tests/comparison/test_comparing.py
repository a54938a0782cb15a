"""A comparison that is stopped in the middle of a model goes on there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from hynt.comparison.comparing import Comparison, trial_for
from hynt.comparison.table import minutes_text
from hynt.comparison.trial import Trial, TrialPlace, training_clock
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.step import CapturedStep
from tests.heard_progress import HeardProgress
from tests.training.small_graph import small_graph

CPU = torch.device("cpu")


def epochs_of(heard, model):
    return {update.done for update in heard.updates if update.stage.startswith(f"{model} (") and update.done}


def test_the_same_call_goes_on_where_another_was_stopped(tmp_path):
    graph = small_graph(people=40)
    trials = [trial_for(model, graph, CPU, 0, 1.5) for model in ("transea", "ram")]
    compared = Comparison(tmp_path / "compared", TrialPlace(graph, CPU), trials)
    stopper = Stopper()

    def stop(update):
        if update.stage == "ram (2 of 2)" and update.done == 2:
            stopper.asked = True

    first = HeardProgress(stop)
    with pytest.raises(Interrupted):
        compared.run(first, stopper)
    assert [text.split(":")[0] for text in first.said] == ["transea (1 of 2)"]  # done; the other is not
    saved = json.loads((tmp_path / "compared" / "rows" / "transea-0.json").read_text(encoding="utf-8"))

    second = HeardProgress()
    found = compared.run(second, Stopper())
    assert epochs_of(second, "transea") == set()  # its row was there
    assert min(epochs_of(second, "ram")) > 1  # its first epochs were there
    assert [row["model"] for row in found["rows"]] == ["transea", "ram"]
    assert found["rows"][0]["test"] == saved["test"]
    assert found["rows"][1]["epochs"] > 2


def test_presets_and_epochs_fit_the_graph_and_the_device():
    graph = small_graph(people=40)
    small = trial_for("stare", graph, CPU, 3, 60.0)
    assert small.preset == "stare-small"
    assert small.planned_epochs(graph, CPU) == 400  # its paper's
    assert small.settings(graph, CPU).schedule.period == 50
    assert small.settings(graph, CPU).seed == 3
    constant = trial_for("kbln", graph, CPU, 0, 60.0).settings(graph, CPU).schedule
    assert constant.lowest_rate == pytest.approx(1e-2)
    assert constant.period == constant.epochs
    inductive = trial_for("hynt-inductive", graph, CPU, 0, 60.0)  # it has no paper's schedule, so its own is taken
    assert inductive.settings(graph, CPU).schedule.seconds == 60.0
    hynt = trial_for("hynt", graph, CPU, 0, 60.0)
    own = resolve_settings(SettingsRequest("hynt"), graph, on_gpu=False)
    assert hynt.planned_epochs(graph, CPU) == own.schedule.epochs
    assert hynt.settings(graph, CPU).model == own.model
    cuda = torch.device("cuda")
    assert trial_for("stare", graph, cuda, 0, 60.0).preset is None
    assert trial_for("stare", graph, cuda, 0, 60.0).settings(graph, cuda).model.dimension == 256


def test_every_model_has_the_same_time_however_few_epochs_its_schedule_has(tmp_path):
    graph, time, few = small_graph(people=12), iter(range(10**9)), ("schedule.epochs=4", "schedule.period=4")
    place = TrialPlace(graph, CPU, clock=lambda: float(next(time)))  # a clock that every look moves on by a second
    trials = [replace(trial_for(model, graph, CPU, 0, 200.0), changes=few) for model in ("hynt", "mt-kgnn")]
    heard = HeardProgress()
    rows = Comparison(tmp_path / "compared", place, trials).run(heard, Stopper())["rows"]
    assert [row["train_seconds"] for row in rows] == pytest.approx([200.0] * 2, rel=0.05)
    for row, trial in zip(rows, trials, strict=True):
        assert row["epochs"] > row["schedule_epochs"] == trial.planned_epochs(graph, CPU) == 4
        assert row["budget_limited"] is False
    lines = map(json.loads, _lines(tmp_path / "compared" / "runs" / "hynt-0"))
    rates = [line["learning_rate"] for line in lines if "learning_rate" in line]
    assert rates[0] > 100 * rates[-1]  # the cosine ends with the time


def test_compiling_takes_no_training_time(monkeypatch):
    before = training_clock()
    monkeypatch.setattr(CapturedStep, "preparing_seconds", CapturedStep.preparing_seconds + 1000.0)
    assert -1000 <= training_clock() - before < -990
    assert TrialPlace(small_graph(), CPU).clock is training_clock


def _lines(run):
    return (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()


def test_a_limit_alone_does_not_stretch_a_schedule():
    graph = small_graph(people=40)
    settings = Trial("hynt", "world", seconds=600.0).settings(graph, CPU)
    assert (settings.schedule.epochs, settings.schedule.seconds) == (40, 600.0)


def test_one_minute_is_no_minutes():
    assert [minutes_text(minutes) for minutes in (1.0, 2.0, 0.5)] == ["1 minute", "2 minutes", "0.5 minutes"]


@pytest.mark.parametrize("limit, told", [(120.0, "1.3 of 2 min"), (30.0, "78 of 30 s")])
def test_minutes_are_told_as_minutes(limit, told):
    from hynt.comparison.comparing import _TrialProgress

    heard = HeardProgress()
    news = _TrialProgress(heard, "ram (1 of 1)", limit)
    news.seconds = 78.0
    news.update(3)
    assert heard.updates[-1].note == told
