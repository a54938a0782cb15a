"""TransEA (Wu and Wang, 2018): a relation is a translation of unit vectors, an attribute a direction to project on.

D(h, r, t) = ‖ê_h + r̂ − ê_t‖          v̂(e, a) = ŵ_a·ê_e + b_a          x̂ = x / ‖x‖₂
L = (1 − α)·mean max(0, γ + D(true) − D(false)) + α·mean |v̂ − v|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, normalize

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Range, Share
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
from hynt.objectives.attribute_triples import TranslatedTriples
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings, trainable


@dataclass(frozen=True)
class TranseaSettings:
    """Defaults are the middle of the grid that the HyNT paper searched."""

    dimension: Count = 256
    margin: Annotated[float, Range(0)] = 5.0
    """γ: how much farther a false triplet must be than a true one."""
    attribute_weight: Share = 0.5
    """α: the share of the numbers in the loss."""
    distance: Literal["l1", "squared-l2"] = "l1"


class Transea(TripleModel):
    """The parameters are four tables: entities, relations, attributes and one bias per attribute."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (TranslatedTriples,)
    settings: TranseaSettings

    def __init__(self, sizes: Sizes, attributes: Attributes, settings: TranseaSettings) -> None:
        super().__init__(sizes, attributes, settings)
        self.entities = nn.Parameter(torch.empty(sizes.entities, settings.dimension))
        self.relations = nn.Parameter(torch.empty(sizes.relations, settings.dimension))
        self.directions = nn.Parameter(torch.empty(attributes.count, settings.dimension))
        self.bias = nn.Parameter(torch.zeros(attributes.count))
        for table in (self.entities, self.relations, self.directions):
            nn.init.xavier_uniform_(table)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Triplets beside false ones, and attribute triples."""
        check_links(train, "transea")
        own = self.settings
        stream = TranslatedTriples(train, settings.batch_size, own.margin, own.attribute_weight)
        return [Phase(stream, trainable(self), settings.epochs)]

    def entity_vectors(self) -> Tensor:
        """(entities, d) what was learned about each entity."""
        return self.entities

    def read(self, batch: MaskedBatch) -> TripleQuestion:
        """Where the answer should lie: h + r for a tail, t − r for a head."""
        entity, relation, asks_head = known_parts(batch)
        sign = torch.where(asks_head, -1.0, 1.0).unsqueeze(1)
        place = normalize(embedding(entity, self.entities)) + sign * normalize(embedding(relation, self.relations))
        return triple_question(batch, place)

    def links(self, question: TripleQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) −D: the nearer candidate scores higher."""
        places, rows = question.encoded.float(), normalize(candidate_rows(self.entities, candidates), dim=-1)
        if rows.dim() == 3:
            apart = places.unsqueeze(1) - rows
            return -(apart.abs() if self.settings.distance == "l1" else apart.square()).sum(2)
        if self.settings.distance == "l1":
            return -torch.cdist(places, rows, p=1.0)
        return 2 * products(places, rows) - places.square().sum(1, keepdim=True) - rows.square().sum(1)

    def numbers(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) v̂."""
        vectors, directions = embedding(entity, self.entities), embedding(attribute, self.directions)
        return (normalize(vectors) * normalize(directions)).sum(1) + self.bias[attribute]

    def numbers_of_candidates(self, attribute: Tensor, candidates: Candidates) -> Tensor:
        """(rows, candidates) v̂ of each candidate."""
        rows = normalize(candidate_rows(self.entities, candidates), dim=-1)
        return products(normalize(self.directions[attribute]), rows) + self.bias[attribute].unsqueeze(1)
