"""The run that comes with hynt is made by one command; here what it does to a trained run."""

from __future__ import annotations

import shutil

import pytest
import torch
from safetensors.torch import load_file

import hynt
from hynt.errors import DataError
from hynt.runs import WEIGHTS
from hynt.runs.checkpoint import fill_tensors, save_tensors
from hynt.runs.run_folder import RunFolder
from tools.ready_world import TRIALS, WIDTH, lighten, score


def test_weights_are_kept_in_half_the_bytes_and_answer_alike(inductive_run, tmp_path):
    folder = shutil.copytree(inductive_run, tmp_path / "run", ignore=shutil.ignore_patterns("calibration.json"))
    before = (folder / WEIGHTS).stat().st_size
    lighten(folder)
    assert (folder / WEIGHTS).stat().st_size < 0.6 * before
    assert {tensor.dtype for tensor in load_file(folder / WEIGHTS).values()} == {torch.bfloat16}
    question = ("person 1", "born in", "?")
    found, known = (hynt.load(place, "cpu").predict(*question) for place in (folder, inductive_run))
    for one, other in zip(found, known, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=0.02)


def test_other_types_of_weights_are_still_refused(tmp_path):
    save_tensors({"bias": torch.zeros(2, dtype=torch.float16)}, tmp_path / WEIGHTS)
    with pytest.raises(DataError, match=r"'bias' is \(2,\) torch.float16, not \(2,\) torch.float32"):
        fill_tensors(tmp_path / WEIGHTS, {"bias": torch.zeros(2)})


def test_every_trial_has_the_promised_width_and_one_set_of_weights():
    assert "model.dimension=64" in WIDTH
    assert "validation.each_task=false" in WIDTH
    assert not [one for changes in TRIALS.values() for one in changes if "dimension" in one or "each_task" in one]
    better = {"link.all.mrr": 0.3, "relation.all.mrr": 0.9, "number.all.rmse": 0.1}
    assert score(better) > score({**better, "number.all.rmse": 0.2})


def test_a_lightened_run_can_be_trained_on(inductive_run, tmp_path):
    folder = shutil.copytree(inductive_run, tmp_path / "run")
    lighten(folder)
    later = hynt.train(hynt.load(folder, "cpu").graph, start_from=folder, out=tmp_path / "later", epochs=1)
    kept = load_file(RunFolder.open(later.path).checked(WEIGHTS))
    assert {tensor.dtype for tensor in kept.values()} == {torch.float32}
