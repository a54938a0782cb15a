"""A run from start to end: what it holds, that it can be moved, and that going on equals going through."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from hynt.config import with_overrides
from hynt.errors import DataError, UsageError
from hynt.evaluation.evaluator import evaluate
from hynt.formats.from_python import graph_from_facts
from hynt.graph.storage import save_graph
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted, Watcher
from hynt.runs.opening import last_good, load_run
from hynt.runs.run_folder import RunFolder, refuse_changes
from hynt.training.run import start, train
from tests.training.small_graph import TINY, contents, forty_facts, small_graph, tiny_settings

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return train(start(small_graph(), tiny_settings(), folder, CPU), CPU)


class StopAfter(Watcher):
    """Asks to stop once an epoch is done."""

    def __init__(self, epoch, stopper):
        self.epoch, self.stopper = epoch, stopper

    def epoch_done(self, record):
        if record.epoch == self.epoch:
            self.stopper.asked = True


def lines(run, *, timed=False):
    found = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    return [{k: v for k, v in line.items() if timed or k not in ("seconds", "trained_seconds")} for line in found]


def test_a_finished_run_holds_what_it_should(finished):
    assert sorted(path.name for path in finished.path.iterdir()) == [
        "config.toml",
        "environment.json",
        "graph",
        "manifest.json",
        "metrics.jsonl",
        "reads.json",
        "scaling.json",
        "weights.safetensors",
    ]
    assert finished.is_finished
    assert finished.manifest["training"]["best"]["metric"] == "link.all.mrr"
    epochs = [line["epoch"] for line in lines(finished) if "loss" in line]
    assert epochs == [1, 2, 3, 4]
    assert [line["epoch"] for line in lines(finished) if "validation" in line] == [2, 4]


def test_nothing_in_a_run_names_a_place_or_a_person(finished, tmp_path):
    import getpass
    import socket

    words = [str(finished.path.parent).encode(), socket.gethostname().encode(), b"/tmp", b"/home"]
    words += [getpass.getuser().encode()] if getpass.getuser() != "root" else []
    words = [word for word in words if len(word) > 3]  # two letters stand somewhere in any weights
    for name, content in contents(finished.path).items():
        assert not any(word in content for word in words), name


def test_a_moved_run_answers_the_same(finished, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(finished.path, moved)
    results = []
    for path in (finished.path, moved):
        loaded = load_run(path)
        results.append(evaluate(loaded.model, loaded.graph, loaded.scaling, described=loaded.described()).to_mapping())
    assert results[0] == results[1]
    assert results[0]["protocol"]["trained_on"] == "train"
    assert results[0]["link"]["all"]["count"] > 0


def test_best_weights_are_the_ones_kept(finished):
    loaded = load_run(finished.path)
    best = finished.manifest["training"]["best"]
    assert loaded.epoch == best["epoch"]
    found = evaluate(loaded.model, loaded.graph, loaded.scaling, "valid")
    assert found.metric("link.all.mrr") == pytest.approx(best["value"], abs=1e-12)


@pytest.mark.parametrize("epoch", [1, 2, 3])
def test_stopped_and_resumed_equals_uninterrupted_byte_for_byte(finished, tmp_path, epoch):
    run = start(small_graph(), tiny_settings(), tmp_path / "run", CPU)
    stopper = Stopper()
    with pytest.raises(Interrupted):
        train(run, CPU, StopAfter(epoch, stopper), stopper)
    progress, _ = last_good(run)
    assert (progress.epoch, progress.step) == (epoch, 1)
    half = run.checkpoints / ".partial-0-000009-000000-x"
    half.mkdir()
    unfinished = load_run(run.path)
    assert not unfinished.is_finished
    assert half.exists()  # whoever asks a run leaves alone what its training may be writing
    again = train(RunFolder.open(run.path), CPU)
    assert not list(again.path.rglob(".partial-*"))
    for name in ("weights.safetensors", "config.toml", "scaling.json"):
        assert (again.path / name).read_bytes() == (finished.path / name).read_bytes(), name
    assert lines(again) == lines(finished)
    assert again.manifest["training"]["best"] == finished.manifest["training"]["best"]


def test_a_stopped_run_answers_with_statistics_and_goes_on_as_if_nothing_had_been(tmp_path):
    settings = tiny_settings(with_statistics=True, log_relations=["height"])
    whole = train(start(small_graph(100), settings, tmp_path / "whole", CPU), CPU)
    run, stopper = start(small_graph(100), settings, tmp_path / "run", CPU), Stopper()
    with pytest.raises(Interrupted):
        train(run, CPU, StopAfter(2, stopper), stopper, weighs_when_stopped=True)
    stopped = load_run(run.path)
    assert not stopped.is_finished
    assert stopped.described()["combined_with"]
    assert stopped.scaling.expectation is not None
    assert stopped.trained is not stopped.model
    with pytest.raises(Interrupted):  # and without, it answers alone again
        train(RunFolder.open(run.path), CPU, StopAfter(3, again := Stopper()), again)
    assert "combined_with" not in load_run(run.path).described()
    assert not (run.path / "combination.json").exists()
    train(RunFolder.open(run.path), CPU)
    for name in ("weights.safetensors", "combination.json", "means.json"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name


def test_lost_lines_of_metrics_are_written_once(tmp_path, finished):
    run = start(small_graph(), tiny_settings(), tmp_path / "run", CPU)
    stopper = Stopper()
    with pytest.raises(Interrupted):
        train(run, CPU, StopAfter(2, stopper), stopper)
    with run.metrics.open("a") as file:
        file.write('{"epoch": 3, "loss": {"li')
    assert lines(train(RunFolder.open(run.path), CPU)) == lines(finished)


def test_a_damaged_last_checkpoint_falls_back_to_the_one_before(tmp_path, finished):
    run = start(small_graph(), tiny_settings(), tmp_path / "run", CPU)
    stopper = Stopper()
    with pytest.raises(Interrupted):
        train(run, CPU, StopAfter(3, stopper), stopper)
    newest = sorted(run.checkpoints.iterdir())[-1]
    (newest / "optimiser.safetensors").write_bytes(b"torn")
    notes = []

    class Notes(Watcher):
        def note(self, text):
            notes.append(text)

    again = train(RunFolder.open(run.path), CPU, Notes())
    assert newest.name in notes[0]
    assert "was changed" in notes[0]
    assert (again.path / "weights.safetensors").read_bytes() == (finished.path / "weights.safetensors").read_bytes()


def test_a_finished_run_is_left_alone(finished):
    before = contents(finished.path)
    assert train(RunFolder.open(finished.path), CPU).is_finished
    assert contents(finished.path) == before


def test_resuming_under_other_settings_or_another_graph_is_refused(finished):
    changed = tiny_settings(seed=3, schedule={"epochs": 8, "period": 2})
    with pytest.raises(UsageError) as refused:
        refuse_changes(finished, changed, None)
    assert "made with other settings: schedule.epochs: 4 → 8; seed: 0 → 3." in str(refused.value)
    with pytest.raises(UsageError) as refused:
        refuse_changes(finished, None, small_graph(people=21))
    assert "made with another graph: entities: changed; train: changed; valid: changed" in str(refused.value)
    refuse_changes(finished, tiny_settings(), small_graph())


def test_a_folder_that_is_there_is_not_written_over(finished):
    with pytest.raises(UsageError, match=r"exists already\. Resume it with --resume"):
        start(small_graph(), tiny_settings(), finished.path, CPU)


def test_train_and_valid_together_keep_the_last_epoch(tmp_path):
    run = train(start(small_graph(), tiny_settings(train_on="train+valid"), tmp_path / "run", CPU), CPU)
    assert "best" not in run.manifest["training"]
    assert run.manifest["training"]["weights_of_epoch"] == 4
    assert load_run(run.path).described()["trained_on"] == "train+valid"


@pytest.mark.parametrize("model", ["relation-mean", "neighbour-mean", "frequency"])
def test_models_without_steps_make_runs_too(tmp_path, model):
    run = train(start(small_graph(), tiny_settings(model), tmp_path / "run", CPU), CPU)
    loaded = load_run(run.path)
    found = evaluate(loaded.model, loaded.graph, loaded.scaling).to_mapping()
    assert {"link", "relation", "number"} & set(found)


def test_discrete_numbers_train_and_load(tmp_path):
    settings = tiny_settings(model={**TINY["model"], "numbers": "discrete"})
    run = train(start(small_graph(), settings, tmp_path / "run", CPU), CPU)
    loaded = load_run(run.path)
    found = evaluate(loaded.model, loaded.graph, loaded.scaling, literals=loaded.literals)
    assert found.to_mapping()["number"]["all"]["count"] > 0


def test_large_graphs_are_kept_by_relative_path(tmp_path, monkeypatch):
    from hynt.graph.storage import save_graph
    from hynt.runs import run_folder

    monkeypatch.setattr(run_folder, "LARGEST_EMBEDDED", 10)
    (tmp_path / "project").mkdir()
    source = tmp_path / "project" / "small"
    save_graph(small_graph(), source)
    run = start(small_graph(), tiny_settings("frequency"), tmp_path / "project" / "runs" / "one", CPU, source)
    assert run.manifest["graph"]["path"] == "../../small"
    assert not (run.path / "graph").exists()
    train(run, CPU)
    shutil.move(tmp_path / "project", tmp_path / "moved")
    assert load_run(tmp_path / "moved" / "runs" / "one").graph == small_graph()


def test_learns_forty_facts_by_heart(tmp_path):
    graph = forty_facts()
    wider = {"dimension": 64, "context_feedforward": 128, "prediction_feedforward": 128, "dropout": 0.0}
    settings = tiny_settings(
        schedule={"epochs": 600, "period": 600},
        losses={"smoothing": 0.0, "number_weight": 5.0},
        batch_size=40,
        optimiser={"learning_rate": 0.002, "clip": 1.0},
        model={**TINY["model"], **wider},
    )
    loaded = load_run(train(start(graph, settings, tmp_path / "run", CPU), CPU).path)
    found = evaluate(loaded.model, loaded.graph, loaded.scaling, "train")
    assert len(graph) == 40
    assert found.metric("link.all.mrr") == 1.0
    assert found.metric("relation.all.mrr") == 1.0
    assert found.metric("number.all.rmse") < 0.01


def test_five_steps_give_the_losses_they_always_gave(tmp_path):
    """A change of these numbers is a change of what training does: say so where it is meant."""
    still = {**TINY["model"], "dropout": 0.0}
    settings = tiny_settings(schedule={"epochs": 5, "period": 5}, batch_size=100, model=still)
    run = train(start(small_graph(), settings, tmp_path / "run", CPU), CPU)
    losses = [line["loss"] for line in lines(run) if "loss" in line]
    expected = [
        {"link": 3.617502, "relation": 2.360466, "number": 1.381111},
        {"link": 3.461705, "relation": 1.966458, "number": 1.203841},
        {"link": 3.49454, "relation": 1.96988, "number": 0.251117},
        {"link": 3.490947, "relation": 1.918917, "number": 0.210953},
        {"link": 3.485743, "relation": 1.674147, "number": 0.228506},
    ]
    for found, wanted in zip(losses, expected, strict=True):
        assert found == pytest.approx(wanted, rel=1e-4)


def test_a_metric_that_cannot_be_had_is_refused_before_training(tmp_path):
    wrong = tiny_settings(validation={"metric": "link.all.mmr"})
    with pytest.raises(UsageError, match=r"no metric 'link\.all\.mmr'\. Did you mean link\.all\.mrr\?"):
        start(small_graph(), wrong, tmp_path / "run", CPU)
    plain = graph_from_facts({"train": [("a", "r", "b")], "valid": [("b", "r", "a")]})
    with pytest.raises(UsageError, match="the validation split holds no number"):
        start(plain, tiny_settings(validation={"metric": "number.all.rmse"}), tmp_path / "run", CPU)
    alone = graph_from_facts({"train": [("a", "r", "b")]})
    with pytest.raises(UsageError, match="no validation split to stop early on"):
        start(alone, tiny_settings(validation={"patience": 1}), tmp_path / "run", CPU)
    assert not (tmp_path / "run").exists()


def test_steps_of_an_epoch_that_has_its_own_are_refused_before_training(tmp_path):
    settings = tiny_settings(schedule={"epochs": 1, "epoch_steps": 5})
    with pytest.raises(UsageError, match="an epoch of 'hynt' goes through all its training items"):
        start(small_graph(), settings, tmp_path / "run", CPU)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("beta2", [0.0, 0.8])
def test_squared_gradients_that_are_forgotten_too_fast_are_refused_before_training(tmp_path, beta2):
    """With 0 the loss was no longer a number after seven steps."""
    settings = tiny_settings(optimiser={"beta1": 0.9, "beta2": beta2})
    with pytest.raises(UsageError, match=f"{beta2:g} is below 0.9 squared, so steps would grow without end"):
        start(small_graph(), settings, tmp_path / "run", CPU)
    assert not (tmp_path / "run").exists()


def test_a_step_may_forget_all_that_went_before_it(tmp_path):
    settings = tiny_settings(optimiser={"beta1": 0.0, "beta2": 0.0})
    train(start(small_graph(), settings, tmp_path / "run", CPU), CPU)  # raises where the loss is not finite


@pytest.mark.parametrize(
    ("model", "advice"), [("hynt", "batch_size=4"), ("hynt-inductive", "model.observed_share=0.1")]
)
def test_a_step_that_does_not_fit_says_what_makes_it_smaller(tmp_path, monkeypatch, model, advice):
    def full(*arguments, **options):
        raise torch.cuda.OutOfMemoryError("out of memory")

    monkeypatch.setattr("hynt.training.run.trained", full)
    run = start(small_graph(), tiny_settings(model), tmp_path / "run", CPU)
    with pytest.raises(DataError, match=rf"ran out of memory.*--set {advice}\.$"):
        train(run, CPU)


@pytest.mark.parametrize(
    ("model", "asked"),
    [("mt-kgnn", "model.attribute_steps=1,000,000,000"), ("hynt-inductive", "model.feedforward=100,000")],
)
def test_a_step_that_does_not_fit_for_one_setting_names_that_one(tmp_path, monkeypatch, model, asked):
    def full(*arguments, **options):
        raise torch.cuda.OutOfMemoryError("out of memory")

    monkeypatch.setattr("hynt.training.run.trained", full)
    settings = with_overrides(tiny_settings(model), [asked.replace(",", "")])
    run = start(small_graph(), settings, tmp_path / "run", CPU)
    value = asked.partition("=")[2]
    with pytest.raises(DataError, match=rf"ran out of memory with {asked};.*with less than {value}; \d+ is usual\.$"):
        train(run, CPU)


def test_a_run_killed_while_tidying_is_tidied_later(finished, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(finished.path, copy)
    (copy / "checkpoints" / "0-000004-000000").mkdir(parents=True)
    (copy / ".partial-manifest.json-x").write_text("{")
    train(RunFolder.open(copy), CPU)
    assert contents(copy) == contents(finished.path)


def test_a_graph_is_not_taken_for_a_damaged_run(tmp_path):
    graph = small_graph()
    save_graph(graph, tmp_path / "graph")
    with pytest.raises(UsageError, match="this is a graph, not a run") as refused:
        RunFolder.open(tmp_path / "graph")
    assert "hynt train" in str(refused.value.advice)
