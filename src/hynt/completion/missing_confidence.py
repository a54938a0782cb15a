"""How likely a proposed fact is true: that its place has a fact at all, times that the answer is right where it has.

A model always answers, and its probability says how good the answer is where there is one. Whether there is one is told
by counting. A place, a head that is expected to have a relation, is lacked by oversight or for a reason. Oversights
fall on all places alike: one rate of them for the whole graph, in proportion to what hiding the validation facts would
empty. Reasons belong to a relation, as railways of countries without any, or to a head, as one that nobody gathers
statistics of: most have none, and the rest has a number of lacked places of its own. Of all these, what fits the counts
is taken, weighed by how well it fits. Where most relations lack nothing, the rate is near zero, and what a few of them
lack is no oversight. The same counts without the validation facts say how far to trust this: of what is lacked there,
the emptied places are oversights for certain.

Of emptied places the validation facts say whether the answer is right: a logistic curve of how sure the model is, moved
for each relation, the less the fewer emptied places it has. Intervals of numbers were fitted on the same facts, so they
are taken at their word.

How far off all this may be is told, too. Answers and places of one relation are right or wrong together, so chance is
larger than if each were for itself: by how much, the emptied places of validation say, each told by others. And the
rate of oversights is known no better than it shows, and reasons are taken to have a form that they need not have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hynt.graph.vocabulary import Flags, Floats, Ids

FEWEST = 30
"""Emptied places with a known answer from which on anything is told."""
_RATES = np.geomspace(1e-3, 10.0, 81)
_ROUNDS = 30
_FALLING_APART, _FALLING_BESIDE, _FALLING_OF_HEADS = 1.0, 2.0, 0.0
"""How likely a reason is beforehand that explains F lacked places: as likely as F to minus this power. Some relations
have one exception or two, others dozens; a head of another sort may lack any share of what its peers have.
"""
_MOST_BIAS, _MOST_SHIFT = 2.0, 3.0
"""By how much the rate may be corrected, and, in log odds, the reasons."""
_MANY = 10
"""Places of its head that a place has beside it in the mean, itself among them, for the first way to be tried."""
_CLEARLY = 10.0
"""In log likelihoods: how much better the second way must be."""
_TO_ALL = 2.0
"""How strongly a relation's curve is drawn to that of all."""
_MISFIT = 0.5
"""In log odds: how far off what is said of oversights is because a graph is not made as it is taken to be. With it,
nine in ten statements about one split hold on generated graphs of most kinds.
"""
_FOLDS = 5
"""Of heads: the answers of each are told by the others'."""


class ExpectedPlaces(NamedTuple):
    """`m` heads and relations that most peers of the head have."""

    head: Ids
    relation: Ids
    facts: Ids  # how many there are; 0: the place is lacked
    kept: Ids  # how many are no validation facts
    chance: float  # that a fact is one of them

    def lacked(self) -> Flags:
        """(m,) which have no fact."""
        found: Flags = self.facts == 0
        return found

    def emptied(self) -> Floats:
        """(m,) the chance that hiding as many facts as validation has empties a place."""
        return np.where(self.facts > 0, self.chance**self.facts, 0.0)

    def without_validation(self) -> ExpectedPlaces:
        """As if the validation facts were not there."""
        return self._replace(facts=self.kept)


class Answered(NamedTuple):
    """`n` lacked or emptied places, and what a model answers there."""

    head: Ids
    relation: Ids
    probability: Floats  # of the answer, where there is one
    is_number: Flags

    def take(self, chosen: Flags) -> Answered:
        return Answered(self.head[chosen], self.relation[chosen], self.probability[chosen], self.is_number[chosen])

    def log_odds(self) -> Floats:
        """(n,) of the answers."""
        sure = np.clip(self.probability, 1e-6, 1 - 1e-6)
        odds: Floats = np.log(sure / (1.0 - sure))
        return odds


