"""Rules of steps from entity to entity along the primary triplets, in either direction, made at once.

Of all pairs of entities that are one step apart, or two, by these relations, some share are joined by a further one as
well. That answers heads and tails from the entity that is known, and relations from the two.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import Task
from hynt.models.contract import Candidates, Capability, EncodedQuestion, Position, Relations
from hynt.models.shared_facts import (
    DOUBT,
    Rules,
    TraitQuestion,
    added,
    counted,
    in_parts,
    listed,
    stretched,
    traits_of,
    usual_most,
)

LARGEST_TABLE = 2**24
"""Shares that are laid out in a table: 64 MB."""


class _Steps(Rules):
    """Rules of steps from entity to entity: of two that are known, they also tell the relation between them."""

    answers: ClassVar[frozenset[Capability]] = Rules.answers | {(Task.RELATION, Position.RELATION)}
    edge: Tensor  # (k,) int64 entity × (entities + 1) + the entity one step away, ascending
    by: Tensor  # (k,) int64 the side of the relation of that step

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates), 0 where no rule says anything."""
        if isinstance(candidates, Relations) and isinstance(question, TraitQuestion):
            return added(question, self.sizes.relations, 0, self._joining(question))
        return super().score(question, candidates)

    @abstractmethod
    def _joining(self, question: TraitQuestion) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rules that say something of what joins two entities: rows, relations and shares, (k,) each."""

    def _between(self, here: Tensor, start: Tensor | int, end: Tensor | int) -> tuple[Tensor, Tensor]:
        """(n,) where the steps begin and end that lead from each of `here` (n,) to entities from `start` to `end`."""
        base = here * (self.sizes.entities + 1)
        return torch.searchsorted(self.edge, base + start), torch.searchsorted(self.edge, base + end)


class OneStep(_Steps):
    """An entity scores by the relations that join it to the known one already, either way round: of those whom each of
    them joins, what share stand in the relation asked for as well. That may be the same once more, in another fact.
    """

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: object) -> OneStep:  # noqa: ARG003
        """The rules of the training facts."""
        sides = 2 * (sizes.relations + 1)
        entity, by, other = _steps(train)
        pair, number = torch.unique(entity * (sizes.entities + 1) + other, return_inverse=True)
        step, facts = counted(number * sides + by)
        number, by = step // sides, step % sides
        counts = torch.bincount(number, minlength=len(pair))
        of, at = listed(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), number)
        different = (by[at] != by[of]) | (facts[of] > 1)
        rule, times = counted((by[of] * sides + by[at])[different])
        joined = torch.bincount(by, minlength=sides)
        share = (times / (joined[rule // sides] + DOUBT)).float().square()
        return cls(sizes, edge=pair[number], by=by, rule=rule, share=share)

    def _applied(self, question: TraitQuestion, start: int, end: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """From all steps between the known entities and these."""
        if not len(self.rule):
            return
        low, high = self._between(question.known, start, end)
        for part in in_parts((high - low).cumsum(0)):
            of, at = stretched(low[part], high[part])
            rows = torch.arange(len(low), device=low.device)[part][of]
            wanted = self.by[at] * 2 * (self.sizes.relations + 1) + question.side[rows]
            place = torch.searchsorted(self.rule, wanted).clamp(max=len(self.rule) - 1)
            holds = self.rule[place] == wanted
            yield rows[holds], self.edge[at[holds]] % (self.sizes.entities + 1), self.share[place[holds]]

    def _joining(self, question: TraitQuestion) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """From all steps between the two."""
        sides = 2 * (self.sizes.relations + 1)
        of, at = stretched(*self._between(question.known, question.there, question.there + 1))
        first = self.by[at] * sides
        which, rule = stretched(
            torch.searchsorted(self.rule, first), torch.searchsorted(self.rule, first + self.sizes.relations)
        )
        yield of[which], self.rule[rule] % sides, self.share[rule]


class TwoSteps(_Steps):
    """An entity scores what share of those two steps away by the same relations stand in the relation asked for."""

    offsets: Tensor  # (entities + 2,) int64 the steps of entity e are at offsets[e] … offsets[e + 1]
    path: Tensor  # (p,) int64 the two sides of a rule's steps, ascending
    joins: Tensor  # (p,) int64 the side of the relation that joins what this path leads to
    often: Tensor  # (p,) float32 the share of that rule
    near: Tensor  # () int64 no path leads through an entity with more steps than so many

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: object) -> TwoSteps:  # noqa: ARG003
        """The rules of the training facts."""
        wide, sides = sizes.entities + 1, 2 * (sizes.relations + 1)
        entity, by, other = _steps(train)
        pair, number = torch.unique(entity * wide + other, return_inverse=True)
        step = torch.unique(number * sides + by)
        edge, by = pair[step // sides], step % sides
        entity, other = edge // wide, edge % wide
        counts = torch.bincount(entity, minlength=wide)
        offsets, near = torch.cat([counts.new_zeros(1), counts.cumsum(0)]), usual_most(counts)
        first, second = listed(offsets, torch.where(counts[other] <= near, other, sizes.entities))
        there = other[second] != entity[first]
        first, second = first[there], second[there]
        path = by[first] * sides + by[second]
        # Which of the pairs that a path joins are joined by one step as well, and by which relation.
        ends = entity[first] * wide + other[second]
        of, at = stretched(torch.searchsorted(edge, ends), torch.searchsorted(edge, ends, right=True))
        rule, times = counted(path[of] * sides + by[at])
        paths, walked = counted(path)
        path, joins = rule // sides, rule % sides
        often = (times / (walked[torch.searchsorted(paths, path)] + DOUBT)).float().square()
        rule, order = ((path // sides * sides + joins) * sides + path % sides).sort()
        steps = {"offsets": offsets, "edge": edge, "by": by, "near": torch.tensor(near)}
        return cls(sizes, **steps, rule=rule, share=often[order], path=path, joins=joins, often=often)

    def _applied(self, question: TraitQuestion, start: int, end: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Along all steps from the known entities, and all steps on from there."""
        if not len(self.rule):
            return
        row, slot = listed(self.offsets, question.known)
        sides, middle = 2 * (self.sizes.relations + 1), self._reached(slot)
        rules, begins = torch.unique(self.by[slot] * sides + question.side[row], return_inverse=True)
        first, last = (torch.searchsorted(self.rule, (rules + more) * sides) for more in (0, 1))
        low, high = self.offsets[middle], self.offsets[middle + 1]
        high = torch.where((high - low <= self.near) & (first < last)[begins], high, low)
        share_of = self._in_table(first, last) if len(rules) * sides <= LARGEST_TABLE else self._among(rules)
        for part in in_parts((high - low).cumsum(0)):
            of, at = stretched(low[part], high[part])
            entity, rows = self._reached(at), row[part][of]
            share = share_of(begins[part][of], self.by[at])
            holds = (share > 0) & (entity != question.known[rows]) & (entity >= start) & (entity < end)
            yield rows[holds], entity[holds], share[holds]

    def _joining(self, question: TraitQuestion) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Along the steps from whichever of the two has fewer, and on to the other one."""
        relations = self.sizes.relations
        turned = self._count(question.there) < self._count(question.known)
        here = torch.where(turned, question.there, question.known)
        there = torch.where(turned, question.known, question.there)
        row, slot = listed(self.offsets, here)
        middle = self._reached(slot)
        low, high = self._between(middle, there[row], there[row] + 1)
        high = torch.where((self._count(middle) <= self.near) & (here != there)[row], high, low)
        for part in in_parts((high - low).cumsum(0)):
            of, at = stretched(low[part], high[part])
            path = self.by[slot[part][of]] * 2 * (relations + 1) + self.by[at]
            rows = row[part][of]
            which, rule = stretched(
                torch.searchsorted(self.path, path), torch.searchsorted(self.path, path, right=True)
            )
            joins = self.joins[rule] - (relations + 1) * turned[rows[which]]
            holds = (joins >= 0) & (joins < relations)
            yield rows[which][holds], joins[holds], self.often[rule[holds]]

    def _count(self, entity: Tensor) -> Tensor:
        return self.offsets[entity + 1] - self.offsets[entity]

    def _reached(self, step: Tensor) -> Tensor:
        return self.edge[step] % (self.sizes.entities + 1)

    def _in_table(self, first: Tensor, last: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """The share of what begins in one way and goes on in another, from a row for each beginning: no rule is looked
        for per step.
        """
        sides, (of, at) = 2 * (self.sizes.relations + 1), stretched(first, last)
        table = self.share.new_zeros(len(first), sides)
        table[of, self.rule[at] % sides] = self.share[at]
        return lambda beginning, onwards: table[beginning, onwards]

    def _among(self, rules: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """The same, where relations are so many that most of such a table would be nothing."""

        def share(beginning: Tensor, onwards: Tensor) -> Tensor:
            wanted = rules[beginning] * 2 * (self.sizes.relations + 1) + onwards
            place = torch.searchsorted(self.rule, wanted).clamp(max=len(self.rule) - 1)
            return torch.where(self.rule[place] == wanted, self.share[place], 0.0)

        return share


def _steps(facts: FactTensors) -> tuple[Tensor, Tensor, Tensor]:
    """(k,) int64 entities, the side of each step from them, and where it leads: one for each fact and direction."""
    wide = facts.sizes.entities + 1
    entity, key = traits_of(facts.to("cpu"))
    joined = key % wide < facts.sizes.entities
    return entity[joined], key[joined] // wide, key[joined] % wide
