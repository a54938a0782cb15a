"""The weights of models that answer as one, from what each said to questions that none of them was trained on.

Weights of links and relations are those of a softmax over candidates, of numbers those of least squares. A relation
with enough questions gets weights of its own, drawn to those of all. Nothing is taken that does not do better on
questions it was not fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.graph.vocabulary import Ids
from hynt.kernels.device import threads_at_most
from hynt.models.combination import GroupWeights

FOR_A_RELATION = 50
"""Questions from which on a relation may have weights of its own."""
FOR_A_SHARE, LARGEST_SHARE = 20, 0.99
"""The same for a member that answers some questions, and its largest share: what is left answers the others."""
TO_ALL = 10.0
"""How strongly a relation's weights are drawn to those of all relations: as so many questions would."""
TO_MEAN = 1.0
"""The same for how all are drawn to the mean of the trained members."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What the members say to the questions of one capability."""

    features: Tensor  # (n, candidates, members) float64 scores, the answer's first; of numbers (n, 1, members)
    present: Tensor  # (n, candidates) bool: false fills up
    relation: Ids  # (n,) beside what is asked for
    target: Tensor  # (n,) float64 the number on the model's scale; unused for links and relations
    answered: Tensor  # (n, members) bool: who has an answer

    def take(self, rows: Tensor) -> Asked:
        found = self.relation[rows.numpy()]
        return Asked(self.features[rows], self.present[rows], found, self.target[rows], self.answered[rows])


# ---------------------------------------------------------------------- links and relations


def _mean(able: Sequence[bool], trained: int) -> Tensor:
    """(members,) the trained members alike, or the first that can answer where none of these can."""
    alike = torch.tensor([one and index < trained for index, one in enumerate(able)]).double()
    return alike / alike.sum() if alike.any() else _one_hot(len(able), list(able).index(True))


@threads_at_most(1)
def fit_ranks(asked: Asked, able: Sequence[bool], trained: int) -> GroupWeights:
    """What is asked is scaled in place: it is the largest thing there is while a run is finished."""
    count, mean = len(able), _mean(able, trained)
    spread = _spread(asked)
    usable = torch.tensor(able) & (spread > SMALLEST)
    together = replace(asked, features=asked.features @ mean.unsqueeze(1) / (spread @ mean))
    nothing, only = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.bool)
    # Below 0 the models would be turned round, which the mean that stands for the prior does not say.
    scale = _softmax_fit(together, nothing, only, 1e-3).clamp(min=SMALLEST)
    prior = scale / (spread @ mean) * mean * spread
    asked.features.div_(spread)

    def fit(some: Asked) -> Tensor:
        return _softmax_fit(some, prior, usable, TO_MEAN)

    weights = _better(asked, fit, [prior, *(_one_hot(count, one) for one in range(count) if able[one])], _reciprocal)
    relations: dict[int, Tensor] = {}
    for relation, some in _by_relation(asked):
        own = _better(some, lambda part: _softmax_fit(part, weights, usable, TO_ALL), [weights], _reciprocal)
        if own is not weights:
            relations[relation] = own
    return _group(weights, relations, spread, tuple(mean.tolist()) if torch.equal(weights, prior) else None)


SMALLEST = 1e-9
"""A member whose scores differ by less says nothing."""


def _spread(asked: Asked) -> Tensor:
    """(members,) how far the scores of a question's candidates lie apart."""
    total = torch.zeros(asked.features.shape[2], dtype=torch.float64)
    for features, present in _some_at_once(asked.features, asked.present):
        weight = present.double()
        mean = torch.einsum("nc,ncm->nm", weight, features) / weight.sum(1, keepdim=True)
        total += torch.einsum("nc,ncm->m", weight, (features - mean.unsqueeze(1)).square_())
    return (total / asked.present.sum()).sqrt().clamp(min=SMALLEST)


AT_ONCE = 256
"""Questions whose scores are copied at a time: all of them would be hundreds of megabytes, several times over."""


def _some_at_once(*parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(torch.split(part, AT_ONCE) for part in parts), strict=True)