@dataclass(frozen=True, eq=False)
class MissingConfidence:
    """Fitted on emptied places and on those that are lacked."""

    oversights: Oversights
    curve: Floats  # of right entities: constant, slope, and a shift for each relation
    together: float = 1.0  # how many times the variance of right answers is what it would be if each were for itself

    def probability(self, answered: Answered) -> Floats:
        """(n,) that the proposed facts are true."""
        return self.oversights.share(answered.head, answered.relation) * _right(self.curve, answered)

    def deviation(self, answered: Answered) -> float:
        """By how much the number of true ones among these facts differs from what is expected, as a standard deviation:
        by chance, and because the rate of oversights is not known exactly.
        """
        has_fact = self.oversights.share(answered.head, answered.relation)
        right, unsure = _right(self.curve, answered), has_fact * (1.0 - has_fact)
        answers = self.together * (has_fact * right * (1.0 - right)).sum()
        places = self.oversights.together * (right**2 * unsure).sum()
        return float(np.sqrt(answers + places + (self.oversights.unsure * (right * unsure).sum()) ** 2))


def fit_confidence(
    places: ExpectedPlaces, emptied: Answered, is_told: Flags, is_right: Flags, relations: int
) -> MissingConfidence | None:
    """From all places that are expected; from answers to some that were emptied; and from whether what was hidden says
    anything of these, and whether they are right. None where too little is told.
    """
    if np.count_nonzero(is_told) < FEWEST:
        return None
    told = is_told & ~emptied.is_number
    curve = _curve(emptied.take(told), is_right[told], relations)
    checked, right, chance = emptied.take(is_told), is_right[is_told], np.zeros(np.count_nonzero(is_told))
    for fold in range(_FOLDS):
        left = checked.head % _FOLDS == fold
        kept = ~left & ~checked.is_number
        chance[left] = _right(_curve(checked.take(kept), right[kept], relations), checked.take(left))
    return MissingConfidence(checked_oversights(places, relations), curve, _together(checked.relation, right, chance))


def _right(curve: Floats, answered: Answered) -> Floats:
    """(n,) the chance that answers are right where there is a fact."""
    right = _logistic(curve[0] + curve[1] * answered.log_odds() + curve[2:][answered.relation])
    return np.where(answered.is_number, answered.probability, right)


def _together(relation: Ids, happened: Flags, chance: Floats) -> float:
    """How many times the variance of how often things happen in a relation is that of chances (n,) each for itself."""
    if not len(relation):
        return 1.0
    off = np.bincount(relation, happened - chance)
    return max(1.0, float((off**2).sum() / max(float((chance * (1.0 - chance)).sum()), 1e-9)))


# Which places are lacked by oversight, and which for a reason.


@dataclass(frozen=True, eq=False)
class Oversights:
    """How often a place is lacked, and why."""

    rate: float  # by oversight, in places that hiding the validation facts would empty
    hidden: Floats  # (relations,) the chance that hiding them empties a place of a relation
    of_relation: Floats  # (relations,) the share of its places that are lacked for a reason of its own
    of_head: Floats  # (entities,) the same
    together: float = 1.0  # how many times the variance of oversights is what it would be if each were for itself
    unsure: float = 0.0  # the standard deviation of what is not known of them, in log odds

    def share(self, head: Ids, relation: Ids) -> Floats:
        """(n,) the chance that a lacked place is lacked by oversight."""
        overlooked = self.rate * self.hidden[relation]
        return overlooked / np.maximum(overlooked + self.of_relation[relation] + self.of_head[head], 1e-300)


def checked_oversights(places: ExpectedPlaces, relations: int) -> Oversights:
    """Fitted in two ways. The first suits heads of many places, and is corrected by validation: without its facts, some
    places are known to be emptied, which are oversights for certain. Where these speak for the second way, or heads
    have few places, that is taken: it is modest enough to be let alone.
    """
    kept = places.without_validation()
    emptied = (kept.lacked() & ~places.lacked())[kept.lacked()]
    beside_each = np.mean(np.bincount(places.head)[places.head])
    if not emptied.any():
        return fit_oversights(places, relations, apart=False)
    other, modest = _checked(places, kept, emptied, relations, apart=False)
    if beside_each >= _MANY:
        likely, found = _checked(places, kept, emptied, relations, apart=True)
        if other <= likely + _CLEARLY:
            return found
    return replace(fit_oversights(places, relations, apart=False), together=modest.together, unsure=modest.unsure)


