"""Additions to hynt-inductive that were tried: each does what its row of the results says."""

from __future__ import annotations

import pytest
import torch

from benchmarks import inductive_trials
from benchmarks.inductive_trials import TRIALS
from hynt.batches.fact_tensors import FactTensors
from hynt.models.checking import check_model
from hynt.models.contract import Entities, ScaledNumber
from hynt.models.hynt_inductive import HyntInductive
from hynt.objectives.observed_and_targets import ObservedAndTargets
from hynt.objectives.streams import PhaseSettings
from tests.models.question_batches import every_question
from tests.models.test_hynt_inductive import FACTS, SMALL, model_of


@pytest.fixture
def tried(monkeypatch):
    """Makes an addition, which is undone after the test."""
    names = ("__init__", "read", "score", "distribution")
    for place, name in [(ObservedAndTargets, "loss_for"), *((HyntInductive, one) for one in names)]:
        monkeypatch.setattr(place, name, getattr(place, name))
    return lambda name, words="": TRIALS[name](words)


def lost():
    """The loss of one step of a model that drops nothing, and that model and step."""
    torch.manual_seed(0)
    model = model_of(FACTS).eval()
    stream = model.phases(FACTS, PhaseSettings(batch_size=30, epochs=1))[0].stream
    items = stream.epoch(0, 0).items(0)
    return stream.loss_for(items.shape)(model, items.tensors), model, stream.step(items.tensors[:2], items.tensors[2])


def test_smoothing_spreads_a_share_of_the_target_over_all_entities(tried):
    plain, model, step = lost()
    tried("smoothed", "0.1")
    made, _, _ = lost()
    outcome = model.read_step(step)
    scores = inductive_trials._entity_scores(step, outcome)
    log = scores.log_softmax(1)[:, step.entities.seen].mean(1)
    even, hard = -(log * step.entities.weight).sum(), plain.sums[0] / plain.counts[0]
    torch.testing.assert_close(made.total, plain.total + 0.1 * (even - hard), rtol=1e-4, atol=1e-4)


def test_a_distilled_run_learns_what_its_teachers_believe(tried, monkeypatch):
    plain, model, step = lost()
    monkeypatch.setattr(inductive_trials, "load_run", lambda *_: type("Loaded", (), {"model": model}))
    tried("distilled", "one,two")
    made, _, _ = lost()
    outcome = model.read_step(step)
    scores = inductive_trials._entity_scores(step, outcome)
    links = -(scores.softmax(1) * scores.log_softmax(1)).sum(1)
    bins = outcome.number.log_softmax(1)
    asked = step.questions.targets.is_number[step.number_question].float()
    numbers = (-(bins.exp() * bins).sum(1) * asked).sum() / asked.sum()
    means = plain.sums / plain.counts
    soft = (links * step.entities.weight).sum() - means[0] + numbers - means[2]
    torch.testing.assert_close(made.total, plain.total + 0.5 * soft, rtol=1e-4, atol=1e-4)


def test_a_transformer_over_questions_leaks_no_answer(tried):
    tried("question-transformer")

    def made(sizes, train: FactTensors):
        return HyntInductive.build(sizes, train, SMALL)

    check_model(made)


def test_answers_from_parts_are_those_of_the_whole_where_every_part_is_whole(tried):
    model = model_of(FACTS).eval()
    batch, _, _ = every_question(FACTS, torch.arange(4))
    with torch.no_grad():
        before = [model.score(model.read(batch), asked) for asked in (Entities(), ScaledNumber())]
        tried("from-parts", "2:1.0")
        after = [model.score(model.read(batch), asked) for asked in (Entities(), ScaledNumber())]
        for one, other in zip(before, after, strict=True):
            torch.testing.assert_close(one, other)
        model.__dict__.pop("of_parts")
        tried("from-parts", "2:0.5")
        assert not torch.allclose(model.score(model.read(batch), Entities()), before[0])
