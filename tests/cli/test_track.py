"""`hynt train --track` as a person meets it."""

from __future__ import annotations

import sys

import pytest

from hynt.errors import UsageError
from hynt.graph.storage import save_graph
from hynt.tracking import TRACKERS
from tests.training.small_graph import small_graph


def test_unknown_and_missing_trackers_are_refused_before_training(hynt, tmp_path, monkeypatch):
    save_graph(small_graph(), tmp_path / "graph")
    done = hynt("train", tmp_path / "graph", "--out", tmp_path / "run", "--track", "tensorbord")
    assert done.code == 2
    assert "unknown tracker 'tensorbord'" in done.err
    assert "Did you mean tensorboard?" in done.err
    for library, name, extra in (("mlflow", "mlflow", "mlflow"), ("wandb", "wandb", "wandb")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(UsageError, match=rf"pip install 'hynt\[{extra}\]'"):
            TRACKERS[name]()
    assert not (tmp_path / "run").exists()


def test_the_command_tracks_beside_the_run(hynt, tmp_path):
    save_graph(small_graph(), tmp_path / "graph")
    small = [f"--set=model.{name}=8" for name in ("dimension", "context_heads", "prediction_heads")]
    done = hynt(
        "train",
        tmp_path / "graph",
        "--out",
        tmp_path / "runs" / "a",
        "--epochs",
        1,
        *small,
        "--device",
        "cpu",
        "--track",
        "tensorboard",
    )
    assert done.code == 0, done.err
    assert list((tmp_path / "runs" / "tracking" / "tensorboard").glob("a-*/events.*"))
    assert not list((tmp_path / "runs" / "a").rglob("events.*"))
