"""MT-KGNN (Tay et al., 2017), in the form of the LiteralE authors that the HyNT paper compares with: DistMult for
links, and two small networks that share its entity vectors for numbers, one for heads and one for tails.

    S(h, r, t) = Σ e_h ∘ r ∘ e_t          v̂(e, a) = g([e; u_a]),   g: linear → tanh → linear
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Range, Rate
from hynt.models.contract import Candidates
from hynt.models.layers.triplets import (
    Attributes,
    TripleModel,
    TripleQuestion,
    candidate_rows,
    check_links,
    known_parts,
    products,
    triple_question,
)
from hynt.objectives.attribute_triples import AlternatingTasks
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings

VALUES_AT_ONCE = 1 << 25
"""Hidden values of the attribute network held at once while every candidate's number is asked."""


@dataclass(frozen=True)
class MtKgnnSettings:
    """Defaults are the released script's, but for the width, which is the HyNT paper's."""

    dimension: Count = 256
    hidden: Count = 100
    """Width of the attribute networks."""
    dropout: Rate = 0.2
    average_networks: bool = False
    """A number is the mean of both networks' answers, not the first one's alone."""
    attribute_steps: Annotated[int, Range(0)] = 4
    """Steps on random attribute triples after each epoch."""


class AttributeNetwork(nn.Module):
    """A number from an entity's and an attribute's vector."""

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.inner = nn.Linear(2 * dimension, hidden)
        self.outer = nn.Linear(hidden, 1)

    def forward(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) from two (rows, dimension)."""
        number: Tensor = self.outer(torch.tanh(self.inner(torch.cat([entity, attribute], 1))))
        return number.squeeze(1)

    def of_candidates(self, entities: Tensor, attribute: Tensor) -> Tensor:
        """(rows, candidates) from (candidates, d) or (rows, candidates, d) entities and (rows, d) attributes.

        The first layer is a sum of a term for the entity and one for the attribute, so each is computed once.
        """
        of_entity, of_attribute = self.inner.weight.split(self.dimension, 1)  # type: ignore[no-untyped-call]
        candidates = entities @ of_entity.t()
        rows = attribute @ of_attribute.t() + self.inner.bias
        at_once = max(1, VALUES_AT_ONCE // max(1, candidates.shape[-2] * candidates.shape[-1]))
        parts = []
        for start in range(0, len(rows), at_once):
            chosen = candidates if candidates.dim() == 2 else candidates[start : start + at_once]
            hidden = torch.tanh(chosen + rows[start : start + at_once].unsqueeze(1))
            parts.append(self.outer(hidden).squeeze(2))
        return torch.cat(parts) if parts else candidates.new_zeros(0, candidates.shape[-2])


class MtKgnn(TripleModel):
    """Head and tail are told apart by nothing: DistMult is symmetric, and so is this."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (AlternatingTasks,)
    settings: MtKgnnSettings

    def __init__(self, sizes: Sizes, attributes: Attributes, settings: MtKgnnSettings) -> None:
        super().__init__(sizes, attributes, settings)
        dimension = settings.dimension
        self.entities = nn.Parameter(nn.init.xavier_normal_(torch.empty(sizes.entities, dimension)))
        self.relations = nn.Parameter(nn.init.xavier_normal_(torch.empty(sizes.relations, dimension)))
        self.attribute_vectors = nn.Parameter(torch.randn(attributes.count, dimension))
        self.of_heads = AttributeNetwork(dimension, settings.hidden)
        self.of_tails = AttributeNetwork(dimension, settings.hidden)
        self.dropout = nn.Dropout(settings.dropout)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Links and numbers by turns, each with an optimiser of its own; both move the entities."""
        check_links(train, "mt-kgnn")
        stream = AlternatingTasks(train, settings.batch_size, settings.losses.smoothing, self.settings.attribute_steps)
        networks = (*self.of_heads.parameters(), *self.of_tails.parameters())
        numbers = (self.entities, self.attribute_vectors, *networks)
        return [Phase(stream, (self.entities, self.relations), settings.epochs, second=numbers)]

    def entity_vectors(self) -> Tensor:
        """(entities, d) what was learned about each entity."""
        return self.entities

    def read(self, batch: MaskedBatch) -> TripleQuestion:
        """e ∘ r."""
        entity, relation, _ = known_parts(batch)
        known, vector = embedding(entity, self.entities), embedding(relation, self.relations)
        return triple_question(batch, self.dropout(known) * self.dropout(vector))

    def links(self, question: TripleQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) S."""
        return products(question.encoded, candidate_rows(self.entities, candidates))

    def numbers(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) as the network of heads says, or both."""
        found = self.numbers_of_heads(entity, attribute)
        if self.settings.average_networks:
            found = (found + self.numbers_of_tails(entity, attribute)) / 2
        return found

    def numbers_of_heads(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) as the network of heads says."""
        return torch.as_tensor(self.of_heads(*self._vectors(entity, attribute)))

    def numbers_of_tails(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) as the network of tails says: only heads have numbers to ask for, so training is what needs it."""
        return torch.as_tensor(self.of_tails(*self._vectors(entity, attribute)))

    def _vectors(self, entity: Tensor, attribute: Tensor) -> tuple[Tensor, Tensor]:
        return embedding(entity, self.entities), embedding(attribute, self.attribute_vectors)

    def numbers_of_candidates(self, attribute: Tensor, candidates: Candidates) -> Tensor:
        """(rows, candidates) as `numbers`."""
        rows, vectors = candidate_rows(self.entities, candidates), self.attribute_vectors[attribute]
        found = self.of_heads.of_candidates(rows, vectors)
        if self.settings.average_networks:
            found = (found + self.of_tails.of_candidates(rows, vectors)) / 2
        return found
