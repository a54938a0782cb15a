"""Every model trains in captured steps on a GPU, validates there, and is judged as on a CPU."""

from __future__ import annotations

import json
import math

import pytest
import torch

from hynt.comparison.trial import Trial, TrialPlace, run_trial
from hynt.models.registry import MODELS
from hynt.runs.opening import load_run
from tests.training.small_graph import small_graph

LEARNING = [name for name, entry in MODELS.items() if entry.learns]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("name", LEARNING)
def test_a_model_learns_on_a_gpu_and_answers_as_on_a_cpu(name, tmp_path):
    graph, notes = small_graph(people=120), []

    class Listening:
        def epoch_done(self, record):
            pass

        def validated(self, record):
            pass

        def note(self, text):
            notes.append(text)

    trial = Trial(name, f"{name}-small", changes=("schedule.epochs=12", "schedule.period=12", "precision=fp32"))
    row = run_trial(TrialPlace(graph, torch.device("cuda"), compiled=False), trial, tmp_path / "run", Listening())
    assert notes == []  # no step made the host wait
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [sum(line["loss"].values()) for line in lines if "loss" in line and line["phase"] == lines[0]["phase"]]
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0]

    from hynt.evaluation.evaluator import evaluate

    here = load_run(tmp_path / "run", "cpu")
    again = evaluate(here.model, here.graph, here.scaling, "test", literals=here.literals)
    for task, scopes in row["test"]["realistic"].items():
        metric = "rmse" if task == "number" else "mrr"
        assert again.to_mapping()[task]["all"][metric] == pytest.approx(scopes["all"][metric], abs=2e-3), task
