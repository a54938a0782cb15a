"""How far an interval reaches for the question at hand, not for its relation on average.

A country's population is guessed within a million or within a hundred, and the question says which: by its relation,
the size of the answer, the entities it names, its qualifiers, and whether a curve of numbers knew it. Held-out errors
are compared with the spread of the relation's training numbers, with what the model itself gives for a reach (the
middle nine tenths of its distribution), or with what lies between, whichever makes the better intervals. The logarithm
of that ratio is a sum of effects, one for each thing that the question says, each drawn towards zero the fewer
questions speak for it. Errors may go further up than down, or less far, as those of dates that cannot lie ahead: how
much so is told for each part of a relation's numbers, where that makes better intervals. Conformal intervals are then
made of errors divided by their expected size, which keeps their promise whatever the effects are worth.

The expected size of a held-out error must not have seen that error: ten times, nine tenths of the facts tell it of the
rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hynt.errors import DataError
from hynt.files import RESTORE
from hynt.graph.fact_table import FIRST_QUALIFIER, TAIL, FactTable, concatenate, qualifier_of
from hynt.graph.vocabulary import Flags, Floats, Ids, Vocabulary, spread

if TYPE_CHECKING:
    from hynt.runs.scoring import SaidNumbers

FEWEST = 100
"""Held-out numbers from which on effects are fitted."""
BINS = 6
"""Parts that the training numbers of a relation are cut into, of one size each: which of them an answer falls into."""
DRAWN = {"relation": 1.0, "known": 6.0, "answer": 6.0, "entity": 6.0, "qualifier": 6.0, "value": 6.0}
"""Of each kind of effect, how many questions without any effect it is averaged with."""
SIDE = "side"
"""The effect that makes an interval longer above its answer and shorter below."""
_LATER = ("known", SIDE)
"""Effects that older files do not have."""
KNOWN = ("some", "all")
"""Of the statistics that answer beside a model, some or all had an answer."""
FOLDS = 10
"""Of held-out facts: what one of them is judged by comes from the others."""
_SWEEPS = 20
_LEAST = 0.02
"""Of a relation's median ratio: ratios below this are all the same to us."""
_NONE = (0.0, 0.02, 0.1)
"""The same of what nine tenths of its ratios are below, whichever makes the better intervals: where more than half of
the answers are exact, and nobody can tell which, small errors say nothing of large ones.
"""
_NARROWEST = 1e-2
"""Of a relation's spread: no model reaches less far than this."""
_TINY = 1e-9
_STRONGEST = 2.0
_OWN = (0.0, 0.5, 1.0)
_COVERED = 0.9
_ABOVE = 0.8
"""How much an error that is larger than effects say counts for them; one that is smaller counts the rest. Intervals
have to hold the larger ones.
"""
_ENDS = (0.05, 0.95)
_SIDES_DRAWN = 100.0
"""How many questions a side of all weighs beside a relation's own, and a relation's beside that of one part."""
_LEAST_SIDE = 0.05
"""Of the side that it is drawn to: what hardly any error lies on is not taken for shorter than this."""
_CLEARLY = 0.02
"""Of the width: how much shorter intervals must be for a model's own reach not to count in full, or for sides of their
own.
"""
_DIGITS = 4


class Told(NamedTuple):
    """Held-out errors (n,) divided by what others say of their size."""

    beside: Floats  # other questions, of the same relation among them
    strange: Floats | None  # the questions of other relations; None where effects are not fitted


class Reach(NamedTuple):
    """(n,) each, on the model's scale: an interval of radius 1 goes so far below and above the answer."""

    below: Floats
    above: Floats


