"""Temperature scaling (Guo and others, 2017): a number by which all scores of a question are divided, fitted on
held-out questions. Ranks do not change.

A task and position has one temperature, and each relation one of its own around it: a model that is too sure of
capitals may be too unsure of neighbours. Where relations are asked for, it is that of the first answer: a model that
says one of them too often is too sure of it. How far relations stray from one another is told by the questions
themselves, and a relation is drawn to the temperature of all, the more the fewer questions it has (empirical Bayes).

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
from typing import TypeAlias

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


KEPT = 1024
"""Kinds of gaps of a question with many candidates."""
_FINEST, _PER_OCTAVE = -20, 32  # of the gaps that are put together: from 2^-20 to 2^12, each kind 3 % wide


@dataclass(frozen=True, eq=False)
class Gaps:
    """How far the candidates of `n` questions lie below the first one: after one look at the scores, all that first
    answers need at any temperature. Of few candidates each has a gap of its own; of many, those that lie nearly equally
    far off share one, their mean, and confidences are right to one in 1,000.
    """

    gap: Tensor  # (n, kept) as finely as scores are
    count: Tensor  # (n, kept) how many candidates lie so far off; 0 of the first, and of what is no candidate; or bool
    is_correct: Tensor  # (n,) bool: whether the first is the right answer
    first: Tensor  # (n,) int64 the first

    @classmethod
    def of(cls, chunks: Callable[[], Iterable[tuple[int, Tensor]]], answer: Tensor, few: int = KEPT) -> Gaps:
        """From (first, scores) chunks of candidates, −∞ for what is no candidate, with the right answers (n,) int64.
        Up to `few` candidates keep gaps of their own. Several chunks are made twice, so as not to be held together.
        """
        best, place = torch.full_like(answer, -torch.inf, dtype=torch.float32), torch.zeros_like(answer)
        width, last = 0, None
        for first, scores in chunks():
            highest, there = scores.max(1)
            place = torch.where(highest > best, there + first, place)
            best = torch.maximum(best.to(highest.dtype), highest)
            width, last = first + scores.shape[1], (first, scores)
        assert last is not None  # a graph has an entity and a relation
        own: list[tuple[Tensor, Tensor]] = []
        total = torch.zeros((len(answer), KEPT), dtype=torch.float64, device=answer.device)
        count = torch.zeros_like(total)
        for first, scores in [last] if last[1].shape[1] == width else chunks():
            gap = best[:, None] - scores
            column = torch.arange(first, first + scores.shape[1], device=answer.device)
            is_other = torch.isfinite(gap) & (column != place[:, None])
            gap = torch.where(is_other, gap, 0.0)
            if width <= few:
                own.append((gap, is_other))
            else:
                kind = _kinds(gap)
                total.scatter_add_(1, kind, gap.double())
                count.scatter_add_(1, kind, is_other.double())
        if own:
            gap, is_other = (torch.cat(one, 1) for one in zip(*own, strict=True))
            return cls(gap, is_other, place == answer, place)
        return cls((total / count.clamp(min=1.0)).to(best.dtype), count.to(best.dtype), place == answer, place)

    @classmethod
    def joined(cls, parts: Sequence[Gaps], order: Ids) -> Gaps:
        """The questions of several, in this order."""
        rows = torch.from_numpy(order)
        gap, count, correct, first = (
            torch.cat(one)[rows.to(one[0].device)]
            for one in zip(*((part.gap, part.count, part.is_correct, part.first) for part in parts), strict=True)
        )
        return cls(gap, count, correct, first)

    def __len__(self) -> int:
        return len(self.is_correct)

    def first_answers(self, inverse_temperature: float | Floats) -> FirstAnswers:
        """The first answers at an inverse temperature, one for all or (n,)."""
        beta = torch.as_tensor(inverse_temperature, dtype=torch.float64, device=self.gap.device).expand(len(self))
        weight = torch.exp(-beta[:, None].to(self.gap.dtype) * self.gap) * self.count
        rest = weight.sum(1, dtype=torch.float64).clamp(min=_SMALLEST)
        mean = (weight * self.gap).sum(1, dtype=torch.float64) / rest
        said = [one.cpu().numpy() for one in (beta, rest, mean, self.is_correct)]
        return FirstAnswers(said[0], said[1], said[2], said[3])


def _kinds(gap: Tensor) -> Tensor:
    """Which of `KEPT` kinds each gap is of: by its exponent and the first digits of its fraction, which are the first
    bits of a float.
    """
    bits = gap.float().view(torch.int32) >> (23 - (_PER_OCTAVE - 1).bit_length())
    return (bits - (127 + _FINEST) * _PER_OCTAVE).clamp(0, KEPT - 1).long()


def first_answers(scores: Tensor, answer: Tensor, inverse_temperature: float | Floats) -> FirstAnswers:
    """Of (n, candidates) scores, −∞ for what is no candidate, with the right answers (n,) int64; to the last digit."""
    return Gaps.of(lambda: [(0, scores)], answer, scores.shape[1]).first_answers(inverse_temperature)


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