def _softmax_fit(asked: Asked, prior: Tensor, usable: Tensor, strength: float) -> Tensor:
    """(members,) by Newton's method: the weights that make the answers likeliest, drawn to `prior`."""
    use = torch.nonzero(usable).squeeze(1)
    features, weights = asked.features if usable.all() else asked.features[..., use], prior[use].clone()
    hidden = torch.where(asked.present, 0.0, float("-inf")).double()
    pull = strength * torch.eye(len(use), dtype=torch.float64)

    def loss(at: Tensor) -> float:
        likely = torch.log_softmax(features @ at + hidden, dim=1)[:, 0]
        return float(-likely.sum() + strength * (at - prior[use]).square().sum() / 2)

    before = loss(weights)
    for _ in range(NEWTON_STEPS):
        gradient, square = strength * (weights - prior[use]), pull.clone()
        for some, out in _some_at_once(features, hidden):
            chance = torch.softmax(some @ weights + out, dim=1)
            mean = torch.einsum("nc,ncm->nm", chance, some)
            gradient += (mean - some[:, 0]).sum(0)
            square += (some * chance.unsqueeze(2)).flatten(0, 1).t() @ some.flatten(0, 1) - mean.t() @ mean
        step = torch.linalg.solve(square, gradient)
        if gradient @ step < SMALLEST_GAIN:
            break
        size = 1.0
        while size > SMALLEST_STEP and not (after := loss(weights - size * step)) < before:
            size /= 2
        if size <= SMALLEST_STEP:
            break
        weights, before = weights - size * step, after
    return prior.clone().index_copy(0, use, weights)


NEWTON_STEPS, SMALLEST_STEP = 20, 1e-3
SMALLEST_GAIN = 1e-6
"""Of the answers' log-likelihood, all questions together: a step that promises less, twice, is not tried."""


def _reciprocal(asked: Asked, weights: Tensor) -> Tensor:
    """(n,) of the answers' ranks, ties at their middle."""
    scores = (asked.features @ weights).float()  # answers are given in float32, and tie there
    other = asked.present.clone()
    other[:, 0] = False
    better = ((scores > scores[:, :1]) & other).sum(1)
    ties = ((scores == scores[:, :1]) & other).sum(1)
    return 1.0 / (1.0 + better + ties / 2)


# ---------------------------------------------------------------------- numbers


@threads_at_most(1)
def fit_numbers(asked: Asked, able: Sequence[bool], trained: int) -> GroupWeights:
    count = len(able)
    always = [one and bool(asked.answered[:, index].all()) for index, one in enumerate(able)]
    mean, usable = _mean(always, trained), torch.tensor(always)

    def fit(some: Asked) -> Tensor:
        return _least_squares(some, mean, usable, TO_MEAN)

    singles = [_one_hot(count, one) for one in range(count) if always[one]]
    weights = _better(asked, fit, [mean, *singles], _squared)
    relations: dict[int, Tensor] = {}
    for relation, some in _by_relation(asked):
        own = _better(some, lambda part: _least_squares(part, weights, usable, TO_ALL), [weights], _squared)
        if own is not weights:
            relations[relation] = own
    for index, one in enumerate(able):
        if one and not always[index]:
            weights, relations = _with_some_answers(asked, weights, relations, index)
    return _group(weights, relations, torch.ones(count, dtype=torch.float64), None)


def _with_some_answers(
    asked: Asked, weights: Tensor, relations: dict[int, Tensor], member: int
) -> tuple[Tensor, dict[int, Tensor]]:
    """The same with a member that answers some questions: a share of the weight, fitted on these alone."""
    asked = asked.take(torch.nonzero(asked.answered[:, member]).squeeze(1))
    alone = _one_hot(len(weights), member)

    def fit(some: Asked, rest: Tensor, prior: float, strength: float) -> Tensor:
        """A share of the member's, drawn to `prior`; the rest of the weight stays as it is."""
        others = some.features[:, 0] @ rest
        apart, wanted = some.features[:, 0, member] - others, some.target - others
        typical = strength * apart.square().mean().clamp(min=SMALLEST)
        share = (apart @ wanted + prior * typical) / (apart.square().sum() + typical)
        share = share.clamp(0.0, LARGEST_SHARE)
        return (1 - share) * rest + share * alone

    together = _better(asked, partial(fit, rest=weights, prior=0.0, strength=TO_MEAN), [weights], _squared)
    share = float(together[member])
    found = {one: (1 - share) * row + share * alone for one, row in relations.items()}
    for relation, some in _by_relation(asked, FOR_A_SHARE):
        rest, as_all = relations.get(relation, weights), found.get(relation, together)
        own = _better(some, partial(fit, rest=rest, prior=share, strength=TO_ALL), [as_all, rest], _squared)
        if own is not as_all:
            found[relation] = own
    return together, found


