"""Who else has the same facts, and what they have besides: rules of two facts, as a statistic that is made at once.

A trait of an entity is a relation and what stands at its other end, or the relation alone. Of all who have a trait some
share have another one, too; an entity that has the first and not the second is scored by that share. So a question for
a head or a tail is answered from the traits of the entity that is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.graph.fact_table import HEAD
from hynt.models.contract import (
    Candidates,
    Capability,
    EncodedQuestion,
    Entities,
    EntityIds,
    EntityRange,
    Part,
    Position,
)
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings

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


class SharedFacts(nn.Module):
    """An entity scores what share of those with the same traits stand in the same relation to it."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = ()
    answers: ClassVar[frozenset[Capability]] = frozenset({(Task.LINK, Position.HEAD), (Task.LINK, Position.TAIL)})
    reads: ClassVar[frozenset[Part]] = frozenset()
    trait: Tensor  # (traits,) int64 side × (entities + 1) + entity, the masked one for a relation alone; ascending
    offsets: Tensor  # (entities + 2,) int64 the traits of entity e are listed[offsets[e] … offsets[e + 1]]
    listed: Tensor  # (k,) int64 trait numbers
    rule: Tensor  # (p,) int64 trait × traits + the other one, ascending
    share: Tensor  # (p,) float32 squared share of those with the first that have the other

    def __init__(
        self, sizes: Sizes, trait: Tensor, offsets: Tensor, listed: Tensor, rule: Tensor, share: Tensor
    ) -> None:
        super().__init__()
        self.sizes = sizes
        for name, value in zip(
            ("trait", "offsets", "listed", "rule", "share"), (trait, offsets, listed, rule, share), strict=True
        ):
            self.register_buffer(name, value)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: object) -> SharedFacts:  # noqa: ARG003
        """The rules of the training facts."""
        entity, key = _traits(train.to("cpu"))
        trait, number = torch.unique(key, return_inverse=True)
        pairs = torch.unique(entity * len(trait) + number)
        entity, number = pairs // len(trait), pairs % len(trait)
        counts = torch.bincount(entity, minlength=sizes.entities + 1)
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        rule, share = _rules(entity, number, counts, offsets, len(trait))
        return cls(sizes, trait, offsets, number, rule, share)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:  # noqa: ARG002
        """No phases: it is made from the training facts at once."""
        return []

    def read(self, batch: MaskedBatch) -> TraitQuestion:
        """The entity at the other end of the triplet, and the relation."""
        masked, asks_head = self.sizes.mask_entity, batch.asked == HEAD
        tail = torch.where(batch.tail_is_number, masked, batch.tail_entity)
        known = torch.where(batch.asks_qualifier, masked, torch.where(asks_head, tail, batch.head))
        side = batch.relation + torch.where(asks_head, self.sizes.relations + 1, 0)
        return TraitQuestion(batch.tail_number.new_zeros(len(batch), 0), batch.asked_relation(), known, side)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates), 0 where no rule says anything."""
        if not isinstance(question, TraitQuestion):
            raise ValueError("this model answers questions it has read itself")
        match candidates:
            case Entities():
                return self._scores(question, 0, self.sizes.entities)
            case EntityRange(start, end):
                return self._scores(question, start, end)
            case EntityIds(ids):
                chosen = ids.expand(len(question.known), -1)
                return self._scores(question, 0, self.sizes.entities).gather(1, chosen)
        raise ValueError(f"this model answers entities, not {type(candidates).__name__}")

    def _scores(self, question: TraitQuestion, start: int, end: int) -> Tensor:
        found = self.share.new_zeros(len(question.known), end - start)
        # The traits of all rows, one after another, and the rules from each to traits of the side asked for.
        row, slot = listed(self.offsets, question.known)
        first, base = self.listed[slot], question.side[row] * (self.sizes.entities + 1)
        traits = len(self.trait)
        low, high = (torch.searchsorted(self.trait, base + place) for place in (start, end))
        low, high = (torch.searchsorted(self.rule, first * traits + one) for one in (low, high))
        ends = (high - low).cumsum(0)
        for part in _parts(ends):
            lengths = (high - low)[part]
            of = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
            at = torch.arange(len(of), device=of.device) - (lengths.cumsum(0) - lengths)[of] + low[part][of]
            entity = self.trait[self.rule[at] % traits] - base[part][of]
            found.index_put_((row[part][of], entity - start), self.share[at], accumulate=True)
        return torch.log1p(found.div_(FAINT)) / math.log(1 / FAINT)


def _parts(ends: Tensor) -> list[slice]:
    """Stretches of rules that go together, by (n,) running totals; one that is too long by itself stays whole."""
    total = int(ends[-1]) if len(ends) else 0
    marks = AT_ONCE * torch.arange(1, total // AT_ONCE + 1, device=ends.device)
    cuts = torch.searchsorted(ends, marks, right=True)
    borders = sorted({0, *cuts.tolist(), len(ends)})
    return [slice(here, there) for here, there in pairwise(borders)]


def _traits(facts: FactTensors) -> tuple[Tensor, Tensor]:
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


def _rules(entity: Tensor, number: Tensor, counts: Tensor, offsets: Tensor, traits: int) -> tuple[Tensor, Tensor]:
    """Rules and their squared shares, from who has which traits, in order of entities."""
    usual = counts.sort().values
    totals = (usual * usual).cumsum(0)
    within = [int(usual[int((totals <= pairs).sum()) - 1]) for pairs in (FEW_PAIRS, MOST_PAIRS)]
    few = counts[entity] <= max(within[0], min(within[1], FEW_TRAITS))
    owner, first = entity[few], number[few]
    having = torch.bincount(first, minlength=traits)
    shared = having[first] > 1  # nobody else has it: it says nothing of others
    owner, first = owner[shared], first[shared]
    lengths = counts[owner]
    of = torch.repeat_interleave(torch.arange(len(owner)), lengths)
    second = number[offsets[owner][of] + torch.arange(len(of)) - (lengths.cumsum(0) - lengths)[of]]
    keep = second != first[of]
    rule, times = torch.unique(first[of][keep] * traits + second[keep], return_counts=True)
    return rule, (times / (having[rule // traits] + DOUBT)).float().square()


def listed(offsets: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """(k,) which of `places` (n,), and (k,) every slot from its offset to the next one."""
    first = offsets[places]
    counts = offsets[places + 1] - first
    row = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
    return row, torch.arange(len(row), device=counts.device) - (counts.cumsum(0) - counts)[row] + first[row]