@dataclass(frozen=True, eq=False)
class AskedNumbers:
    """`n` questions for numbers, and what a model says to them on its own scale."""

    table: FactTable
    row: Ids  # (n,) of the table
    position: Ids  # (n,) of the number that is asked for
    relation: Ids  # (n,) of that number
    scaled: Floats  # (n,) what the model says
    own: Reach  # what the model itself gives for a reach
    by_all: Flags  # (n,) whether all that answer together had an answer

    @classmethod
    def of(
        cls, table: FactTable, row: Ids, position: Ids, relation: Ids, said: SaidNumbers, spread: Floats
    ) -> AskedNumbers:
        """What was `said` to questions; `spread` (relations,) is that of training numbers."""
        least, own = spread[relation], said.reach
        ends = Reach(least, least) if own is None else Reach(*(np.maximum(end, _NARROWEST * least) for end in own.T))
        by_all = np.ones(len(row), dtype=np.bool_) if said.by_all is None else said.by_all
        return cls(table, row, position, relation, said.scaled, ends, by_all)

    @classmethod
    def joined(cls, parts: Sequence[AskedNumbers]) -> AskedNumbers:
        """All of these, in order."""
        shift = np.cumsum([0] + [len(part.table) for part in parts[:-1]])
        row = np.concatenate([part.row + first for part, first in zip(parts, shift.tolist(), strict=True)])
        position, relation, scaled, by_all = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("position", "relation", "scaled", "by_all")
        )
        ends = (np.concatenate(side) for side in zip(*(part.own for part in parts), strict=True))
        return cls(concatenate([part.table for part in parts]), row, position, relation, scaled, Reach(*ends), by_all)

    def ratio(self, truth: Floats) -> Floats:
        """(n,) errors by the model's own reach on the side where the truth (n,) lies."""
        error = truth - self.scaled
        return np.maximum(-error / self.own.below, error / self.own.above)

    def take(self, chosen: Ids) -> AskedNumbers:
        """These questions, in this order."""
        row, position, relation = (one[chosen] for one in (self.row, self.position, self.relation))
        own = Reach(*(end[chosen] for end in self.own))
        return AskedNumbers(self.table, row, position, relation, self.scaled[chosen], own, self.by_all[chosen])


class Effects(NamedTuple):
    """Of one kind of thing that a question says, by key."""

    key: Ids  # (k,) ascending
    effect: Floats  # (k,)

    def at(self, keys: Ids) -> Floats:
        """(m,) 0 where nothing is known."""
        if not len(self.key):
            return np.zeros(len(keys))
        at = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        return np.where(self.key[at] == keys, self.effect[at], 0.0)


