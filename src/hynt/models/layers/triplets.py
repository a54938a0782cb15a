"""What models of triplets and literals share: how they answer with numbers, and how a head for numbers is fitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.batches.questions import Grouping
from hynt.errors import UsageError
from hynt.graph.fact_table import HEAD
from hynt.models.contract import (
    OF_TRIPLETS,
    Candidates,
    Capability,
    EncodedQuestion,
    Entities,
    EntityIds,
    EntityRange,
    Part,
    ScaledNumber,
)
from hynt.models.training_statistics import relation_means
from hynt.objectives.attribute_triples import AttributeTriples
from hynt.objectives.grouped_questions import GroupedQuestions
from hynt.objectives.number_distribution import NumberHeadFit
from hynt.objectives.streams import Phase, PhaseSettings, trainable


class Attributes(nn.Module):
    """Which relations are attributes, and what to say of numbers whose relation is none: the relation's mean."""

    of_relation: Tensor  # (relations + 1,) int64
    is_attribute: Tensor  # (relations + 1,) bool
    otherwise: Tensor  # (relations + 1,) float32 scaled

    def __init__(self, triples: AttributeTriples, facts: FactTensors) -> None:
        super().__init__()
        self.count = triples.count
        self.register_buffer("of_relation", triples.of_relation, persistent=False)
        self.register_buffer("is_attribute", triples.is_attribute, persistent=False)
        self.register_buffer("otherwise", relation_means(facts).float().to(facts.device), persistent=False)

    def settled(self, relation: Tensor, predicted: Tensor) -> Tensor:
        """`predicted`, (rows,) or (rows, candidates), where `relation` (rows,) is an attribute; else its mean."""
        known, otherwise = self.is_attribute[relation], self.otherwise[relation]
        if predicted.dim() == 2:
            known, otherwise = known.unsqueeze(1), otherwise.unsqueeze(1)
        return torch.where(known, predicted, otherwise)


class NumberHead(nn.Module):
    """w_a·z + b_a for each attribute a: fitted on attribute triples after a model has learned links.

    It starts at the attribute's mean, so that it is never worse than knowing nothing.
    """

    def __init__(self, width: int, means: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(len(means), width, device=means.device))
        self.bias = nn.Parameter(means.clone())

    def forward(self, vectors: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) of vectors (rows, width) and attributes (rows,)."""
        return (vectors * nn.functional.embedding(attribute, self.weight)).sum(1) + self.bias[attribute]

    def of_candidates(self, vectors: Tensor, attribute: Tensor) -> Tensor:
        """(rows, candidates) of vectors (candidates, width) or (rows, candidates, width) and attributes (rows,)."""
        return products(self.weight[attribute], vectors) + self.bias[attribute].unsqueeze(1)


# Rows of an entity table by candidates, for models that score an entity by a product with its vector.


def candidate_rows(table: Tensor, candidates: Candidates) -> Tensor:
    """(candidates, width) the same for all questions, or (rows, candidates, width); `table` is (entities, width)."""
    match candidates:
        case Entities():
            return table
        case EntityRange(start, end):
            return table[start:end]
        case EntityIds(ids):
            return embedding(ids, table)
    raise ValueError(f"this model scores entities, not {type(candidates).__name__}")


def products(queries: Tensor, rows: Tensor) -> Tensor:
    """(rows, candidates) from queries (rows, width) and what `candidate_rows` gave."""
    if rows.dim() == 2:
        return queries @ rows.t()
    return (rows @ queries.unsqueeze(2)).squeeze(2)


# What models of plain triplets make of a question: the entity that is known, the relation, and a number if there is
# one. Qualifiers are not looked at.


@dataclass(frozen=True, eq=False)
class TripleQuestion(EncodedQuestion):
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


class TripleModel(nn.Module, ABC):
    """A model of plain triplets, some of which end in a number."""

    answers: ClassVar[frozenset[Capability]] = OF_TRIPLETS
    reads: ClassVar[frozenset[Part]] = frozenset({Part.NUMBERS})
    settings: Any  # the model's own

    def __init__(self, sizes: Sizes, attributes: Attributes, settings: Any) -> None:
        super().__init__()
        self.sizes, self.settings, self.attributes = sizes, settings, attributes

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: Any) -> Self:
        """Looks at the training facts only to learn which relations are attributes."""
        return cls(sizes, Attributes(AttributeTriples.of(train), train), settings).to(train.device)

    @abstractmethod
    def links(self, question: TripleQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) scores from the relation triples."""

    @abstractmethod
    def numbers(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) scaled numbers of entities (rows,)."""

    @abstractmethod
    def numbers_of_candidates(self, attribute: Tensor, candidates: Candidates) -> Tensor:
        """(rows, candidates) the number that each candidate would have."""

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Numbers by regression; entities by link. Who has a given number: whoever's predicted number is nearest.

        Training never asks the last, so it is not computed then.
        """
        if not isinstance(question, TripleQuestion):
            raise ValueError("this model answers questions it has read itself")
        attribute = self.attributes.of_relation[question.relation]
        if isinstance(candidates, ScaledNumber):
            return self.attributes.settled(question.relation, self.numbers(question.entity, attribute)).float()
        scores = self.links(question, candidates).float()
        if self.training:
            return scores
        rows = torch.nonzero(question.has_number).squeeze(1)
        if not len(rows):
            return scores
        found = _numbers(self, attribute[rows], rows, candidates)
        predicted = self.attributes.settled(question.relation[rows], found)
        return scores.index_copy(0, rows, -(predicted.float() - question.number[rows].unsqueeze(1)).abs())


def _numbers(model: TripleModel, attribute: Tensor, rows: Tensor, candidates: Candidates) -> Tensor:
    """(rows, candidates): each attribute is worked out once, unless every row has candidates of its own."""
    if isinstance(candidates, EntityIds) and candidates.ids.dim() == 2:
        return model.numbers_of_candidates(attribute, EntityIds(candidates.ids[rows]))
    distinct, which = torch.unique(attribute, return_inverse=True)
    return model.numbers_of_candidates(distinct, candidates)[which]


def check_links(train: FactTensors, model_name: str) -> None:
    """Refuses facts that hold no link: a model of triplets would have nothing to learn from."""
    if bool(torch.all(train.tail_is_number)):
        raise UsageError(
            f"no training fact has an entity as its tail, so {model_name} has no link to learn from.",
            advice="Choose another model.",
        )


def links_then_numbers(
    model: nn.Module, head: NumberHead, train: FactTensors, settings: PhaseSettings, epochs: int, rate: float
) -> list[Phase]:
    """Grouped questions about triplets for all but the head; then, where there are numbers, the head alone, for so many
    epochs at this rate.
    """
    own = tuple(head.parameters())
    of_head = {id(parameter) for parameter in own}
    others = tuple(parameter for parameter in trainable(model) if id(parameter) not in of_head)
    links = GroupedQuestions(train, settings.batch_size, Grouping(qualifiers=False), settings.losses.smoothing)
    phases, fit = [Phase(links, others, settings.epochs)], NumberHeadFit(train, settings.batch_size)
    if fit.item_count:
        phases.append(Phase(fit, own, epochs, rate=rate))
    return phases
