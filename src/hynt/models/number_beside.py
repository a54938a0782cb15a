"""Which relation has numbers like the one beside it: a statistic, made at once.

It reads the number as it is written: scaled by the relation that is asked for, it would give the answer away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.models.contract import EVERYWHERE, Candidates, Capability, EncodedQuestion, Part, Relations
from hynt.models.shared_facts import listed
from hynt.models.training_statistics import MadeAtOnce


@dataclass(frozen=True, eq=False)
class NumberBesideQuestion(EncodedQuestion):
    """A question for a relation, and the number beside it."""

    number: Tensor  # (rows,) float64 in the graph's unit
    place: Tensor  # (rows,) int64 0: it is a tail, 1: of a qualifier, `_NO_NUMBER`: there is none to be seen


_NO_NUMBER = 2
FINENESS = (0.5, 4.0, 32.0, 256.0)
"""Numbers are alike that share a bin, so many for a doubling; last come the very same numbers."""
FROM_COARSER = 16.0
"""How strongly the share of a bin is drawn to that of the wider bin around it: as so many numbers would."""
LEAST_LIFT = -8.0
"""Of a relation that never has numbers like this one."""


class NumberBeside(MadeAtOnce):
    """A relation scores by how much oftener than others it has numbers like the one beside it: years, say, or shares.

    The score is the logarithm of that factor. Bins grow finer: what a fine one says of a relation with few numbers in
    it is drawn to what the coarse one says.
    """

    answers: ClassVar[frozenset[Capability]] = frozenset(pair for pair in EVERYWHERE if pair[0] is Task.RELATION)
    reads: ClassVar[frozenset[Part]] = frozenset({Part.NUMBERS})

    def __init__(self, sizes: Sizes, place: Tensor, number: Tensor) -> None:
        """Of (k,) float64 numbers at (k,) int64 places: relation, plus `relations` where it is of a qualifier."""
        super().__init__(sizes)
        self.numbers = torch.bincount(place, minlength=2 * sizes.relations).double()
        self.bins: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []  # bins, their offsets, who is there, how often
        for bins in _like(number):
            known, at = torch.unique(bins, return_inverse=True)
            key, count = torch.unique(at * len(self.numbers) + place, return_counts=True)
            ends = torch.bincount(key // len(self.numbers), minlength=len(known) + 1).cumsum(0)
            self.bins.append((known, torch.cat([ends.new_zeros(1), ends]), key % len(self.numbers), count.double()))

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: object) -> NumberBeside:  # noqa: ARG003
        """From all numbers of the training facts."""
        facts = train.to("cpu")
        tails, values = facts.tail_is_number, facts.qualifier_is_number[:-1]
        in_qualifier = facts.qualifier_relation[:-1][values].long() + sizes.relations
        number = torch.cat([facts.tail_value[tails], facts.qualifier_value[:-1][values]])
        return cls(sizes, torch.cat([facts.relation[tails].long(), in_qualifier]), number)

    def read(self, batch: MaskedBatch) -> NumberBesideQuestion:
        """The number beside the relation; a masked one is never looked at."""
        is_seen = batch.tail_is_number & ~batch.tail_number_masked
        if batch.layout.slots:
            slot = batch.slot_of_asked
            of_qualifier = batch.qualifier_is_number[slot] & ~batch.qualifier_number_masked[slot]
            is_seen = torch.where(batch.asks_qualifier, of_qualifier, is_seen)
        place = torch.where(is_seen & batch.asks_relation, batch.asks_qualifier.long(), _NO_NUMBER)
        return NumberBesideQuestion(
            batch.number_beside.new_zeros(len(batch), 0), batch.asked_relation(), batch.number_beside, place
        )

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, relations) logarithms; 0 where no number is seen."""
        if not isinstance(question, NumberBesideQuestion) or not isinstance(candidates, Relations):
            raise ValueError(f"this model answers relations it has read itself, not {type(candidates).__name__}")
        device, relations = question.number.device, self.sizes.relations
        scores = torch.zeros(len(question.number), relations, device=device)
        seen = torch.nonzero(question.place != _NO_NUMBER).squeeze(1)
        number, place = question.number[seen].cpu(), question.place[seen].cpu()
        if not len(seen) or not self.bins:
            return scores
        wanted = place.unsqueeze(1) * relations + torch.arange(relations)
        own, everyone = self.numbers[wanted], self.numbers.sum()
        lift = torch.ones(len(seen), relations, dtype=torch.float64)
        for bins, (known, offsets, holder, count) in zip(_like(number), self.bins, strict=True):
            at = torch.searchsorted(known, bins).clamp(max=len(known) - 1)
            met = known[at] == bins
            row, slot = listed(offsets, torch.where(met, at, len(known)))
            counts = torch.zeros(len(seen), len(self.numbers), dtype=torch.float64)
            counts[row, holder[slot]] = count[slot]
            share = counts.gather(1, wanted) * everyone / counts.sum(1, keepdim=True).clamp(min=1)
            finer = (share + FROM_COARSER * lift) / (own + FROM_COARSER)
            lift = torch.where(met.unsqueeze(1), finer, lift)
        has_numbers = (self.numbers.view(2, relations) > 0).any(0)
        found = torch.where(has_numbers, lift.log().clamp(min=LEAST_LIFT), LEAST_LIFT)
        scores[seen] = found.float().to(device)
        return scores


def _like(number: Tensor) -> Iterator[Tensor]:
    """(n,) what (n,) float64 numbers share with those like them, from coarse to fine; whole numbers, and those
    below 0, stand apart."""
    doublings = torch.where(number == 0, 1.0, number.abs()).log2()
    kind = 3 * (number == number.round()) + torch.sign(number).long()  # of five: 0 is whole
    for fineness in FINENESS:
        yield 6 * torch.floor(fineness * doublings).long() + kind
    yield number