def _checked(
    places: ExpectedPlaces, kept: ExpectedPlaces, emptied: Flags, relations: int, *, apart: bool
) -> tuple[float, Oversights]:
    """How likely the places that are `emptied` are, of those that are lacked without validation; and the fit.

    So many more must be told from reasons there as there are such places, or the rate is wrong. And reasons are as
    frequent as makes those places likeliest. Where next to nothing is lacked by oversight, that says little: the
    correction of reasons is made in proportion to the rate, up to 1.
    """
    found, again = (fit_oversights(one, relations, apart=apart) for one in (places, kept))
    share = again.share(kept.head, kept.relation)[kept.lacked()]
    more = share.sum() - found.share(places.head, places.relation)[places.lacked()].sum()
    bias = float(np.clip(more / emptied.sum(), 1 / _MOST_BIAS, _MOST_BIAS))
    rate = found.rate / bias
    odds = np.log(np.clip(share, 1e-12, 1 - 1e-12) / np.clip(1 - share, 1e-12, 1.0)) - np.log(bias)
    shifts = np.linspace(-_MOST_SHIFT, _MOST_SHIFT, 121)
    chances = (np.clip(_logistic(odds - one) / (1.0 + rate), 1e-12, 1 - 1e-12) for one in shifts)
    likely = [np.log(np.where(emptied, one, 1.0 - one)).sum() for one in chances] - shifts**2 / 2.0
    best = int(np.argmax(likely))
    factor = np.exp(shifts[best] * min(1.0, rate))
    together = _together(kept.relation[kept.lacked()], emptied, _logistic(odds - shifts[best]) / (1.0 + rate))
    weight = _normalised((likely / together).tolist())
    unsure = float(np.sqrt(_MISFIT**2 + weight @ (shifts - weight @ shifts) ** 2))
    reasons = found.of_relation * factor, found.of_head * factor
    return float(likely[best]), Oversights(rate, found.hidden, *reasons, together, unsure)


def fit_oversights(places: ExpectedPlaces, relations: int, *, apart: bool) -> Oversights:
    """By turns: reasons of relations and the rate, given those of heads; then those of heads.

    `apart` from places that heads explain, or with what these lack beside. Heads of many places are told by them, and
    blur the counts of relations; heads of few explain whatever they lack.
    """
    head, relation, entities = places.head, places.relation, int(places.head.max(initial=0)) + 1
    lacked, emptied = places.lacked().astype(np.float64), places.emptied()
    by_head = _PlaceGroups.of(head, lacked, entities, _FALLING_OF_HEADS)
    size = np.maximum(np.bincount(relation, minlength=relations), 1).astype(np.float64)
    hidden = np.bincount(relation, emptied, relations) / size
    of_head, of_relation, rate = np.zeros(entities), np.zeros(relations), 0.0
    for _ in range(_ROUNDS):
        before, own = rate, rate * hidden[relation] + of_relation[relation]
        left = lacked * (1.0 - of_head[head] / np.maximum(own + of_head[head], 1e-300)) if apart else lacked
        falling = _FALLING_APART if apart else _FALLING_BESIDE
        by_relation = _PlaceGroups.of(relation, left, relations, falling)
        beside = 0.0 if apart else by_relation.total(of_head[head])
        likely = _normalised([by_relation.fit(one * hidden * size + beside)[0] for one in _RATES])
        rate = float(likely @ _RATES)
        of_relation = by_relation.reasons(rate * hidden * size + beside)
        of_head = by_head.reasons(by_head.total(rate * emptied + of_relation[relation]))
        if abs(rate - before) < 1e-3 * rate:
            break
    return Oversights(rate, hidden, of_relation, of_head)


