"""A number between those that stand nearest on its curve: a statistic, made at once.

Facts of one head and relation that hold two numbers make a curve: of years and populations, of ranks and shares. A
question for a number in a fact with another number is answered from such a curve: by a line between the two nearest
points, or by the end of the curve. A curve goes through the training facts whose qualifiers hold the same entities, or
through all of them; and a fact may hold several other numbers. Of facts with the same relations those curves are asked
that told most in training; where none told enough, there is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.graph.content_hash import mixed
from hynt.graph.vocabulary import Flags, Floats, Ids, begins
from hynt.models.contract import Candidates, Capability, EncodedQuestion, Part, ScaledNumber
from hynt.models.training_statistics import NUMBERS, MadeAtOnce, numbers_of, relation_means

FAMILIES = 2
"""Curves through facts whose qualifiers hold the same entities, and through all."""
NUMBERS_OF_A_FACT = 8
"""So many make curves with one another; of longer facts the tail and the first qualifiers."""
TELLING = 0.2
"""Curves tell enough that leave at most so much of a relation's variance."""
FEWEST = 10
"""Of fewer points than these nothing is known of a kind of curves."""

Keys = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SeriesQuestion(EncodedQuestion):
    """A question for a number, and what its curve says."""

    value: Tensor  # (rows,) float32 scaled
    on_curve: Tensor  # (rows,) bool

    def answered(self) -> Tensor:
        """(rows,) bool: those whose curve tells enough."""
        return self.on_curve


class _Held(NamedTuple):
    """Numbers that facts or questions hold, (n,) each."""

    owner: Ids  # which fact or question
    place: Ids  # relation, plus `relations` + 1 in a qualifier
    value: Floats  # scaled


class _Contexts(NamedTuple):
    """What facts or questions are about besides their numbers."""

    kind: Keys  # (n,) their relation and those of their qualifiers that hold entities
    key: Keys  # (FAMILIES, n) their head and relation, with those qualifiers and without

    def take(self, rows: Ids) -> _Contexts:
        return _Contexts(self.kind[rows], self.key[:, rows])


class _Points(NamedTuple):
    """Points of curves, (k,) each, by curve and then by x."""

    curve: Keys
    x: Floats
    y: Floats  # the mean of those at this x
    met: Ids  # how many these are


