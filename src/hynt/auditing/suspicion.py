"""From what judges say to one number a fact, whatever kinds of components it has. Plain numpy.

A signal x says how badly a stored value fits: for entities and relations −log(p · n), how many times less likely than
a blind guess among the n values that could stand there; for numbers the logarithm of the residual over the conformal
radius. Signals of different kinds do not compare: a birthplace is guessed badly for everyone, a relation hardly ever.
So each is set beside the signals of decoys, values put in its place at random. Logistic regression says how many
times likelier a decoy is than a stored value to have such a signal; that ratio is the evidence against the value, and
evidence compares. If one component of a fact is wrong, and any may be, the evidence against the fact is the mean of
the ratios of its components.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_STEPS = 50
_CLOSE = 1e-8
_RIDGE = 1.0
_FEW = 20
"""Fewer stored values or decoys than these say nothing."""


def evidence(signal: Floats, part: Ids, decoy: Floats, decoy_part: Ids) -> Floats:
    """(n,) log10 of the ratio for each stored value, from values and decoys of the other parts alone.

    `signal` (n,) and `decoy` (d,) belong to components of one group, `part` (n,) and `decoy_part` (d,) to the models
    that judged them. 0 where there is too little to go by.
    """
    found = np.zeros(len(signal))
    for one in np.unique(part).tolist():
        own = part == one
        stored, wrong = signal[~own], decoy[decoy_part != one]
        if min(len(stored), len(wrong)) >= _FEW:
            found[own] = _Ratio(stored, wrong).at(signal[own])
    return found


class _Ratio:
    """log10 of the ratio of densities at a signal, as two straight lines that meet at 0: one slope for signals that fit
    better than a guess, or lie inside the interval, and another beyond. Never falling.
    """

    def __init__(self, stored: Floats, wrong: Floats) -> None:
        values, is_wrong = np.concatenate([stored, wrong]), np.arange(len(stored) + len(wrong)) >= len(stored)
        # As many of each in weight: then the log-odds are the log of the ratio of densities.
        weight = np.where(is_wrong, 0.5 / len(wrong), 0.5 / len(stored)) * len(values)
        self._bound = math.log(min(len(stored), len(wrong)))
        self._weights = _logistic(_features(values), is_wrong.astype(np.float64), weight)

    def at(self, signal: Floats) -> Floats:
        constant, below, above = self._weights
        below, above = max(below, 0.0), max(above, 0.0)
        slopes = np.minimum(signal, 0.0) * below + np.maximum(signal, 0.0) * above
        # Bent towards a bound that it never reaches: n values cannot speak for a ratio above n.
        return np.asarray(-np.logaddexp(-(constant + slopes), -self._bound) / math.log(10))


def _features(signal: Floats) -> Floats:
    return np.stack([np.ones(len(signal)), np.minimum(signal, 0.0), np.maximum(signal, 0.0)], axis=1)


def _logistic(features: Floats, target: Floats, weight: Floats) -> Floats:
    """Newton's method with a little ridge on the slopes, so that a perfect separation stays finite."""
    found = np.zeros(features.shape[1])
    ridge = _RIDGE * np.array([0.0, *np.ones(features.shape[1] - 1)])
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(features @ found, -30.0, 30.0)))
        bend = features.T @ (features * (weight * (chance * (1.0 - chance) + 1e-9))[:, None]) + np.diag(ridge + 1e-9)
        step = np.linalg.solve(bend, features.T @ (weight * (target - chance)) - ridge * found)
        found = found + step
        if float(np.abs(step).max()) < _CLOSE:
            break
    return found


def of_facts(score: Floats, fact: Ids) -> tuple[Ids, Floats, Ids]:
    """The different facts (f,), the log10 of the mean ratio of their components, and the most suspicious component
    (f,) of each, as an index into `score`; of equal ones the first.
    """
    order = np.lexsort((np.arange(len(score)), -score, fact))
    facts, first, count = np.unique(fact[order], return_index=True, return_counts=True)
    worst = order[first]
    if not len(facts):
        return facts.astype(np.int64), np.zeros(0), worst.astype(np.int64)
    highest = score[worst]
    total = np.add.reduceat(10.0 ** (score[order] - np.repeat(highest, count)), first)
    return facts.astype(np.int64), highest + np.log10(total / count), worst.astype(np.int64)
