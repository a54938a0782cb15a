"""One bad value that a run has learned from does not make it accuse right facts."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from hynt import number
from hynt.auditing import auditing
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.evaluation.combining import combined
from hynt.formats.from_python import graph_from_facts
from hynt.front.auditing import audit
from hynt.models.combination import GroupWeights, Weights
from hynt.models.contract import Position
from hynt.runs.opening import load_run
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")
SEED, BAD, PLANTED = 4, 11_995.8, 500.0


def speeds_graph():
    """Speeds around 100, one of them in training far off; many other numbers, and a wrong size to be judged."""
    chance = random.Random(SEED)
    facts = {"train": [], "valid": [], "test": []}
    for split, count in (("train", 20), ("valid", 2), ("test", 15)):
        for index in range(count):
            head = f"train {index}"
            facts[split].append((head, "speed", number(chance.gauss(100, 10))))
            facts[split] += [(head, f"size {kind}", number(chance.gauss(50, 10))) for kind in range(14)]
    facts["train"].append(("train 0", "speed", number(BAD)))
    facts["test"].append(("train 1", "size 0", number(PLANTED)))
    return graph_from_facts(facts)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """By the mean of each relation, which the bad value has moved by 600."""
    folder = tmp_path_factory.mktemp("speeds")
    run = train(start(speeds_graph(), tiny_settings("relation-mean"), folder / "run", CPU), CPU).path
    return audit(run, splits=["test"], folds=3, device="cpu", work=folder / "work").top(1000)


def test_right_facts_are_not_accused_because_of_a_bad_training_value(judged):
    right = [row["score"] for row in judged if row["relation"] == "speed"]
    others = [row["score"] for row in judged if row["relation"] != "speed"]
    assert len(right) == 15
    assert sum(right) / len(right) <= max(others)
    assert [row["relation"] for row in judged[:10]].count("speed") <= 3  # not more than chance


def test_the_wrong_one_is_still_found(judged):
    assert judged[0]["stored_value"] == PLANTED


def test_statistics_that_a_run_answers_with_know_nothing_of_what_they_judge(tmp_path, monkeypatch):
    """A number of training that lies off its curve: with the fact counted the curve goes through it."""
    facts = {"train": [("town", "people", 10.0 * year, [("year", float(year))]) for year in range(40)]}
    facts["train"][20] = ("town", "people", 265.0, [("year", 20.0)])
    graph = graph_from_facts(facts)
    model = {"dimension": 16, "layers": 1, "heads": 2, "feedforward": 32, "bins": 21}
    settings = tiny_settings("hynt-inductive", model=model, schedule={"epochs": 1, "epoch_steps": 1})
    run = train(start(graph, settings, tmp_path / "run", CPU), CPU).path
    loaded = load_run(run)
    members = ("hynt-inductive", "number-series")
    weights = Weights(members, {(Task.NUMBER, Position.TAIL): GroupWeights((0.01, 0.99), {})})
    known = FactTensors.from_table(graph.split("train"), graph.vocabulary, loaded.scaling)
    answering = replace(loaded, model=combined([loaded.model], known, weights))
    monkeypatch.setattr(auditing, "load_run", lambda *_: answering)
    rows = audit(run, splits=["train"], device="cpu").rows(components=True)
    (row,) = [one for one in rows if one.get("stored_value") == 265.0]
    assert row["said_value"] == pytest.approx(200.0, abs=15.0)
