"""Training that starts from another run's weights."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

import hynt
from hynt.errors import UsageError
from hynt.interruption import Stopper
from hynt.runs import WEIGHTS
from hynt.runs.checkpoint import Interrupted
from hynt.runs.run_folder import START, RunFolder
from hynt.training.run import start, train
from tests.training.small_graph import small_graph
from tests.training.test_nary_runs import StopAfterFirst

CPU = torch.device("cpu")
STILL = {"epochs": 1, "device": "cpu", "changes": ["optimiser.learning_rate=1e-12", "optimiser.weight_decay=0"]}


def test_training_starts_where_the_other_run_ended_also_on_another_graph(inductive_run, tmp_path):
    graph = small_graph(seed=9)
    made = hynt.train(graph, out=tmp_path / "run", start_from=inductive_run, **STILL)
    before, after = (load_file(path / WEIGHTS) for path in (inductive_run, made.path))
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    assert made.settings.model == hynt.load(inductive_run, "cpu").settings.model
    assert START not in made.manifest["files"]
    assert not (made.path / START).exists()
    fresh = hynt.train(graph, "hynt-inductive", out=tmp_path / "fresh", changes=["model.dimension=16"], epochs=1)
    assert fresh.settings.model != made.settings.model


def test_a_run_that_was_stopped_before_its_first_checkpoint_starts_there_again(inductive_run, tmp_path):
    begun = start(
        small_graph(), RunFolder.open(inductive_run).settings(), tmp_path / "run", CPU, None, inductive_run / WEIGHTS
    )
    assert START in begun.manifest["files"]
    with pytest.raises(Interrupted):
        train(begun, CPU, StopAfterFirst(stopper := Stopper()), stopper)
    whole = train(RunFolder.open(begun.path), CPU)
    at_once = train(
        start(
            small_graph(),
            RunFolder.open(inductive_run).settings(),
            tmp_path / "other",
            CPU,
            None,
            inductive_run / WEIGHTS,
        ),
        CPU,
    )
    one, other = (load_file(run.path / WEIGHTS) for run in (whole, at_once))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_minutes_hold_for_a_run_that_starts_from_another_and_for_one_that_goes_on(inductive_run, tmp_path):
    """They were ignored without a word: the run trained for as many epochs as the one before."""
    graph, given = small_graph(), {"start_from": inductive_run, "device": "cpu"}
    made = hynt.train(graph, out=tmp_path / "run", minutes=0.02, **given)
    assert (made.settings.schedule.seconds, made.settings.schedule.whole) == (1.2, True)
    longer = hynt.train(graph, out=tmp_path / "longer", minutes=0.04, **given | {"start_from": made.path})
    assert longer.settings.schedule.epochs == made.settings.schedule.epochs
    assert longer.settings.schedule.seconds == 2.4
    assert longer.settings.validation.seconds == pytest.approx(2 * made.settings.validation.seconds)
    assert hynt.train(graph, out=made.path, minutes=0.02, resume=True).settings == made.settings
    with pytest.raises(UsageError, match=r"schedule\.seconds: 1\.2 → 2\.4"):
        hynt.train(graph, out=made.path, minutes=0.04, resume=True)


def test_weights_that_do_not_fit_are_refused_before_a_folder_is_made(inductive_run, tmp_path):
    with pytest.raises(UsageError, match="--from: the weights do not fit"):
        hynt.train(small_graph(), out=tmp_path / "run", start_from=inductive_run, changes=["model.dimension=32"])
    with pytest.raises(UsageError, match="a run that is resumed starts from its own weights"):
        hynt.train(small_graph(), out=tmp_path / "run", start_from=inductive_run, resume=True)
    assert not (tmp_path / "run").exists()
    vectors = hynt.train(small_graph(), "transea", epochs=1, out=tmp_path / "transea", device="cpu")
    with pytest.raises(UsageError, match="the weights do not fit"):
        hynt.train(small_graph(30), out=tmp_path / "run", start_from=vectors.path, device="cpu")
    for asked in ({"model": "hynt-inductive"}, {"preset": "hynt-inductive-small"}):
        with pytest.raises(UsageError, match="transea is a run of transea, and hynt-inductive was asked for"):
            hynt.train(small_graph(), out=tmp_path / "run", start_from=vectors.path, device="cpu", **asked)
    again = hynt.train(small_graph(), out=tmp_path / "run", start_from=vectors.path, device="cpu")
    assert again.settings.model_name == "transea"