@dataclass(frozen=True, eq=False)
class _PlaceGroups:
    """Places by relation or by head."""

    group: Ids  # (m,)
    size: Floats  # (groups,) places
    lacked: Ids  # (groups,)
    falling: float

    @classmethod
    def of(cls, group: Ids, lacked: Floats, groups: int, falling: float) -> _PlaceGroups:
        size = np.bincount(group, minlength=groups).astype(np.float64)
        return cls(group, size, np.rint(np.bincount(group, lacked, groups)).astype(np.int64), falling)

    def total(self, values: Floats) -> Floats:
        """(groups,) sums of (m,) values."""
        return np.bincount(self.group, values, len(self.size)).astype(np.float64)

    def reasons(self, mean: Floats) -> Floats:
        """(groups,) the share of places lacked for a reason of the group, where `mean` would be lacked without."""
        return self.fit(mean)[1] / np.maximum(self.size, 1.0)

    def fit(self, mean: Floats) -> tuple[float, Floats]:
        """How well these means (groups,) fit what is lacked, and (groups,) how many places are lacked for a reason.

        A Poisson number is lacked without one. With one, F more are, from 1 to the size of the group. How many groups
        have one is found by turns.
        """
        size, mean = np.maximum(self.size, 1.0), np.maximum(mean, 1e-9)
        plain, reasoned, extra = (np.zeros(len(mean)) for _ in range(3))
        present = np.flatnonzero(self.size > 0)
        for lacked in np.unique(self.lacked[present]).tolist():
            own = present[self.lacked[present] == lacked]
            plain[own], reasoned[own], extra[own] = _ways(lacked, mean[own], self.falling)
        reasoned /= np.cumsum(np.arange(1.0, size.max() + 1.0) ** -self.falling)[size.astype(np.int64) - 1]
        have, has = 0.5, np.zeros(len(mean))
        for _ in range(_ROUNDS):
            odds = have * reasoned[present]
            has[present] = odds / np.maximum(odds + (1.0 - have) * plain[present], 1e-300)
            have = float(has.sum() + 0.5) / (len(present) + 1.0)
        fitting = np.log(np.maximum(have * reasoned + (1.0 - have) * plain, 1e-300))[present]
        return float(fitting.sum()), has * extra


def _ways(lacked: int, mean: Floats, falling: float) -> tuple[Floats, Floats, Floats]:
    """(g,) the chance of so many lacked places without a reason; the same with one, summed over what it may explain;
    and how many it then explains.
    """
    most = float(mean.max())
    missing = np.arange(min(lacked, int(most + 8.0 * np.sqrt(most)) + 20) + 1)
    factorial = np.cumsum(np.log(np.maximum(missing, 1)))
    chance = np.exp(missing * np.log(mean)[:, None] - mean[:, None] - factorial)
    plain = chance[:, -1] if len(missing) == lacked + 1 else np.zeros(len(mean))
    more = lacked - missing
    weight = np.where(more > 0, chance * np.maximum(more, 1.0) ** -falling, 0.0)
    total = weight.sum(axis=1)
    return plain, total, (weight @ more) / np.maximum(total, 1e-300)


def _normalised(logarithms: list[float]) -> Floats:
    found = np.exp(np.array(logarithms) - max(logarithms))
    shares: Floats = found / found.sum()
    return shares


def _curve(told: Answered, is_right: Flags, relations: int) -> Floats:
    """(2 + relations,) constant, slope and shifts of a logistic curve."""
    found = np.zeros(2 + relations)
    if not len(is_right):
        found[1] = 1.0  # nothing tells: the model is taken at its word
        return found
    present, place = np.unique(told.relation, return_inverse=True)
    features = np.zeros((len(is_right), 2 + len(present)))
    features[:, 0], features[:, 1] = 1.0, told.log_odds()
    features[np.arange(len(is_right)), 2 + place] = 1.0
    pull = np.concatenate([[1e-2, 1e-2], np.full(len(present), _TO_ALL)])
    weights = np.zeros(len(pull))
    for _ in range(50):
        chance = _logistic(features @ weights)
        slope = features.T @ (chance - is_right) + pull * weights
        bend = (features * (chance * (1.0 - chance))[:, None]).T @ features + np.diag(pull)
        step = np.linalg.solve(bend, slope)
        weights = weights - step * min(1.0, 2.0 / max(1e-12, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-8:
            break
    found[:2], found[2 + present] = weights[:2], weights[2:]
    return found


def _logistic(values: Floats) -> Floats:
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(values, -500.0, 500.0)))
    return found
