"""What models of plain triplets make of a question: the entity that is known, the relation, and a number if there is
one. Qualifiers are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from hynt.batches.masked_batch import HEAD, MaskedBatch, Task
from hynt.models.contract import Candidates, Capability, EntityIds, Number, Part, Position, Question
from hynt.models.layers.attributes import Attributes

TRIPLE_ANSWERS: frozenset[Capability] = frozenset(
    {(Task.LINK, Position.HEAD), (Task.LINK, Position.TAIL), (Task.NUMBER, Position.TAIL)}
)
"""What a model of triplets and their numbers can be asked."""

TRIPLE_READS: frozenset[Part] = frozenset({Part.NUMBERS})


@dataclass(frozen=True, eq=False)
class TripleQuestion(Question):
    """A question about a triplet."""

    entity: (
        Tensor  # (rows,) int64 the known entity: the head, or the tail where the head is asked; always an entity's id
    )
    asks_head: Tensor  # (rows,) bool
    number: Tensor  # (rows,) float32 scaled number in the tail, where there is a visible one
    has_number: Tensor  # (rows,) bool the head is asked and the tail is a number


def known_parts(batch: MaskedBatch) -> tuple[Tensor, Tensor, Tensor]:
    """(rows,) entity, relation and whether the head is asked, as `TripleQuestion` has them.

    Ids of what is hidden, or of a tail that is a number, become some entity's: nothing is made of those rows.
    """
    asks_head = batch.asked == HEAD
    entity = torch.where(asks_head, batch.tail_entity, batch.head).clamp(max=batch.sizes.entities - 1)
    return entity, batch.relation.clamp(max=batch.sizes.relations - 1), asks_head


def triple_question(batch: MaskedBatch, encoded: Tensor) -> TripleQuestion:
    """The question with what a model has `encoded`, (rows, width)."""
    entity, relation, asks_head = known_parts(batch)
    has_number = asks_head & batch.tail_is_number
    return TripleQuestion(encoded, relation, entity, asks_head, batch.tail_number, has_number)


class TripleModel(Protocol):
    """What `triple_scores` asks of a model."""

    training: bool
    attributes: Attributes

    def links(self, question: TripleQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) scores from the relation triples."""
        ...

    def numbers(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) scaled numbers of entities (rows,)."""
        ...

    def numbers_of_candidates(self, attribute: Tensor, candidates: Candidates) -> Tensor:
        """(rows, candidates) the number that each candidate would have."""
        ...


def triple_scores(model: TripleModel, question: Question, candidates: Candidates) -> Tensor:
    """Numbers by regression; entities by link. Who has a given number: whoever's predicted number is nearest.

    Training never asks the last, so it is not computed then.
    """
    if not isinstance(question, TripleQuestion):
        raise ValueError("this model answers questions it has read itself")
    attribute = model.attributes.of_relation[question.relation]
    if isinstance(candidates, Number):
        return model.attributes.settled(question.relation, model.numbers(question.entity, attribute)).float()
    scores = model.links(question, candidates).float()
    if model.training:
        return scores
    rows = torch.nonzero(question.has_number).squeeze(1)
    if not len(rows):
        return scores
    predicted = model.attributes.settled(question.relation[rows], _numbers(model, attribute[rows], rows, candidates))
    return scores.index_copy(0, rows, -(predicted.float() - question.number[rows].unsqueeze(1)).abs())


def _numbers(model: TripleModel, attribute: Tensor, rows: Tensor, candidates: Candidates) -> Tensor:
    """(rows, candidates): each attribute is worked out once, unless every row has candidates of its own."""
    if isinstance(candidates, EntityIds) and candidates.ids.dim() == 2:
        return model.numbers_of_candidates(attribute, EntityIds(candidates.ids[rows]))
    distinct, which = torch.unique(attribute, return_inverse=True)
    return model.numbers_of_candidates(distinct, candidates)[which]