class NumberSeries(MadeAtOnce):
    """A number is what the line between its neighbours says."""

    answers: ClassVar[frozenset[Capability]] = NUMBERS
    reads: ClassVar[frozenset[Part]] = frozenset({Part.QUALIFIERS, Part.NUMBERS})

    def __init__(self, facts: FactTensors) -> None:
        facts = facts.to("cpu")
        super().__init__(facts.sizes)
        self._mean = relation_means(facts)
        held, contexts = _of_facts(facts)
        first, second = _pairs(held.owner)
        owner = held.owner[first]
        kind, curve = _curves(contexts.take(owner), held.place[first], held.place[second])
        x, y = np.tile(held.value[second], FAMILIES), np.tile(held.value[first], FAMILIES)
        order = np.lexsort((x, curve))
        kind, curve, x, y = kind[order], curve[order], x[order], y[order]
        starts = np.flatnonzero(begins(curve, x))
        met = np.diff(np.r_[starts, len(x)])
        total = np.add.reduceat(y, starts) if len(y) else y
        self._points = _Points(curve[starts], x[starts], total / met, met)
        self._curve, self._start = np.unique(self._points.curve, return_index=True)
        self._end = np.r_[self._start[1:], len(starts)]
        self._variance = self._variances(held)
        self._kinds, self._error = self._errors(kind, y, np.repeat(np.arange(len(starts)), met))

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: object) -> NumberSeries:  # noqa: ARG003
        """The curves of the training facts."""
        return cls(train)

    def read(self, batch: MaskedBatch) -> SeriesQuestion:
        """Follows the curves of the other numbers that a question shows; a masked one is never looked at."""
        rows, relation = len(batch), batch.asked_relation()
        shown, contexts = _shown(batch)
        asked = (relation + batch.asks_qualifier * (self.sizes.relations + 1)).cpu().numpy()
        kind, curve = _curves(contexts.take(shown.owner), asked[shown.owner], shown.place)
        value, inside, met = self._at(curve, np.tile(shown.value, FAMILIES))
        owner, beside = np.tile(shown.owner, FAMILIES), relation.cpu().numpy()
        error = np.where(met, self._error_of(kind, inside, beside[owner]), np.inf)
        best = np.lexsort((error, owner))
        best = best[begins(owner[best])]
        owner = owner[best]
        tells = error[best] < TELLING * self._variance[beside[owner]]
        found, on_curve = self._mean.numpy()[beside], np.zeros(rows, dtype=np.bool_)
        found[owner[tells]], on_curve[owner[tells]] = value[best][tells], True
        device = batch.head.device
        said, sure = torch.from_numpy(found).float().to(device), torch.from_numpy(on_curve).to(device)
        return SeriesQuestion(said.new_zeros(rows, 0), relation, said, sure)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows,) scaled numbers; the relation's mean where no curve tells enough."""
        if not isinstance(candidates, ScaledNumber) or not isinstance(question, SeriesQuestion):
            raise ValueError(f"this model answers numbers it has read itself, not {type(candidates).__name__}")
        return question.value

    def _at(self, curve: Keys, x: Floats) -> tuple[Floats, Flags, Flags]:
        """(n,) what curves say at `x`, whether that lies between two points, and whether there is such a curve."""
        if not len(self._curve):
            nothing = np.zeros(len(x), dtype=np.bool_)
            return np.zeros(len(x)), nothing, nothing
        at = np.searchsorted(self._curve, curve).clip(max=len(self._curve) - 1)
        low, high = self._start[at].copy(), self._end[at].copy()
        first, last = low, high - 1
        while (low < high).any():  # the first point at x or beyond, by halves
            middle = (low + high) // 2
            before = (low < high) & (self._points.x[middle.clip(max=len(self._points.x) - 1)] < x)
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        left, right = np.maximum(low - 1, first), np.minimum(low, last)
        value, inside = self._between(left, right, x)
        return value, inside, self._curve[at] == curve

    def _between(self, left: Ids, right: Ids, x: Floats) -> tuple[Floats, Flags]:
        """(n,) the value at `x` on the line through the points `left` and `right`, no further than these reach."""
        from_x, to_x = self._points.x[left], self._points.x[right]
        width = to_x - from_x
        share = ((x - from_x) / np.where(width > 0, width, 1.0)).clip(0.0, 1.0)
        value = self._points.y[left] + share * (self._points.y[right] - self._points.y[left])
        return value, (width > 0) & (from_x <= x) & (x <= to_x) | (to_x == x) | (from_x == x)

    def _errors(self, kind: Keys, y: Floats, point: Ids) -> tuple[Keys, Floats]:
        """Of every kind of curve, within it and at its ends, the mean squared error in telling each training number
        from the others: kinds + within, ascending, and the errors.
        """
        points, own = self._points, np.arange(len(self._points.curve))
        same = points.curve[1:] == points.curve[:-1]
        before, after = np.r_[False, same][: len(own)], np.r_[same, False][: len(own)]
        left = np.where(before, own - 1, own + after)  # at an end the only neighbour stands on both sides
        right = np.where(after, own + 1, own - before)
        value, _ = self._between(left, right, points.x)
        others = points.met[point] - 1  # at the same x
        told = np.where(others > 0, ((points.y * points.met)[point] - y) / others.clip(min=1), value[point])
        within = (others > 0) | (before & after)[point]
        tells = (others > 0) | (before | after)[point]
        keys, at = np.unique(kind[tells] + within[tells].astype(np.uint64), return_inverse=True)
        square = np.bincount(at, (told - y)[tells] ** 2, minlength=len(keys))
        count = np.bincount(at, minlength=len(keys))
        enough = count >= FEWEST
        return keys[enough], square[enough] / count[enough]

    def _error_of(self, kind: Keys, inside: Flags, relation: Ids) -> Floats:
        """(n,) what to expect of curves of these kinds: the relation's variance where training has none to tell."""
        unknown = self._variance[relation]
        if not len(self._kinds):
            return unknown
        key = kind + inside.astype(np.uint64)
        at = np.searchsorted(self._kinds, key).clip(max=len(self._kinds) - 1)
        return np.where(self._kinds[at] == key, self._error[at], unknown)

    def _variances(self, held: _Held) -> Floats:
        """(relations + 1,) of each relation's numbers."""
        size = self.sizes.relations + 1
        relation = held.place % size
        apart = held.value - self._mean.numpy()[relation]
        count = np.bincount(relation, minlength=size)
        return np.bincount(relation, apart**2, minlength=size) / np.maximum(count, 1)


