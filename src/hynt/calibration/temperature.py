"""Temperature scaling (Guo and others, 2017): a number by which all scores of a question are divided, fitted on
held-out questions. Ranks do not change.

A task and position has one temperature, and each relation one of its own around it: a model that is too sure of
capitals may be too unsure of neighbours. How far relations stray from one another is told by the questions themselves,
and a relation is drawn to the temperature of all, the more the fewer questions it has (empirical Bayes).

Fitted is what people read: the probability of the first answer, against whether it is right. (The probability of the
right answer, wherever it stands, is another aim: over tens of thousands of entities it is ruled by answers that the
model has no idea of, and it made first answers on HN-WK-resplit too sure of themselves.)

Work is done on the inverse, the inverse_temperature β = 1 / T. With the gaps g from the first score to each other one,
p(first) = 1 / (1 + Σ exp(−β g)): one pass over the scores gives the loss and its slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.graph.vocabulary import Floats, Ids

LEAST_INVERSE_TEMPERATURE, GREATEST_INVERSE_TEMPERATURE = 1e-3, 1e5
"""Scores of a model that hardly tells candidates apart may lie within a ten-thousandth of one another."""
_STEPS = 30
_CLOSE = 1e-4
_SMALLEST = 1e-30
BINS = 15


@dataclass(frozen=True, eq=False)
class FirstAnswers:
    """The first answers of `n` questions, each at some inverse_temperature."""

    inverse_temperature: Floats  # (n,)
    rest: Floats  # (n,) Σ exp(−β g) over the other candidates; above 0
    mean_gap: Floats  # (n,) their mean gap, weighted by exp(−β g)
    correct: NDArray[np.bool_]  # (n,) whether the first answer is the right one

    @property
    def confidence(self) -> Floats:
        """(n,) the probability of the first answer."""
        return 1.0 / (1.0 + self.rest)

    @property
    def loss(self) -> float:
        """The mean of −log p(what is so): that the first answer is right, or that it is not."""
        return float(np.mean(self.losses))

    @property
    def losses(self) -> Floats:
        """(n,) of each question."""
        found: Floats = np.log1p(self.rest) - np.where(self.correct, 0.0, np.log(self.rest))
        return found

    @property
    def slopes(self) -> Floats:
        """(n,) of the losses, in log β."""
        return (self.confidence - self.correct) * self.inverse_temperature * self.mean_gap

    @property
    def bends(self) -> Floats:
        """(n,) how fast the slopes change, as expected."""
        return self.confidence * (1.0 - self.confidence) * (self.inverse_temperature * self.mean_gap) ** 2

    @property
    def step(self) -> float:
        """How far to go in log β: one step of Fisher scoring."""
        bend = float(np.mean(self.bends))
        return -float(np.mean(self.slopes)) / bend if bend > 0 else 0.0

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: the mean gap between confidence and accuracy over 15 equally wide bins."""
        return expected_calibration_error(self.confidence, self.correct)

    def take(self, chosen: Ids) -> FirstAnswers:
        """Those of these questions, in this order."""
        return FirstAnswers(
            self.inverse_temperature[chosen], self.rest[chosen], self.mean_gap[chosen], self.correct[chosen]
        )

    @classmethod
    def joined(cls, parts: Sequence[FirstAnswers]) -> FirstAnswers:
        return cls(
            np.concatenate([part.inverse_temperature for part in parts]),
            np.concatenate([part.rest for part in parts]),
            np.concatenate([part.mean_gap for part in parts]),
            np.concatenate([part.correct for part in parts]),
        )


def first_answers(scores: Tensor, answer: Tensor, inverse_temperature: float | Floats) -> FirstAnswers:
    """Of (n, candidates) scores, −∞ for what is no candidate, with the right answers (n,) int64."""
    return first_answers_of_chunks([(0, scores)], answer, inverse_temperature)


def first_answers_of_chunks(
    chunks: Iterable[tuple[int, Tensor]], answer: Tensor, inverse_temperature: float | Floats
) -> FirstAnswers:
    """The same from (first, scores) chunks of candidates, which are looked at one after another."""
    found: _Seen | None = None
    beta = torch.as_tensor(inverse_temperature, dtype=torch.float64, device=answer.device).expand(len(answer))
    for first, scores in chunks:
        seen = _Seen.of(scores, first, beta)
        found = seen if found is None else found.joined(seen, beta)
    assert found is not None  # a graph has an entity and a relation
    rest = found.rest.clamp(min=_SMALLEST)
    mean = found.gaps / rest
    said = [one.cpu().numpy() for one in (beta, rest, mean, found.place == answer)]
    return FirstAnswers(said[0], said[1], said[2], said[3])


