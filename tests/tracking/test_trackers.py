"""What trackers are told is what stands in metrics.jsonl, in each tracker's own form; and none can harm a training."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import pytest
import torch

from hynt.interruption import Stopper
from hynt.runs.checkpoint import EpochRecord, Interrupted, ValidationRecord, Watcher
from hynt.runs.run_folder import RunFolder
from hynt.tracking import Tracked, flat, trackers_named, tracking
from hynt.training.run import start, train
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")
SETTINGS = {"schedule": {"epochs": 3, "period": 3}, "validation": {"every": 1}}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No server of whoever runs the tests is told anything."""
    torch.set_num_threads(1)
    for name in ("MLFLOW_TRACKING_URI", "WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def tracked_run(name: str, tmp_path: Path, stop_after: int | None = None, run: RunFolder | None = None) -> RunFolder:
    """Trains with one tracker; `stop_after` an epoch, as Ctrl-C would."""
    run = run or start(small_graph(), tiny_settings(**SETTINGS), tmp_path / "run", CPU)
    stopper = Stopper()

    class Stopping(Watcher):
        def validated(self, record):
            stopper.asked = record.epoch == stop_after

        def note(self, text):
            raise AssertionError(text)

    trackers = trackers_named([name])
    with tracking(Stopping(), trackers, lambda: Tracked.of(run, tmp_path / "tracking")) as watcher:
        return train(run, CPU, watcher, stopper)


def written(run: RunFolder) -> dict[str, dict[int, float]]:
    """What metrics.jsonl says, under the names that trackers are told."""
    found: dict[str, dict[int, float]] = {}
    for line in map(json.loads, run.metrics.read_text().splitlines()):
        if "validation" in line:
            values = {f"valid/{name}": value for name, value in flat(line["validation"], "/").items()}
        else:
            values = {f"loss/{name}": value for name, value in line["loss"].items()}
            values["learning_rate"] = line["learning_rate"]
        for name, value in values.items():
            if isinstance(value, int | float) and math.isfinite(value):
                found.setdefault(name, {})[line["epoch"]] = value
    assert "valid/link/all/mrr" in found
    assert "loss/number" in found
    return found


def test_tensorboard_has_every_number(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = tracked_run("tensorboard", tmp_path)
    (folder,) = (tmp_path / "tracking" / "tensorboard").iterdir()
    assert folder.name.startswith("run-")
    events = EventAccumulator(str(folder))
    events.Reload()
    for name, values in written(run).items():
        assert {event.step: event.value for event in events.Scalars(name)} == pytest.approx(values)
    assert "settings/text_summary" in events.Tags()["tensors"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # MLflow's own, of SQLAlchemy
def test_mlflow_has_every_number_and_a_resumed_run_stays_one(tmp_path):
    from mlflow.tracking import MlflowClient

    with pytest.raises(Interrupted):
        tracked_run("mlflow", tmp_path, stop_after=1)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/tracking/mlflow.db")
    (experiment,) = [found for found in client.search_experiments() if found.name == "hynt"]
    (first,) = client.search_runs([experiment.experiment_id])
    assert first.info.status == "KILLED"
    run = tracked_run("mlflow", tmp_path, run=RunFolder.open(tmp_path / "run"))
    (one,) = client.search_runs([experiment.experiment_id])
    assert (one.info.status, one.info.run_name) == ("FINISHED", "run")
    assert one.data.params["optimiser.learning_rate"] == "0.005"
    assert one.data.tags["model"] == "hynt"
    for name, values in written(run).items():
        history = client.get_metric_history(one.info.run_id, name.replace("@", "_at_"))
        assert {metric.step: metric.value for metric in history} == pytest.approx(values)


def test_wandb_keeps_a_run_to_send_later(tmp_path):
    import wandb

    tracked_run("wandb", tmp_path)
    wandb.teardown()  # as at the end of a process: its service has written everything by then
    (file,) = (tmp_path / "tracking" / "wandb").rglob("offline-run-*/*.wandb")
    content = file.read_bytes()
    for name in (b"valid/link/all/mrr", b"loss/number", b"optimiser.learning_rate"):
        assert name in content
    assert not list((tmp_path / "tracking").rglob("*.py"))


class Broken:
    """A tracker that fails at the second thing it is told."""

    def __init__(self) -> None:
        self.told = 0

    def begin(self, run):
        self.told += 1

    def log(self, values, step):
        self.told += 1
        raise OSError("the disk is full\nreally")

    def end(self, how):
        raise AssertionError("a tracker that failed is told no more")


def test_training_goes_on_without_a_tracker_that_fails(tmp_path):
    notes = []

    class Noting(Watcher):
        def note(self, text):
            notes.append(text)

    run = start(small_graph(), tiny_settings(**SETTINGS), tmp_path / "run", CPU)
    broken = Broken()
    with tracking(Noting(), {"broken": broken}, lambda: Tracked.of(run, tmp_path)) as watcher:
        run = train(run, CPU, watcher)
    assert run.is_finished
    assert broken.told == 2
    assert [note for note in notes if "broken" in note] == [
        "broken failed, and training goes on without it: the disk is full"
    ]


class Remembering:
    def __init__(self) -> None:
        self.logged, self.ended = [], None

    def begin(self, run):
        self.run = run

    def log(self, values, step):
        self.logged.append((step, dict(values)))

    def end(self, how):
        self.ended = how


def test_a_later_phase_has_names_of_its_own_and_what_is_no_number_is_left_out():
    remembering = Remembering()
    with contextlib.suppress(ZeroDivisionError), tracking(Watcher(), {"one": remembering}, lambda: None) as watcher:
        watcher.epoch_done(EpochRecord("training", 1, 2, 0.1, {"link": 2.0}, {"link": 3}, 3, 0.5))
        results = {"link": {"all": {"mrr": 0.25, "hits": None}}}
        watcher.validated(ValidationRecord("training", 1, "link.all.mrr", 0.25, True, 0.1, 0.5, results))
        watcher.epoch_done(EpochRecord("regression", 1, 1, 0.2, {"number": float("nan")}, {"number": 3}, 3, 0.25))
        raise ZeroDivisionError
    assert remembering.logged == [
        (1, {"loss/link": 2.0, "learning_rate": 0.1, "epoch_seconds": 0.5}),
        (1, {"valid/link/all/mrr": 0.25}),
        (1, {"regression/learning_rate": 0.2, "regression/epoch_seconds": 0.25}),
    ]
    assert remembering.ended == "failed"
