"""Runs of models that score whole facts: going on equals going through, running statistics included."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from hynt.evaluation.evaluator import evaluate
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted, Watcher
from hynt.runs.opening import load_run
from hynt.runs.run_folder import RunFolder
from hynt.training.run import start, train
from tests.models.fact_scorers import SMALL
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")


class StopAfterFirst(Watcher):
    """Asks to stop once the first epoch is done."""

    def __init__(self, stopper):
        self.stopper = stopper

    def epoch_done(self, record):
        self.stopper.asked = record.epoch == 1


def settings_of(name):
    return tiny_settings(
        name,
        batch_size=16,
        optimiser={"learning_rate": 0.005},
        schedule={"epochs": 3, "shape": "steps"},
        losses={"smoothing": 0.0},
        model=SMALL[name],
    )


@pytest.mark.parametrize("name", SMALL)
def test_stopped_and_resumed_equals_uninterrupted(name, tmp_path):
    torch.set_num_threads(1)
    whole = train(start(small_graph(), settings_of(name), tmp_path / "whole", CPU), CPU)
    stopper = Stopper()
    run = start(small_graph(), settings_of(name), tmp_path / "halves", CPU)
    with pytest.raises(Interrupted):
        train(run, CPU, StopAfterFirst(stopper), stopper)
    halves = train(RunFolder.open(run.path), CPU)
    before, after = (load_file(folder.path / "weights.safetensors") for folder in (whole, halves))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    moved = [key for key in before if "running_mean" in key]
    assert bool(moved) == (name in ("nalp", "tnalp", "hinge"))
    assert all(bool(before[key].any()) for key in moved)


@pytest.mark.parametrize("name", ["hinge", "ram"])
def test_a_kept_run_answers_every_question_it_claims_to(name, tmp_path):
    graph = small_graph()
    run = train(start(graph, settings_of(name), tmp_path / "run", CPU), CPU)
    loaded = load_run(run.path)
    found = evaluate(loaded.model, graph, loaded.scaling, "test", literals=loaded.literals)
    assert 0 < found.metric("link.all.mrr") <= 1
    assert found.metric("number.all.rmse") >= 0
    assert ("relation" in found.per_question) == (name == "hinge")
