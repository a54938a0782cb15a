"""At which places an entity stands, as the head of a relation, its tail or a qualifier's value: a statistic, made at
once, for questions that ask for a relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from hynt.batches.fact_slots import HEAD_ROLE, QUALIFIER_ROLE, ROLES, TAIL_ROLE
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.models.contract import EVERYWHERE, Candidates, Capability, EncodedQuestion, Position, Relations
from hynt.models.shared_facts import listed
from hynt.models.training_statistics import MadeAtOnce, answer_counts

LIKE_ALL = 1.0
"""An entity counts as if it stood at so many more places, shared out as those of all entities are."""


@dataclass(frozen=True, eq=False)
class PlacesQuestion(EncodedQuestion):
    """A question for a relation, and who stands there."""

    seen: Tensor  # (rows,) int64 entity × ROLES + its role; of the masked entity where there is none


class TailPlaces(MadeAtOnce):
    """A relation scores by its share of the places like this one at which the tail stands, or the qualifier's value:
    logarithms.
    """

    answers: ClassVar[frozenset[Capability]] = frozenset(pair for pair in EVERYWHERE if pair[0] is Task.RELATION)
    offsets: Tensor  # ((entities + 1) × ROLES + 1,) int64 entity and role i: offsets[i] … offsets[i + 1]
    relation: Tensor  # (p,) int64
    times: Tensor  # (p,) float32 how often
    usual: Tensor  # (ROLES, relations) float32 the shares of all entities together

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: object) -> TailPlaces:  # noqa: ARG003
        """From all places of all entities in the training facts."""
        at_places, entity, times = answer_counts(train)
        place = torch.repeat_interleave(torch.arange(len(at_places) - 1), at_places.diff())
        relation, role = place // ROLES, place % ROLES
        holder, order = (entity * ROLES + role).sort(stable=True)
        counts = torch.bincount(holder, minlength=(sizes.entities + 1) * ROLES)
        of_all = torch.bincount(role * sizes.relations + relation, times, minlength=ROLES * sizes.relations)
        usual = of_all.view(ROLES, sizes.relations).float() + 1 / sizes.relations
        return cls(
            sizes,
            offsets=torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
            relation=relation[order],
            times=times[order],
            usual=usual / usual.sum(1, keepdim=True),
        )

    def read(self, batch: MaskedBatch) -> PlacesQuestion:
        """The tail or the value; numbers are not looked at."""
        masked, role = self.sizes.mask_entity, TAIL_ROLE + batch.asks_qualifier * (QUALIFIER_ROLE - TAIL_ROLE)
        entity = torch.where(batch.tail_is_number, masked, batch.tail_entity)
        if batch.layout.slots:
            slot = batch.slot_of_asked
            value = torch.where(batch.qualifier_is_number[slot], masked, batch.qualifier_entity[slot])
            entity = torch.where(batch.asks_qualifier, value, entity)
        return self._question(batch, entity * ROLES + role)

    def _question(self, batch: MaskedBatch, seen: Tensor) -> PlacesQuestion:
        return PlacesQuestion(batch.tail_number.new_zeros(len(batch), 0), batch.asked_relation(), seen)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, relations); 0 where nobody is seen."""
        if not isinstance(question, PlacesQuestion) or not isinstance(candidates, Relations):
            raise ValueError(f"this model answers relations it has read itself, not {type(candidates).__name__}")
        row, slot = listed(self.offsets, question.seen)
        share = LIKE_ALL * self.usual[question.seen % ROLES]
        share[row, self.relation[slot]] += self.times[slot]
        is_seen = (question.seen < self.sizes.mask_entity * ROLES).unsqueeze(1)
        return torch.where(is_seen, (share / share.sum(1, keepdim=True)).log(), 0.0)


class HeadPlaces(TailPlaces):
    """The same of the head. It may have the relation's one tail already, so that it says less."""

    answers: ClassVar[frozenset[Capability]] = frozenset({(Task.RELATION, Position.RELATION)})

    def read(self, batch: MaskedBatch) -> PlacesQuestion:
        """The head is all it looks at."""
        return self._question(batch, batch.head * ROLES + HEAD_ROLE)