def _pairs(owner: Ids) -> tuple[Ids, Ids]:
    """Two numbers of one fact, in every order, where `owner` (n,) ascends: places in it."""
    _, start, count = np.unique(owner, return_index=True, return_counts=True)
    per_number = np.repeat(count, count)
    first = np.repeat(np.arange(len(owner)), per_number)
    within = np.arange(len(first)) - np.repeat(np.cumsum(per_number) - per_number, per_number)
    second = np.repeat(np.repeat(start, count), per_number) + within
    different = first != second
    return first[different], second[different]


def _curves(contexts: _Contexts, y: Ids, x: Ids) -> tuple[Keys, Keys]:
    """(FAMILIES × n,) the kinds of curves of the places y and x (n,) in these contexts, and the curves themselves."""
    pair = _scrambled(_scrambled(contexts.kind + y.astype(np.uint64)) + x.astype(np.uint64))
    kind = np.concatenate([_scrambled(pair + np.uint64(family)) for family in range(FAMILIES)])
    return kind, _scrambled(contexts.key[:FAMILIES].ravel() ^ kind)


def _scrambled(values: Keys) -> Keys:
    return mixed(np.stack([values, values], axis=1))[:, 0]


def _contexts(head: Tensor, relation: Tensor, of: Tensor, qualifier: Tensor, entity: Tensor, sizes: Sizes) -> _Contexts:
    """Of facts and questions: those `of` a row have a qualifier of this relation and entity. A sum has no order."""
    of_row, names = of.cpu().numpy(), qualifier.cpu().numpy().astype(np.uint64)
    held = names * np.uint64(sizes.entities + 1) + entity.cpu().numpy().astype(np.uint64)
    primary = _scrambled(relation.cpu().numpy().astype(np.uint64))
    kind, triplet = primary.copy(), _scrambled(primary ^ head.cpu().numpy().astype(np.uint64))
    same = triplet.copy()
    np.add.at(kind, of_row, _scrambled(names))
    np.add.at(same, of_row, _scrambled(held))
    return _Contexts(kind, np.stack([same, triplet]))


def _of_facts(facts: FactTensors) -> tuple[_Held, _Contexts]:
    """The numbers of facts, by fact, and the contexts of facts."""
    owner = torch.repeat_interleave(torch.arange(len(facts)), facts.qualifier_counts())
    tails, is_number = facts.tail_is_number, facts.qualifier_is_number[:-1]
    numbers, in_tails = numbers_of(facts), int(tails.sum())
    of = torch.cat([torch.nonzero(tails).squeeze(1), owner[is_number]]).numpy()
    place = numbers.relation + (facts.sizes.relations + 1) * (torch.arange(len(of)) >= in_tails)
    order = np.argsort(of, kind="stable")
    of = of[order]
    within = np.arange(len(of)) - np.searchsorted(of, of)
    kept = order[within < NUMBERS_OF_A_FACT]
    held = _Held(of[within < NUMBERS_OF_A_FACT], place.numpy()[kept], numbers.value.numpy()[kept])
    qualifier, entity = facts.qualifier_relation[:-1][~is_number], facts.qualifier_entity[:-1][~is_number]
    return held, _contexts(facts.head, facts.relation, owner[~is_number], qualifier, entity, facts.sizes)


def _shown(batch: MaskedBatch) -> tuple[_Held, _Contexts]:
    """The numbers that questions show, and the contexts of questions."""
    tail = torch.nonzero(batch.tail_is_number & ~batch.tail_number_masked).squeeze(1)
    of, place, value = [tail], [batch.relation[tail]], [batch.tail_number[tail]]
    row, present = batch.places.slot_row, batch.qualifier_present
    slot = torch.nonzero(present & batch.qualifier_is_number & ~batch.qualifier_number_masked).squeeze(1)
    of.append(row[slot])
    place.append(batch.qualifier_relation[slot] + batch.sizes.relations + 1)
    value.append(batch.qualifier_number[slot])
    shown = _Held(
        torch.cat(of).cpu().numpy(), torch.cat(place).cpu().numpy(), torch.cat(value).cpu().numpy().astype(np.float64)
    )
    plain = torch.nonzero(present & ~batch.qualifier_is_number).squeeze(1)
    beside = batch.qualifier_relation[plain], batch.qualifier_entity[plain]
    return shown, _contexts(batch.head, batch.relation, row[plain], *beside, batch.sizes)
