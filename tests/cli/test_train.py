"""`hynt train` and `hynt models` as a person meets them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hynt.formats.from_python import graph_from_facts
from hynt.graph.storage import save_graph
from hynt.runs.run_folder import RunFolder
from tests.training.small_graph import NARROW, set_each, small_graph

SMALL = [*set_each(*NARROW, "batch_size=32"), "--device", "cpu"]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def people(tmp_path) -> Path:
    save_graph(small_graph(), tmp_path / "people")
    return tmp_path / "people"


def test_trains_says_how_it_goes_and_what_comes_next(people, tmp_path, hynt):
    done = hynt("train", people, "--out", tmp_path / "run", "--epochs", 3, *SMALL)
    assert done.code == 0
    assert "epoch 3 of 3: loss link" in done.err
    assert "about 0 s left" not in done.err
    assert "validation link.all.mrr" in done.err
    assert "best on validation: link.all.mrr" in done.out
    assert f"next: hynt evaluate {tmp_path / 'run'}" in done.out


def test_what_comes_next_can_be_done_with_this_graph(tmp_path, hynt):
    """A few facts all go to train: a run of them is asked, and measured once there are more."""
    facts = [("Ann", "knows", "Bob"), ("Bob", "knows", "Ann"), ("Ann", "height", 170), ("Bob", "height", 180)]
    for name, valid, told in (("few", [], "next: hynt serve"), ("more", facts[:1], "next: hynt evaluate")):
        save_graph(graph_from_facts(facts, valid=valid, test=[]), tmp_path / name)
        run = tmp_path / f"{name}-run"
        done = hynt("train", tmp_path / name, "--out", run, "--epochs", 2, *SMALL)
        assert done.code == 0, done.err
        line = done.out[done.out.index("next: ") :].replace("\n", " ")
        assert line.startswith(told)
        assert ("--split valid, or" in line) == bool(valid)
    refused = hynt("evaluate", tmp_path / "few-run")
    assert refused.code == 2
    assert "It has train alone: with more facts, an import sets some aside" in refused.err


def test_json_is_one_object(people, tmp_path, hynt):
    done = hynt("train", people, "--out", tmp_path / "run", "--epochs", 2, "--seed", 7, "--json", *SMALL)
    assert done.json["model"] == "hynt"
    assert done.json["weights_of_epoch"] == 2
    settings = RunFolder.open(tmp_path / "run").settings()
    assert (settings.seed, settings.schedule.epochs, settings.schedule.period) == (7, 2, 2)
    assert settings.model.dimension == 16


def test_estimate_trains_nothing(people, tmp_path, hynt):
    done = hynt("train", people, "--estimate", "--json", *SMALL)
    found = done.json
    model = small_parameters()
    assert found["parameters"] == model
    assert found["weights"] == 4 * model
    assert found["training_state"] == 16 * model
    tensors = found["training_state"] + found["activations"] + found["facts"]
    assert found["process"] > 100 * tensors  # what the machine must have: torch and the graph too
    assert found["memory"] == found["process"] + found["weighing"]
    assert 0 < found["weighing"] < found["process"]
    assert found["seconds"] > 0
    assert found["activations"] > 0
    assert not (tmp_path / "run").exists()
    text = hynt("train", people, "--estimate", *SMALL).out
    assert f"parameters     {model:,}" in text
    assert "time           training takes about " in text
    assert "; validation and weighing statistics about 1 s more" in " ".join(text.split())
    assert "; weighing statistics at the end " in " ".join(text.split())


def small_parameters() -> int:
    """Counted by hand: 24 entities that score themselves, 6 relations, width 16, 1 + 1 layers of width 32."""
    d, entities, relations, inner = 16, 24, 6, 32
    tables = (entities + 1) * d + 3 * (relations + 1) * d + 1
    encodings = 3 * d * d + 2 * d * d + (2 + 7) * d
    layer = 4 * d * d + 4 * d + 2 * d * inner + inner + d + 4 * d
    outputs = entities + 2 * (relations * d + relations)
    return tables + encodings + 2 * layer + outputs


def test_resume_needs_the_same_settings_and_graph(people, tmp_path, hynt):
    run = tmp_path / "run"
    assert hynt("train", people, "--out", run, "--epochs", 2, *SMALL).code == 0
    again = hynt("train", people, "--out", run, "--resume", "--device", "cpu")
    assert again.code == 0
    assert "finished already" in again.err
    other = hynt("train", people, "--out", run, "--resume", "--epochs", 9, "--device", "cpu")
    assert other.code == 2
    assert "made with other settings: schedule.epochs: 2 → 9." in other.err
    save_graph(small_graph(seed=5), tmp_path / "others")
    changed = hynt("train", tmp_path / "others", "--out", run, "--resume", "--device", "cpu")
    assert changed.code == 2
    assert "made with another graph: " in changed.err


def test_a_run_of_another_model_goes_on_without_naming_it(people, tmp_path, hynt):
    run = tmp_path / "run"
    assert hynt("train", people, "--out", run, "--model", "transea", "--epochs", 1, "--device", "cpu").code == 0
    again = hynt("train", people, "--out", run, "--resume", "--device", "cpu")
    assert again.code == 0, again.err
    assert "finished already" in again.err
    assert hynt("train", people, "--out", run, "--resume", "--model", "transea", "--device", "cpu").code == 0
    other = hynt("train", people, "--out", run, "--resume", "--model", "hynt", "--device", "cpu")
    assert other.code == 2
    assert "made with other settings: model: transea → hynt." in other.err


def test_train_and_valid_refuse_early_stopping(people, tmp_path, hynt):
    refused = hynt(
        "train",
        people,
        "--out",
        tmp_path / "run",
        "--train-on",
        "train+valid",
        "--set",
        "validation.patience=2",
        *SMALL,
    )
    assert refused.code == 2
    assert "leaves no validation split to stop early on" in refused.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "arguments,word",
    [
        (["--preset", "wd50k"], "unknown preset 'wd50k'"),
        (["--model", "hint"], "Did you mean hynt?"),
        (["--set", "model.dimensions=3"], "Did you mean model.dimension?"),
        (["--set", "optimiser.learning_rate=-1"], "must be above 0"),
        (["--set", "model.context_heads=7"], "cannot be shared among 7 heads"),
        (["--set", "validation.metric=link.all.mmr", "--epochs", "1"], "validation has no metric 'link.all.mmr'"),
    ],
)
def test_wrong_wishes_are_told(people, tmp_path, hynt, arguments, word):
    refused = hynt("train", people, "--out", tmp_path / "run", *SMALL, *arguments)
    assert refused.code == 2
    assert word in refused.err


def test_a_run_folder_must_be_said_and_be_new(people, tmp_path, hynt):
    assert "no run folder was given" in hynt("train", people, *SMALL).err
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    refused = hynt("train", people, "--out", tmp_path / "run", *SMALL)
    assert refused.code == 2
    assert "exists already" in refused.err
    assert (tmp_path / "run" / "thesis.txt").read_text() == "mine"


def test_cuda_is_asked_for_where_there_is_none(people, tmp_path, hynt, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    refused = hynt("train", people, "--out", tmp_path / "run", "--device", "cuda")
    assert "there is no CUDA device here" in refused.err


def test_models_are_listed(hynt):
    found = hynt("models", "--json").json["models"]
    assert found["hynt"]["answers"] == {
        "link": ["head", "qualifier value", "tail"],
        "relation": ["qualifier relation", "relation"],
        "number": ["qualifier value", "tail"],
    }
    assert {"relation-mean", "neighbour-mean", "frequency"} <= set(found)
    assert found["frequency"]["answers"]["number"] == []
    assert "hynt: " in hynt("models").out