@dataclass(frozen=True, eq=False)
class ResidualScale:
    """The logarithm of how large errors are, as a sum of effects."""

    vocabulary: Vocabulary
    edges: Floats  # (relations, BINS − 1) on the model's scale, between the parts of training numbers
    spread: Floats  # (relations,) of training numbers, on the model's scale
    constant: float
    effects: Mapping[str, Effects]  # by kind, as `DRAWN` names them
    own: float = 1.0  # from 0 to 1, how much the model's own reach counts beside the spread

    @classmethod
    def none(cls, vocabulary: Vocabulary, edges: Floats, spread: Floats) -> ResidualScale:
        """Where nothing is known but the model's own reach."""
        nothing = Effects(np.zeros(0, dtype=np.int64), np.zeros(0))
        return cls(vocabulary, edges, spread, 0.0, dict.fromkeys((*DRAWN, SIDE), nothing))

    def reach(self, asked: AskedNumbers) -> Reach:
        """How far intervals of radius 1 go around the answers to these questions."""
        size, based = np.exp(self._logarithm(asked)), self._based(asked).own
        up = self.effects[SIDE].at(self._part(asked))
        return Reach(based.below * size * np.exp(-up), based.above * size * np.exp(up))

    def _based(self, asked: AskedNumbers) -> AskedNumbers:
        """The same questions, with a reach between the spread and the model's own."""
        spread = self.spread[asked.relation]
        return replace(asked, own=Reach(*(spread * (end / spread) ** self.own for end in asked.own)))

    def fitted(self, asked: AskedNumbers, truth: Floats) -> tuple[ResidualScale, Told]:
        """With the effects that these errors show; and the errors divided by what others say of their size."""
        if len(truth) < FEWEST:
            return self, Told(asked.ratio(truth), None)
        spread = self.spread[asked.relation]
        says_one_number = all((end == spread).all() for end in asked.own)
        owns = (1.0,) if says_one_number else _OWN
        found = [one for own in owns for none in _NONE for one in replace(self, own=own)._fits(asked, truth, none)]
        scale, told, _ = min(found, key=lambda one: one[2])
        return scale, told

    def _fits(self, asked: AskedNumbers, truth: Floats, none: float) -> Iterator[tuple[ResidualScale, Told, float]]:
        """With both sides alike, and with sides of their own; and how badly each tells nine tenths."""
        based = self._based(asked)
        ratio = based.ratio(truth)
        order = np.lexsort((ratio, asked.relation))
        relations, first, count = np.unique(asked.relation[order], return_index=True, return_counts=True)
        median, most = (ratio[order][first + np.minimum(count * part // 10, count - 1)] for part in (5, 9))
        least = np.maximum(_LEAST * median, none * most)
        target = np.log(np.maximum(ratio, np.maximum(least[np.searchsorted(relations, asked.relation)], _TINY)))
        fold = asked.row % FOLDS
        beside = self._left_out(asked, target, fold)
        strange = self._left_out(asked, target, np.searchsorted(relations, asked.relation) % FOLDS)
        # Drawn towards zero too much or too little, as what was left out tells.
        middle, strength = float(target.mean()), _slope(beside, target)
        size, of_others = (np.exp(middle + strength * (one - beside.mean())) for one in (beside, strange))
        scale, is_above = self._with_effects(asked, target)._times(strength, middle), truth > asked.scaled
        alike = scale.effects[SIDE], np.zeros(len(size)), 0.0
        for sides, up, cost in (alike, (*self._sides(asked, truth, size, fold), _CLEARLY)):
            told = Told(ratio / size * np.exp(np.where(is_above, -up, up)), ratio / of_others)
            reach = Reach(based.own.below * size * np.exp(-up), based.own.above * size * np.exp(up))
            score = _score(told.beside, reach, is_above, self.spread[asked.relation])
            cost -= _CLEARLY if self.own == 1.0 else 0.0
            yield replace(scale, effects={**scale.effects, SIDE: sides}), told, score + cost

    def _sides(self, asked: AskedNumbers, truth: Floats, size: Floats, fold: Ids) -> tuple[Effects, Floats]:
        """How much further up than down errors of a `size` (n,) go; and (n,) what other folds (n,) say of each."""
        error, own, part, up = truth - asked.scaled, self._based(asked).own, self._part(asked), np.zeros(len(size))
        signed = error / np.where(error < 0, own.below, own.above) / size
        for one in range(FOLDS):
            left = fold == one
            if left.any() and not left.all():
                up[left] = _side_effects(part[~left], signed[~left]).at(part[left])
        return _side_effects(part, signed), up

    def _left_out(self, asked: AskedNumbers, target: Floats, fold: Ids) -> Floats:
        """(n,) what the questions of the other folds (n,) say of each."""
        found = np.zeros(len(fold))
        for one in range(FOLDS):
            rest, left = (np.flatnonzero(chosen).astype(np.int64) for chosen in (fold != one, fold == one))
            if len(rest) and len(left):
                found[left] = self._with_effects(asked.take(rest), target[rest])._logarithm(asked.take(left))
        return found

    def _times(self, strength: float, middle: float) -> ResidualScale:
        """With effects that are so many times as strong, around the `middle` of what they say."""
        return replace(
            self,
            constant=round(middle + strength * (self.constant - middle), _DIGITS),
            effects={
                kind: Effects(key, (strength * effect).round(_DIGITS)) for kind, (key, effect) in self.effects.items()
            },
        )

    def _with_effects(self, asked: AskedNumbers, target: Floats) -> ResidualScale:
        """Fitted one kind after another, each to what the others leave over, until they agree. Errors that are larger
        than said count for more, but in the mean what is said is what they are.
        """
        said, left = self._said(asked), target - target.mean()
        places = {kind: np.unique(key, return_inverse=True) for kind, (_, key) in said.items()}
        values = {kind: np.zeros(len(keys)) for kind, (keys, _) in places.items()}
        entries = {kind: np.bincount(owner)[owner] for kind, (owner, _) in said.items()}  # of a question, of one kind
        for _ in range(_SWEEPS):
            counts = _counts(left)
            left -= (counts @ left) / counts.sum()
            for kind, (owner, _) in said.items():
                place, old, count = places[kind][1], values[kind], counts[owner]
                # The qualifiers of one fact go no further together than one alone would: else, where they are many,
                # they pass their mark, and by more each time.
                weight = np.bincount(place, count * entries[kind]) + DRAWN[kind]
                step = (np.bincount(place, count * left[owner]) - DRAWN[kind] * old) / weight
                left -= np.bincount(owner, step[place], len(left))
                values[kind] = old + step
        found = {kind: Effects(keys.astype(np.int64), values[kind]) for kind, (keys, _) in places.items()}
        scale = replace(self, constant=0.0, effects={**self.effects, **found})
        return replace(scale, constant=round(float((target - scale._logarithm(asked)).mean()), _DIGITS))

    def _part(self, asked: AskedNumbers) -> Ids:
        """(n,) the relation of each question, and into which part of its training numbers the answer falls."""
        part: Ids = (asked.scaled[:, None] > self.edges[asked.relation]).sum(axis=1)
        return asked.relation * BINS + part

    def _logarithm(self, asked: AskedNumbers) -> Floats:
        found = np.full(len(asked.row), self.constant)
        for kind, (owner, key) in self._said(asked).items():
            found += np.bincount(owner, self.effects[kind].at(key), len(found))
        return found

    def _said(self, asked: AskedNumbers) -> dict[str, tuple[Ids, Ids]]:
        """By kind, (m,) the questions that say something and (m,) the key of what they say."""
        table, relation, everyone = asked.table, asked.relation, np.arange(len(asked.row), dtype=np.int64)
        is_number, width = self.vocabulary.relation_is_number, self.vocabulary.relation_count
        owner, slot = spread(table.offsets[asked.row], table.qualifier_counts()[asked.row])
        place = slot - table.offsets[asked.row][owner]
        hidden = (asked.position[owner] > TAIL) & (place == qualifier_of(asked.position[owner]))
        owner, slot = owner[~hidden], slot[~hidden]
        named, entity = table.qualifier_relation[slot].astype(np.int64), table.qualifier_entity[slot].astype(np.int64)
        valued = ~is_number[named]
        beside = np.flatnonzero((asked.position >= FIRST_QUALIFIER) & ~is_number[table.relation[asked.row]])
        entities = [table.head[asked.row], table.tail_entity[asked.row[beside]]]
        return {
            "relation": (everyone, relation),
            "known": (everyone, relation * len(KNOWN) + asked.by_all),
            "answer": (everyone, self._part(asked)),
            "entity": (np.concatenate([everyone, beside]), np.concatenate(entities).astype(np.int64)),
            "qualifier": (owner, relation[owner] * width + named),
            "value": (owner[valued], relation[owner[valued]] * self.vocabulary.entity_count + entity[valued]),
        }

    # ------------------------------------------------------------------ kept in a file

    def to_mapping(self) -> dict[str, Any]:
        """Entities and relations go by their names, so that another graph can take over what it knows."""
        names = [relation.name for relation in self.vocabulary.relations]
        entities = self.vocabulary.entities
        seconds: dict[str, Sequence[str]] = {
            "known": KNOWN,
            "answer": [str(part) for part in range(BINS)],
            SIDE: [str(part) for part in range(BINS)],
            "qualifier": names,
            "value": entities,
        }
        found: dict[str, Any] = {"constant": self.constant, "own": self.own}
        for kind, (keys, effects) in self.effects.items():
            pairs = zip(keys.tolist(), effects.tolist(), strict=True)
            if kind in seconds:
                second = seconds[kind]
                found[kind] = {}
                for key, effect in pairs:
                    first, other = divmod(key, len(second))
                    found[kind].setdefault(names[first], {})[second[other]] = effect
            else:
                named = names if kind == "relation" else entities
                found[kind] = {named[key]: effect for key, effect in pairs}
        return found

    def read(self, mapping: Mapping[str, Any], where: str) -> ResidualScale:
        """With the effects that `to_mapping` wrote; of names that this graph does not have, nothing is taken over."""
        relations, entities = self.vocabulary.relation_ids, self.vocabulary.entity_ids
        parts = {str(part): part for part in range(BINS)}
        known = {name: place for place, name in enumerate(KNOWN)}
        seconds: dict[str, Mapping[str, int]] = {
            "known": known,
            "answer": parts,
            SIDE: parts,
            "qualifier": relations,
            "value": entities,
        }
        found = {}
        try:
            for kind in (*DRAWN, SIDE):
                if kind in seconds:
                    second, size = seconds[kind], self._second(kind)
                    pairs = [
                        (relations[one] * size + second[other], float(effect))
                        for one, effects in (mapping.get(kind, {}) if kind in _LATER else mapping[kind]).items()
                        for other, effect in effects.items()
                        if one in relations and other in second
                    ]
                else:
                    ids = relations if kind == "relation" else entities
                    pairs = [(ids[one], float(effect)) for one, effect in mapping[kind].items() if one in ids]
                pairs.sort()
                found[kind] = Effects(
                    np.array([key for key, _ in pairs], dtype=np.int64), np.array([effect for _, effect in pairs])
                )
            constant, own = float(mapping["constant"]), float(mapping.get("own", 1.0))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise DataError("the sizes of errors cannot be read.", where=where, advice=RESTORE) from None
        finite = (
            math.isfinite(constant) and 0 <= own <= 1 and all(np.isfinite(one.effect).all() for one in found.values())
        )
        if not finite:
            raise DataError("the sizes of errors are not numbers.", where=where, advice=RESTORE)
        return replace(self, constant=constant, effects=found, own=own)

    def _second(self, kind: str) -> int:
        relations, entities = self.vocabulary.relation_count, self.vocabulary.entity_count
        return {"known": len(KNOWN), "answer": BINS, SIDE: BINS, "qualifier": relations, "value": entities}[kind]


def _counts(left: Floats) -> Floats:
    """(n,) how much errors count of which effects leave over so much."""
    return 2.0 * np.where(left > 0, _ABOVE, 1.0 - _ABOVE)


def _slope(said: Floats, target: Floats) -> float:
    """How many times as far from their middle as what is `said` of them (n,) errors lie."""
    found, counts = 0.0, np.ones(len(said))
    for _ in range(_SWEEPS):
        varied, left = (one - counts @ one / counts.sum() for one in (said, target))
        found = float(np.clip(counts @ (varied * left) / max(float(counts @ varied**2), _TINY), 0.0, _STRONGEST))
        counts = _counts(left - found * varied)
    return found


def _score(told: Floats, reach: Reach, is_above: Flags, spread: Floats) -> float:
    """How badly nine tenths are told by errors divided by their reach (n,): by the length of intervals in spreads (n,)
    and how far off what lies outside is, which is a matter of the few wide ones; and by the logarithms of both, a
    matter of all.
    """
    radius = max(float(np.quantile(told, _COVERED)), _TINY)
    missed = np.where(is_above, reach.above, reach.below) * np.maximum(told - radius, 0.0)
    length = (radius * sum(reach) + 2.0 * missed / (1 - _COVERED)) / spread
    far = np.log(np.maximum(told, _TINY) / radius)
    logarithms = np.maximum(_COVERED * far, (_COVERED - 1) * far) / (1 - _COVERED)
    return float(np.log(max(float(length.mean()), _TINY)) + logarithms.mean())


def _side_effects(part: Ids, signed: Floats) -> Effects:
    """By part of the numbers of a relation (n,): half the logarithm of how much further errors (n,), divided by what is
    said of their size, go up than down. A part is drawn to its relation, and a relation to all.
    """
    everything = np.maximum(_far_ends(np.zeros_like(part), signed)[2], _TINY)
    relation, count, ends = _far_ends(part // BINS, signed)
    of_relation = _drawn(everything, count, ends)
    key, count, ends = _far_ends(part, signed)
    below, above = _drawn(of_relation[:, np.searchsorted(relation, key // BINS)], count, ends)
    return Effects(key, (0.5 * np.log(above / below)).round(_DIGITS))


def _far_ends(group: Ids, signed: Floats) -> tuple[Ids, Ids, Floats]:
    """The groups, their sizes, and (2, groups) how far down and up all but one in twenty of their errors go."""
    order = np.lexsort((signed, group))
    key, first, count = np.unique(group[order], return_index=True, return_counts=True)
    ends = [signed[order][first + np.minimum((count * one).astype(np.int64), count - 1)] for one in _ENDS]
    return key, count, np.maximum(np.stack([-ends[0], ends[1]]), 0.0)


def _drawn(to: Floats, count: Ids, ends: Floats) -> Floats:
    """(2, groups) between what groups of `count` (groups,) say of their ends and what they are drawn to."""
    share = count / (count + _SIDES_DRAWN)
    found: Floats = to ** (1.0 - share) * np.maximum(ends, _LEAST_SIDE * to) ** share
    return found