def _least_squares(asked: Asked, prior: Tensor, usable: Tensor, strength: float) -> Tensor:
    """(members,) of at least 0 that add up to 1, drawn to `prior`, which does too.

    Free of that bound, runs that are nearly alike are set against each other for the sake of a few outliers. A member
    that would get less than 0 is left out, the lowest first, and the others are fitted anew.
    """
    use = torch.nonzero(usable).squeeze(1)
    while True:
        weights = _adding_up_to_one(asked, _kept(prior, use), use, strength)
        if bool((weights[use] >= 0).all()):
            return weights
        use = use[use != use[weights[use].argmin()]]


def _kept(prior: Tensor, use: Tensor) -> Tensor:
    """(members,) the same among those in `use` alone; the first of them where it has nothing there."""
    kept = torch.zeros_like(prior).index_copy(0, use, prior[use])
    return kept / kept.sum() if kept.sum() > 0 else _one_hot(len(prior), int(use[0]))


def _adding_up_to_one(asked: Asked, prior: Tensor, use: Tensor, strength: float) -> Tensor:
    """(members,) that add up to 1, drawn to `prior`, which does too; those not in `use` get 0."""
    values = asked.features[:, 0]
    rest = asked.target - values @ prior
    # Shifting weight from the first member to another moves the answer by how far the two differ.
    apart = values[:, use[1:]] - values[:, use[:1]]
    if not len(use) > 1:
        return prior.clone()
    typical = apart.square().mean().clamp(min=SMALLEST)
    square = apart.t() @ apart + strength * typical * torch.eye(len(use) - 1, dtype=torch.float64)
    shift = torch.linalg.solve(square, apart.t() @ rest)
    weights = prior.clone()
    weights[use[1:]] += shift
    weights[use[0]] -= shift.sum()
    return weights


def _squared(asked: Asked, weights: Tensor) -> Tensor:
    """(n,) minus the squared error: more is better."""
    return -(asked.features[:, 0] @ weights - asked.target).square()


# ---------------------------------------------------------------------- both


def _better(
    asked: Asked, fit: Callable[[Asked], Tensor], plain: Sequence[Tensor], mark: Callable[[Asked, Tensor], Tensor]
) -> Tensor:
    """What does best on the half of the questions that it was not chosen on: the first of `plain`, with which nothing
    is chosen, the best of `plain`, or fitted weights. Of runs that are nearly alike, the luckiest is no better.
    """
    rows = torch.arange(len(asked.relation))
    halves = [asked.take(rows[rows % 2 == side]) for side in (0, 1)]
    if len(rows) < 2 * SMALLEST_HALF:
        return plain[0]
    marks = torch.tensor([[float(mark(half, one).sum()) for one in plain] for half in halves], dtype=torch.float64)
    chosen = sum(float(marks[1 - side, marks[side].argmax()]) for side in (0, 1))
    fitted = sum(float(mark(halves[1 - side], fit(halves[side])).sum()) for side in (0, 1))
    del halves  # as large together as all of it, which is fitted next
    first = float(marks[:, 0].sum())
    if fitted > max(chosen, first):
        return fit(asked)
    return plain[int(marks.sum(0).argmax())] if chosen > first else plain[0]


SMALLEST_HALF = 4
"""Questions below which nothing can be told from a half."""


def _by_relation(asked: Asked, least: int = FOR_A_RELATION) -> Iterator[tuple[int, Asked]]:
    found, counts = np.unique(asked.relation, return_counts=True)
    enough: NDArray[np.int64] = found[counts >= least]
    for one in enough if len(found) > 1 else ():  # a single one has the weights of all
        yield int(one), asked.take(torch.from_numpy(np.flatnonzero(asked.relation == one)))


def _group(
    weights: Tensor, relations: dict[int, Tensor], spread: Tensor, everywhere: tuple[float, ...] | None
) -> GroupWeights:
    def row(one: Tensor) -> tuple[float, ...]:
        return tuple(float(value) for value in (one / spread).tolist())

    return GroupWeights(everywhere or row(weights), {key: row(one) for key, one in relations.items()})


def _one_hot(count: int, at: int) -> Tensor:
    return torch.nn.functional.one_hot(torch.tensor(at), count).double()