class _Seen(NamedTuple):
    """What some candidates come to: the first of them, and the others by their gaps to it."""

    best: Tensor  # (n,) float32; −∞ where none of these is a candidate
    place: Tensor  # (n,) int64
    rest: Tensor  # (n,) float64 Σ exp(−β g)
    gaps: Tensor  # (n,) float64 Σ g · exp(−β g)

    @classmethod
    def of(cls, scores: Tensor, first: int, inverse_temperature: Tensor) -> _Seen:
        best, place = scores.max(1)
        gap = best[:, None] - scores
        weight = torch.exp(-inverse_temperature[:, None].to(gap.dtype) * gap)
        weight = weight.scatter(1, place[:, None], 0.0)
        gap = torch.where(torch.isfinite(gap), gap, 0.0)
        # Where nothing is a candidate, −∞ − (−∞) made NaN of all weights.
        weight = torch.where(torch.isneginf(best)[:, None], 0.0, weight)
        return cls(best, place + first, weight.sum(1, dtype=torch.float64), (weight * gap).sum(1, dtype=torch.float64))

    def joined(self, later: _Seen, inverse_temperature: Tensor) -> _Seen:
        """Both together; of equal first ones the earlier is the first."""
        takes_later = later.best > self.best
        (best, place, rest, gaps), (below, _, other_rest, other_gaps) = (
            [torch.where(takes_later, new, old) for new, old in zip(late, early, strict=True)]
            for late, early in ((later, self), (self, later))
        )
        # The first of the lower ones is itself one more candidate, and all of them are so much further off.
        further = torch.where(torch.isneginf(below), 0.0, best.double() - below.double())
        weight = torch.where(torch.isneginf(below), 0.0, torch.exp(-inverse_temperature * further))
        rest = rest + weight * (1.0 + other_rest)
        return _Seen(best, place, rest, gaps + weight * (other_gaps + further * (1.0 + other_rest)))


def expected_calibration_error(confidence: Floats, correct: NDArray[np.bool_]) -> float:
    """|Σ confidence − number correct| of each bin of confidence, summed and divided by the number of answers."""
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    sure = np.bincount(place, confidence, BINS)
    right = np.bincount(place, correct.astype(np.float64), BINS)
    return float(np.abs(sure - right).sum() / len(confidence))


FirstAnswersAt: TypeAlias = Callable[[float], FirstAnswers]
"""The first answers of all questions at a inverse_temperature."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The first answers at inverse_temperature 1, and at the best one."""

    before: FirstAnswers
    after: FirstAnswers
    inverse_temperature: float


def fit_inverse_temperature(at: FirstAnswersAt) -> Fit:
    """Fisher scoring in log β; a step that does not help is halved. The loss never grows."""
    before = best = at(1.0)
    here, reach = 1.0, math.log(4)
    for _ in range(_STEPS):
        step = max(-reach, min(reach, best.step))
        target = min(GREATEST_INVERSE_TEMPERATURE, max(LEAST_INVERSE_TEMPERATURE, here * math.exp(step)))
        if abs(math.log(target / here)) < _CLOSE:
            break
        tried = at(target)
        if tried.loss < best.loss:
            best, here = tried, target
        else:
            reach = abs(math.log(target / here)) / 2
    return Fit(before, best, here)


_STRAYING = 0.25
"""The variance that relations' log β are first taken to have around that of all."""
_LEAST_STRAYING = 1e-4
_FURTHEST = 0.5
_ROUNDS = 12


def fit_by_relation(
    at: Callable[[float | Floats], FirstAnswers], everywhere: float, relation: Ids
) -> tuple[Floats, FirstAnswers]:
    """(relations,) how far log β of each relation lies from that of `everywhere`, for questions (n,) beside these
    relations; and their first answers then. A relation without questions lies 0 off.
    """
    size = np.bincount(relation)
    asked, off, variance = np.flatnonzero(size), np.zeros(len(size)), _STRAYING
    for _ in range(_ROUNDS):
        found = at(everywhere * np.exp(off[relation]))
        slope = np.bincount(relation, found.slopes) + off / variance
        bend = np.bincount(relation, found.bends) + 1.0 / variance
        step = np.clip(-slope / bend, -_FURTHEST, _FURTHEST)
        off = off + step
        variance = max(_LEAST_STRAYING, float(np.mean(off[asked] ** 2 + 1.0 / bend[asked])))
        if np.abs(step).max() < 1e-3:
            break
    return off, at(everywhere * np.exp(off[relation]))
