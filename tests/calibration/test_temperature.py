"""Temperature fitting: it lowers the loss, finds a temperature that was planted, and changes no rank."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hynt.calibration.temperature import (
    KEPT,
    Gaps,
    expected_calibration_error,
    first_answers,
    fit_by_relation,
    fit_inverse_temperature,
)


def planted(
    seed: int, questions: int, candidates: int, inverse_temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores whose softmax at `inverse_temperature` is the truth: answers are drawn from it."""
    chance = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(questions, candidates, generator=chance)
    answer = torch.multinomial(torch.softmax(inverse_temperature * scores, 1), 1, generator=chance).squeeze(1)
    return scores, answer


@given(
    seed=st.integers(0, 2**31),
    questions=st.integers(1, 60),
    candidates=st.integers(2, 30),
    inverse_temperature=st.floats(0.1, 8),
    scale=st.floats(1e-3, 1e3),
)
def test_fitting_never_makes_the_loss_larger(seed, questions, candidates, inverse_temperature, scale):
    scores, answer = planted(seed, questions, candidates, inverse_temperature)
    fit = fit_inverse_temperature(lambda one: first_answers(scale * scores, answer, one))
    assert (fit.before.inverse_temperature == 1.0).all()
    assert fit.after.loss <= fit.before.loss
    assert np.isfinite(fit.after.loss)
    assert 0 < fit.inverse_temperature < np.inf
    assert ((fit.after.confidence > 0) & (fit.after.confidence <= 1)).all()


def test_a_relation_is_fitted_by_its_own_questions_as_far_as_they_tell():
    """Two relations with many questions, one of them twice as sure, and one with four that happen to be wrong."""
    parts = [planted(3, 4000, 12, 0.5), planted(4, 4000, 12, 1.0), planted(5, 4, 12, 1.0)]
    scores, answer = (torch.cat(one) for one in zip(*parts, strict=True))
    answer[-4:] = scores[-4:].argmin(1)
    relation = np.repeat([0, 1, 3], [4000, 4000, 4])
    off, after = fit_by_relation(lambda beta: first_answers(scores, answer, beta), 0.7, relation)
    assert 0.7 * np.exp(off[:2]) == pytest.approx([0.5, 1.0], rel=0.1)
    assert off[2] == 0
    assert -1.0 < off[3] < 0  # four say little
    assert after.calibration_error < 0.01 < first_answers(scores, answer, 0.7).calibration_error


def test_scores_that_hardly_differ_are_told_apart():
    scores, answer = planted(6, 5000, 5, 1.0)
    fit = fit_inverse_temperature(lambda beta: first_answers(1e-4 * scores, answer, beta))
    assert fit.inverse_temperature == pytest.approx(1e4, rel=0.1)


@pytest.mark.parametrize("inverse_temperature", [0.3, 1.0, 2.5])
def test_a_planted_temperature_is_found_and_the_error_vanishes(inverse_temperature):
    scores, answer = planted(7, 20_000, 12, inverse_temperature)
    fit = fit_inverse_temperature(lambda one: first_answers(scores, answer, one))
    assert fit.inverse_temperature == pytest.approx(inverse_temperature, rel=0.06)
    assert fit.after.calibration_error < 0.015
    if inverse_temperature != 1.0:
        assert fit.after.calibration_error < fit.before.calibration_error / 3


def test_confidence_is_the_softmax_of_the_first_answer():
    scores, answer = planted(1, 50, 9, 1.0)
    scores[:, 4] = -torch.inf  # no candidate
    answer[answer == 4] = 3
    for inverse_temperature in (0.5, 1.0, 3.0):
        shares = torch.softmax(inverse_temperature * scores.double(), 1)
        found = first_answers(scores, answer, inverse_temperature)
        assert np.allclose(found.confidence, shares.max(1).values.numpy(), rtol=1e-5)
        assert np.array_equal(found.correct, (scores.argmax(1) == answer).numpy())


def test_the_slope_is_that_of_the_loss():
    scores, answer = planted(2, 200, 15, 1.0)
    here, aside = (first_answers(scores.double(), answer, one) for one in (1.3, 1.3 * np.exp(1e-5)))
    slope = float(np.mean(here.slopes))
    assert (aside.loss - here.loss) / 1e-5 == pytest.approx(slope, rel=1e-3)


def test_one_candidate_is_certain():
    found = first_answers(torch.tensor([[2.0, -torch.inf]]), torch.tensor([0]), 1.0)
    assert found.confidence[0] == pytest.approx(1.0)
    assert np.isfinite(found.loss)


def test_calibration_error_by_hand():
    sure, right = np.array([0.95, 0.95, 0.15, 1.0]), np.array([True, False, False, True])
    # One bin holds 0.95, 0.95 and 1.0 (2.9 expected, 2 right), another 0.15 (0.15 expected, 0 right).
    assert expected_calibration_error(sure, right) == pytest.approx((0.9 + 0.15) / 4)


@pytest.mark.parametrize("width", [1, 2, 7, 30])
@pytest.mark.parametrize("inverse_temperature", [0.3, 1.0, 4.0])
def test_chunks_of_candidates_come_to_what_all_of_them_do(width, inverse_temperature):
    random = torch.Generator().manual_seed(width)
    scores = torch.randint(-6, 6, (50, 30), generator=random).float()  # many ties
    scores[torch.rand(50, 30, generator=random) < 0.4] = -torch.inf
    scores[:, 7] = 0.0  # there always is a candidate
    answer = torch.randint(30, (50,), generator=random)
    whole = first_answers(scores, answer, inverse_temperature)
    chunks = [(first, scores[:, first : first + width]) for first in range(0, 30, width)]
    found = Gaps.of(lambda: chunks, answer).first_answers(inverse_temperature)
    assert found.rest == pytest.approx(whole.rest, rel=1e-6)
    assert found.mean_gap == pytest.approx(whole.mean_gap, rel=1e-6)
    assert (found.correct == whole.correct).all()
    assert found.loss == pytest.approx(whole.loss)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 50.0])
@pytest.mark.parametrize("width", [3000, 700])
def test_gaps_of_many_candidates_are_put_together_with_little_loss(scale, width):
    scores, answer = planted(8, 100, 3000, 1.0)
    scores = scale * scores.round(decimals=2)  # many ties
    scores[:, 5:900] = -torch.inf
    chunks = [(first, scores[:, first : first + width]) for first in range(0, 3000, width)]
    gaps = Gaps.of(lambda: chunks, answer)
    assert gaps.gap.shape == (100, KEPT)
    assert (gaps.count.sum(1) == 3000 - 895 - 1).all()
    for inverse_temperature in np.array([0.01, 0.3, 1.0, 4.0, 30.0]) / scale:
        whole = first_answers(scores, answer, inverse_temperature)
        found = gaps.first_answers(inverse_temperature)
        assert found.confidence == pytest.approx(whole.confidence, rel=1e-3)
        assert found.loss == pytest.approx(whole.loss, rel=4e-4)
        assert found.slopes == pytest.approx(whole.slopes, rel=5e-3, abs=1e-3)
        assert (found.correct == whole.correct).all()
    exact = fit_inverse_temperature(lambda beta: first_answers(scores, answer, beta))
    assert fit_inverse_temperature(gaps.first_answers).inverse_temperature == pytest.approx(
        exact.inverse_temperature, rel=1e-3
    )
