"""Settings that ask for more than any machine has: one word about which, before a folder is made or memory is taken."""

from __future__ import annotations

import dataclasses
import re
import time

import pytest
import torch

from hynt.config import with_overrides
from hynt.config.declarations import settings_of, shape_of
from hynt.config.overrides import _LONG_KEY
from hynt.errors import DataError, UsageError
from hynt.models.registry import MODELS
from hynt.runs.model_choice import check_memory, settings_class_for
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import fit_scaling, training_table
from hynt.training.estimate import estimate
from tests.attacks.forging import sign_run
from tests.training.small_graph import small_graph

CPU = torch.device("cpu")
MOST = 10**9
COUNTS = [
    (name, setting)
    for name in MODELS
    for setting, declared in settings_of(MODELS.get(name).settings).items()
    if shape_of(declared.annotation).bare is int
]


def refused(hynt, place, out, *words) -> str:
    outcome = hynt.fair("train", place / "graph", "--out", out / "run", "--device", "cpu", *words)
    assert outcome.code == 2
    assert not (out / "run").exists()
    assert len(outcome.said) < 1_000
    return outcome.said


@pytest.mark.parametrize("setting", ["model.context_layers", "model.dimension", "schedule.epochs", "batch_size"])
def test_a_count_without_end_is_refused(hynt, place, tmp_path, setting):
    said = refused(hynt, place, tmp_path, "--set", f"{setting}={10**26}")
    assert f"must be at most 1,000,000,000, but is {10**26:,}" in said
    assert f"where: {setting}" in said


def test_a_number_that_no_model_computes_with_is_refused(hynt, place, tmp_path):
    said = refused(hynt, place, tmp_path, "--set", "optimiser.learning_rate=1e308")
    assert "must be at most 1e+38, but is 1e+308" in said
    assert "where: optimiser.learning_rate" in said


@pytest.mark.parametrize(
    "key", ["x." * 100_000 + "a = 1", "[" + '"x" . ' * 100_000 + "a]", "b = {" + "'x'." * 100_000 + "a = 1}"]
)
def test_a_key_of_very_many_parts_is_refused_before_it_is_read(hynt, place, tmp_path, key):
    (tmp_path / "own.toml").write_text(key)
    said = refused(hynt, place, tmp_path, "--preset", tmp_path / "own.toml")
    assert "a key has very many parts" in said


@pytest.mark.parametrize(
    "line", ["x" * 900_000, "x." * 49 + "a = 1", '"' * 900_000, "a " * 450_000, "'a'.\n" * 180_000]
)
def test_looking_for_such_a_key_takes_no_time(line):
    began = time.process_time()
    assert not _LONG_KEY.search(line)
    assert time.process_time() - began < 1.0


def test_a_file_of_settings_may_not_count_without_end(hynt, place, tmp_path):
    (tmp_path / "own.toml").write_text(f"[model]\nprediction_layers = {10**26}\n")
    said = refused(hynt, place, tmp_path, "--preset", tmp_path / "own.toml")
    assert "must be at most 1,000,000,000" in said
    assert "model.prediction_layers" in said


@pytest.mark.parametrize(
    ("named", "more"),
    [
        ("model.context_layers", ()),
        ("model.dimension", ()),
        ("model.prediction_layers", ("--set", "model.dimension=16384")),
        ("model.layers", ("--model", "gran")),
        ("model.filters", ("--model", "hinge")),
    ],
)
def test_a_model_that_no_memory_holds_is_refused(hynt, place, tmp_path, named, more):
    words = [*more, "--set", f"{named}={200 if 'dimension' in str(more) else MOST}"]
    said = refused(hynt, place, tmp_path, *words)
    assert re.search(
        r"the model needs (more than|a tensor of) [\d,]+ (bytes|tensors), more than there is room for", said
    )
    assert f"where: {named}" in said
    assert "what to do: Give less than" in said
    assert refused(hynt, place, tmp_path, "--estimate", *words) == said


def test_a_run_of_someone_else_may_not_count_without_end(hynt, away, tmp_path):
    config = (away / "config.toml").read_text()
    (away / "config.toml").write_text(re.sub(r"(?m)^context_layers = \d+$", f"context_layers = {10**26}", config))
    sign_run(away)
    outcome = hynt.fair("pull", away, tmp_path / "pulled")
    assert outcome.code == 1
    assert "must be at most 1,000,000,000" in outcome.said
    assert "config.toml" in outcome.said


@pytest.mark.parametrize(("name", "setting"), COUNTS)
def test_each_count_of_each_model_is_bounded(name, setting, monkeypatch):
    """At the most it may say, it is refused as such or needs no more memory than the model as it is."""
    settings: RunSettings = settings_class_for(name)()
    with pytest.raises(UsageError, match="must be at most"):
        with_overrides(settings, [f"model.{setting}={MOST + 1}"])
    graph = small_graph()
    table, scaling = training_table(graph, settings), fit_scaling(graph, settings)
    monkeypatch.setattr("hynt.runs.model_choice.memory_here", lambda: 2**28)
    check_memory(settings, table, graph.vocabulary, scaling, CPU)
    try:
        model = dataclasses.replace(settings.model, **{setting: MOST})
        check_memory(dataclasses.replace(settings, model=model), table, graph.vocabulary, scaling, CPU)
    except UsageError as problem:
        assert problem.where == f"model.{setting}"
    except ValueError as problem:
        assert setting.endswith("heads")
        assert "cannot be shared among" in str(problem)
    else:
        assert setting in NO_SIZE


def test_a_graph_too_large_for_the_machine_is_no_fault_of_the_settings(monkeypatch):
    monkeypatch.setattr("hynt.runs.model_choice.memory_here", lambda: 2**20)
    graph, settings = small_graph(), settings_class_for("hynt")()
    with pytest.raises(UsageError, match="the model needs a tensor of 786,432 bytes") as problem:
        check_memory(settings, training_table(graph, settings), graph.vocabulary, fit_scaling(graph, settings), CPU)
    assert (problem.value.where, problem.value.advice) == ("model", "Train it where there is more memory.")


def test_a_model_that_looks_into_its_tensors_is_not_refused(monkeypatch):
    def build(sizes, facts, settings):
        return torch.zeros(10**6).numpy().sum()

    monkeypatch.setitem(MODELS._things, "transea", dataclasses.replace(MODELS.get("transea"), build=build))
    graph, settings = small_graph(), settings_class_for("transea")()
    check_memory(settings, training_table(graph, settings), graph.vocabulary, fit_scaling(graph, settings), CPU)


NO_SIZE = {"attribute_steps", "head_epochs", "instances", "negatives"}
"""What is done so often, or so much of it at once, and makes no model larger."""


def test_a_step_that_takes_too_much_says_what_to_take_less_of(monkeypatch):
    def full(*_: object) -> float:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.")

    monkeypatch.setattr("hynt.training.estimate._seconds", full)
    settings: RunSettings = settings_class_for("transea")()
    with pytest.raises(DataError, match="the device ran out of memory with a batch size of 2048") as problem:
        estimate(small_graph(), settings, CPU)
    assert problem.value.advice == "Start again with less in a step, say --set batch_size=512."
    assert "checkpoints" not in problem.value.what
