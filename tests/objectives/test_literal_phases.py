"""Training in phases: the head for numbers comes after links, from the best weights, and survives a stop in between."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from hynt.errors import UsageError
from hynt.evaluation.evaluator import evaluate
from hynt.formats.from_python import graph_from_facts
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted, Watcher
from hynt.runs.opening import load_run
from hynt.training.estimate import estimate
from hynt.training.run import start, train
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")
NAMES = ("transea", "mt-kgnn", "kbln", "literale")


def settings_of(name, **changes):
    model = {"dimension": 8} | ({"head_epochs": 6} if name in ("kbln", "literale") else {})
    given = {
        "batch_size": 16,
        "optimiser": {"learning_rate": 0.02},
        "schedule": {"epochs": 6, "period": 6},
        "validation": {"every": 2},
        "model": model,
    }
    return tiny_settings(name, **given | changes)


def lines(run):
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


class StopAfter(Watcher):
    def __init__(self, phase, epoch, stopper):
        self.phase, self.epoch, self.stopper = phase, epoch, stopper

    def epoch_done(self, record):
        if (record.phase, record.epoch) == (self.phase, self.epoch):
            self.stopper.asked = True


@pytest.mark.parametrize("name", NAMES)
def test_a_run_trains_and_answers_what_it_says(name, tmp_path):
    run = train(start(small_graph(), settings_of(name), tmp_path / "run", CPU), CPU)
    loaded = load_run(run.path)
    found = evaluate(loaded.model, loaded.graph, loaded.scaling, "test").to_mapping()
    assert 0 < found["link"]["triplet"]["mrr"] <= 1
    assert found["number"]["triplet"]["count"] == 2
    assert "relation" not in found or found["relation"]["all"]["count"] == 0
    losses = [line["loss"] for line in lines(run) if "loss" in line]
    assert sum(losses[5].values()) < sum(losses[0].values())


@pytest.mark.parametrize("name", ["kbln", "literale"])
def test_the_head_is_fitted_to_the_best_weights_and_leaves_them_as_they_are(name, tmp_path):
    graph, settings = small_graph(), settings_of(name)
    run = train(start(graph, settings, tmp_path / "run", CPU), CPU)
    phases = [line["phase"] for line in lines(run) if "loss" in line]
    assert phases == ["grouped questions"] * 6 + ["number head"] * 6
    rates = {line["learning_rate"] for line in lines(run) if line.get("phase") == "number head" and "loss" in line}
    assert rates == {settings.model.head_rate}
    judged = [line for line in lines(run) if "validation" in line]
    assert [(line["phase"], line["epoch"]) for line in judged] == [
        ("grouped questions", 2),
        ("grouped questions", 4),
        ("grouped questions", 6),
        ("number head", 6),
    ]
    best = max(judged[:3], key=lambda line: line["value"])["epoch"]
    shorter = {"schedule": {"epochs": 6, "period": 6}, "validation": {"every": best, "patience": 1}}
    other = start(graph, settings_of(name, **shorter), tmp_path / "other", CPU)
    stopper = Stopper()
    with pytest.raises(Interrupted):
        train(other, CPU, StopAfter("number head", 1, stopper), stopper)
    weights = load_file(run.path / "weights.safetensors")
    at_best = load_file(next(other.checkpoints.glob(f"0-{best:06d}-*/weights.safetensors")))
    same = [torch.equal(weights[key], at_best[key]) for key in weights if not key.startswith("number_head")]
    assert same
    assert all(same)
    assert not torch.equal(weights["number_head.weight"], at_best["number_head.weight"])


@pytest.mark.parametrize(
    "name, phase",
    [
        ("kbln", "grouped questions"),
        ("kbln", "number head"),
        ("mt-kgnn", "attribute triples"),
        ("transea", "attribute triples"),
    ],
)
def test_going_on_equals_going_through(name, phase, tmp_path):
    graph, settings = small_graph(), settings_of(name)
    whole = train(start(graph, settings, tmp_path / "whole", CPU), CPU)
    stopper = Stopper()
    run = start(graph, settings, tmp_path / "stopped", CPU)
    with pytest.raises(Interrupted):
        train(run, CPU, StopAfter(phase, 3, stopper), stopper)
    train(run, CPU)
    assert (run.path / "weights.safetensors").read_bytes() == (whole.path / "weights.safetensors").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_facts_with_hundreds_of_qualifiers_and_graphs_without_numbers_are_fine(name, tmp_path):
    long = [("a", "to", "b", [("with", f"e{i}") for i in range(358)]), ("b", "to", "c"), ("c", "to", "a")]
    graph = graph_from_facts({"train": long, "valid": [("a", "to", "c")], "test": [("b", "to", "a")]}, name="long")
    run = train(start(graph, settings_of(name), tmp_path / "run", CPU), CPU)
    loaded = load_run(run.path)
    assert evaluate(loaded.model, graph, loaded.scaling, "test").to_mapping()["link"]["triplet"]["count"] == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_without_links_is_refused(name, tmp_path):
    graph = graph_from_facts({"train": [("a", "age", 3), ("b", "age", 4)]}, name="ages")
    with pytest.raises(UsageError, match=f"no training fact has an entity as its tail, so {name} has no link"):
        train(start(graph, settings_of(name), tmp_path / "run", CPU), CPU)


def test_what_a_run_will_take_counts_all_phases():
    found = estimate(small_graph(), settings_of("kbln"), CPU)
    assert found.epochs == 12
