"""Rules of two facts that share an entity, as a statistic that is made at once, and what all rules have in common.

A trait of an entity is a relation and what stands at its other end, or the relation alone. Of all who have a trait some
share have another one, too; an entity that has the first and not the second is scored by that share. So a question for
a head or a tail is answered from the traits of the entity that is known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.graph.fact_table import HEAD, RELATION
from hynt.models.contract import Candidates, Capability, EncodedQuestion, Entities, EntityIds, EntityRange, Position
from hynt.models.training_statistics import MadeAtOnce

MOST_PAIRS, FEW_PAIRS, FEW_TRAITS = 20_000_000, 2_000_000, 100
"""Rules are made from so many pairs of traits, those of the entities with the fewest, which say most: of all entities
where there are few pairs, else of those with few traits.
"""
AT_ONCE = 4_000_000
"""Rules that are applied at once, which bounds memory."""
DOUBT = 2.0
"""A trait counts as if so many more had it, and nothing else."""
FAINT = 1e-3
"""Scores are logarithms from here on."""


@dataclass(frozen=True, eq=False)
class TraitQuestion(EncodedQuestion):
    """A question, and whom it is about."""

    known: Tensor  # (rows,) int64 the entity at the other end; the masked one where it is none
    side: Tensor  # (rows,) int64 the relation where a tail is asked for, the relation after all others for a head
    there: Tensor  # (rows,) int64 the tail where a relation is asked for; the masked entity elsewhere


class Rules(MadeAtOnce, ABC):
    """A statistic that answers heads and tails from the entity at the other end."""

    answers: ClassVar[frozenset[Capability]] = frozenset({(Task.LINK, Position.HEAD), (Task.LINK, Position.TAIL)})
    rule: Tensor  # (p,) int64 keys of rules, ascending
    share: Tensor  # (p,) float32 squared share of cases in which a rule holds

    def read(self, batch: MaskedBatch) -> TraitQuestion:
        """The entity at the other end of the triplet, and the relation."""
        masked, asks_head = self.sizes.mask_entity, batch.asked == HEAD
        tail = torch.where(batch.tail_is_number, masked, batch.tail_entity)
        known = torch.where(batch.asks_qualifier, masked, torch.where(asks_head, tail, batch.head))
        side = batch.relation + torch.where(asks_head, self.sizes.relations + 1, 0)
        there = torch.where(batch.asked == RELATION, tail, masked)
        return TraitQuestion(batch.tail_number.new_zeros(len(batch), 0), batch.asked_relation(), known, side, there)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates), 0 where no rule says anything."""
        if not isinstance(question, TraitQuestion):
            raise ValueError("this model answers questions it has read itself")
        found = scores_of(candidates, self.sizes.entities, lambda start, end: self._scores(question, start, end))
        if found is None:
            raise ValueError(f"this model answers entities, not {type(candidates).__name__}")
        return found

    def _scores(self, question: TraitQuestion, start: int, end: int) -> Tensor:
        return added(question, end - start, start, self._applied(question, start, end))

    @abstractmethod
    def _applied(self, question: TraitQuestion, start: int, end: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rules that say something of the entities from `start` to `end`: rows, entities and shares, (k,) each."""


class SharedFacts(Rules):
    """An entity scores what share of those with the same traits stand in the same relation to it."""

    offsets: Tensor  # (entities + 2,) int64 the traits of entity e are listed at offsets[e] … offsets[e + 1]
    trait: Tensor  # (traits,) int64 side × (entities + 1) + entity, the masked one for a relation alone; ascending
    listed: Tensor  # (k,) int64 trait numbers

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: object) -> SharedFacts:  # noqa: ARG003
        """The rules of the training facts."""
        entity, key = traits_of(train.to("cpu"))
        trait, entity, number = _distinct(entity, key)
        counts = torch.bincount(entity, minlength=sizes.entities + 1)
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        rule, share = _rules(entity, number, counts, offsets, len(trait))
        return cls(sizes, trait=trait, offsets=offsets, listed=number, rule=rule, share=share)

    def _applied(self, question: TraitQuestion, start: int, end: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """From each trait of the known entities to traits of the side asked for."""
        row, slot = listed(self.offsets, question.known)
        first, base = self.listed[slot], question.side[row] * (self.sizes.entities + 1)
        traits = len(self.trait)
        low, high = (torch.searchsorted(self.trait, base + place) for place in (start, end))
        low, high = (torch.searchsorted(self.rule, first * traits + one) for one in (low, high))
        for part in in_parts((high - low).cumsum(0)):
            of, at = stretched(low[part], high[part])
            yield row[part][of], self.trait[self.rule[at] % traits] - base[part][of], self.share[at]


def in_parts(ends: Tensor) -> list[slice]:
    """Stretches of rules that go together, by (n,) running totals; one that is too long by itself stays whole."""
    total = int(ends[-1]) if len(ends) else 0
    marks = AT_ONCE * torch.arange(1, total // AT_ONCE + 1, device=ends.device)
    cuts = torch.searchsorted(ends, marks, right=True)
    borders = sorted({0, *cuts.tolist(), len(ends)})
    return [slice(here, there) for here, there in pairwise(borders)]


def traits_of(facts: FactTensors) -> tuple[Tensor, Tensor]:
    """(k,) int64 entities, and (k,) int64 the trait of each: side × (entities + 1) + the other end, the masked entity
    for the relation alone.
    """
    wide, sides = facts.sizes.entities + 1, facts.sizes.relations + 1
    head, relation, joined = facts.head.long(), facts.relation.long(), ~facts.tail_is_number
    tail = torch.where(joined, facts.tail_entity.long(), facts.sizes.entities)
    there, back = relation * wide, (relation + sides) * wide
    return (
        torch.cat([head[joined], tail[joined], head, tail[joined]]),
        torch.cat(
            [
                (there + tail)[joined],
                (back + head)[joined],
                there + facts.sizes.entities,
                back[joined] + facts.sizes.entities,
            ]
        ),
    )


def added(question: TraitQuestion, count: int, first: int, found: Iterator[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """(rows, count) of the candidates from `first` on, by the shares of all rules that say something of them."""
    scores = torch.zeros(len(question.known), count, device=question.known.device)
    for row, candidate, share in found:
        scores.index_put_((row, candidate - first), share, accumulate=True)
    return scores.div_(FAINT).log1p_().div_(math.log(1 / FAINT))


def building_bytes(facts: FactTensors) -> int:
    """About how much memory it takes to make these rules: by the pairs of traits that are counted; measured."""
    counts = torch.bincount(_distinct(*traits_of(facts.to("cpu")))[1])
    few = counts[counts <= usual_most(counts)]
    return _PER_PAIR * int((few * few).sum())


_PER_PAIR = 60


def _rules(entity: Tensor, number: Tensor, counts: Tensor, offsets: Tensor, traits: int) -> tuple[Tensor, Tensor]:
    """Rules and their squared shares, from who has which traits, in order of entities."""
    few = counts[entity] <= usual_most(counts)
    owner, first = entity[few], number[few]
    having = torch.bincount(first, minlength=traits)
    shared = having[first] > 1  # nobody else has it: it says nothing of others
    owner, first = owner[shared], first[shared]
    of, at = stretched(offsets[owner], offsets[owner + 1])
    second = number[at]
    keep = second != first[of]
    rule, times = counted(first[of][keep] * traits + second[keep])
    return rule, (times / (having[rule // traits] + DOUBT)).float().square()


def _distinct(entity: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The keys of traits, ascending; and of the pairs of (n,) entities and traits, each once and ascending, the entity
    and the number of the trait.
    """
    trait, number = torch.unique(key, return_inverse=True)
    pairs = torch.unique(entity * len(trait) + number)
    return trait, pairs // len(trait), pairs % len(trait)


def counted(x: Tensor) -> tuple[Tensor, Tensor]:
    """What is in (n,) int64, ascending, and how often: as `torch.unique` has it, in a third of its time."""
    value, times = np.unique(x.numpy(), return_counts=True)
    return torch.from_numpy(value), torch.from_numpy(times)


def usual_most(counts: Tensor) -> int:
    """How many traits those have at most from whom rules are made, by (n,) how many each has."""
    usual = counts.sort().values
    totals = (usual * usual).cumsum(0)
    within = [int(usual[max(int((totals <= pairs).sum()) - 1, 0)]) for pairs in (FEW_PAIRS, MOST_PAIRS)]
    return max(within[0], min(within[1], FEW_TRAITS))


def listed(offsets: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """(k,) which of `places` (n,), and (k,) every slot from its offset to the next one."""
    return stretched(offsets[places], offsets[places + 1])


def stretched(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """(k,) which of n stretches, and (k,) every place in it, from `low` (n,) up to `high` (n,)."""
    lengths = high - low
    of = torch.repeat_interleave(torch.arange(len(low), device=low.device), lengths)
    return of, torch.arange(len(of), device=low.device) - (lengths.cumsum(0) - lengths)[of] + low[of]


def scores_of(candidates: Candidates, entities: int, between: Callable[[int, int], Tensor]) -> Tensor | None:
    """(rows, candidates) by what scores all entities from one id to another; None where they are no entities."""
    match candidates:
        case Entities():
            return between(0, entities)
        case EntityRange(start, end):
            return between(start, end)
        case EntityIds(ids):
            every = between(0, entities)
            return every.gather(1, ids.expand(len(every), -1))
    return None
