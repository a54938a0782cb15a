"""KBLN (García-Durán and Niepert, 2018, without rules), in the form of the LiteralE authors: DistMult, plus an expert
that looks at the differences between the literals of head and tail.

    S(h, r, t) = Σ e_h ∘ r ∘ e_t + Σ_a N[r, a]·φ_a(l_h[a] − l_t[a]),   φ_a(n) = exp(−(n − c_a)² / σ²_a)

Few entities have a given attribute. A missing literal reads 0, so all candidates without it share one φ, and only
the cells that are there need one of their own: the same sums as over all candidates and attributes, at a small part
of the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Positive, Rate
from hynt.models.contract import Candidates, EntityIds, EntityRange
from hynt.models.layers.triplets import (
    Attributes,
    NumberHead,
    TripleModel,
    TripleQuestion,
    candidate_rows,
    check_links,
    known_parts,
    links_then_numbers,
    products,
    triple_question,
)
from hynt.objectives.attribute_triples import AttributeTriples, CellReduce
from hynt.objectives.grouped_questions import GroupedQuestions
from hynt.objectives.number_distribution import NumberHeadFit
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings


@dataclass(frozen=True)
class KblnSettings:
    """Defaults are the released form."""

    dimension: Count = 256
    dropout: Rate = 0.2
    directions: Literal["shared", "reciprocal"] = "shared"
    """"reciprocal" gives each relation a second vector for questions about its head."""
    mask_missing: bool = False
    """Leaves out attributes that head and tail do not both have, as the paper means it."""
    per_relation_stats: bool = False
    """Means and variances of differences by relation, not over all triplets."""
    numeric_init: Literal["normal", "zeros"] = "normal"
    """How N starts. "normal" lets thousands of candidates without literals begin with the same large score."""
    cell_reduce: CellReduce = "last"
    """What an entity with several values of an attribute has: the last one, or their mean."""
    head_rate: Positive = 1e-2
    head_epochs: Count = 100
    """How the head for numbers is fitted once links are learned."""


class Kbln(TripleModel):
    """Latent and numeric expert, and the head for numbers."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (GroupedQuestions, NumberHeadFit)
    settings: KblnSettings
    literals: Tensor  # (entities, attributes) float32, 0 where there is none
    has: Tensor  # (entities, attributes) bool
    cell_count: Tensor  # (entities,) int64 how many of the cells, which come entity by entity, are an entity's
    cell_attribute: Tensor  # (cells,) int64
    cell_value: Tensor  # (cells,) float32
    centre: Tensor  # (relations or 1, attributes) float32 c
    spread: Tensor  # (relations or 1, attributes) float32 σ²

    def __init__(
        self,
        sizes: Sizes,
        attributes: Attributes,
        triples: AttributeTriples,
        differences: Differences,
        settings: KblnSettings,
    ) -> None:
        super().__init__(sizes, attributes, settings)
        rows = sizes.relations * (2 if settings.directions == "reciprocal" else 1)
        self.entities = nn.Parameter(nn.init.xavier_normal_(torch.empty(sizes.entities, settings.dimension)))
        self.relations = nn.Parameter(nn.init.xavier_normal_(torch.empty(rows, settings.dimension)))
        weights = torch.randn(rows, triples.count) if settings.numeric_init == "normal" else None
        self.numeric = nn.Parameter(torch.zeros(rows, triples.count) if weights is None else weights)
        self.dropout = nn.Dropout(settings.dropout)
        self.number_head = NumberHead(settings.dimension, triples.means())
        cells = triples.cells(settings.cell_reduce)
        literals, has = triples.table(cells)
        count = torch.bincount(cells.entity, minlength=sizes.entities)
        self._starts = [0, *count.cumsum(0).tolist()]  # where the cells of each entity begin
        for name, value in (
            ("literals", literals),
            ("has", has),
            ("cell_count", count),
            ("cell_attribute", cells.attribute),
            ("cell_value", cells.value),
            ("centre", differences.centre),
            ("spread", differences.spread),
        ):
            self.register_buffer(name, value, persistent=False)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: KblnSettings) -> Kbln:
        """Takes literals, and how they differ along triplets, from the training facts."""
        triples = AttributeTriples.of(train)
        literals, _ = triples.table(triples.cells(settings.cell_reduce))
        differences = literal_differences(train, literals, by_relation=settings.per_relation_stats)
        return cls(sizes, Attributes(triples, train), triples, differences, settings).to(train.device)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Links, and then the head for numbers."""
        check_links(train, "kbln")
        own = self.settings
        return links_then_numbers(self, self.number_head, train, settings, own.head_epochs, own.head_rate)

    def entity_vectors(self) -> Tensor:
        """(entities, d) what was learned about each entity."""
        return self.entities

    def read(self, batch: MaskedBatch) -> TripleQuestion:
        """e ∘ r."""
        entity, relation, asks_head = known_parts(batch)
        vector = embedding(self._directed(relation, asks_head), self.relations)
        return triple_question(batch, self.dropout(embedding(entity, self.entities)) * self.dropout(vector))

    def links(self, question: TripleQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) both experts together."""
        latent = products(question.encoded, candidate_rows(self.entities, candidates))
        return latent + self._numeric_expert(question, candidates)

    def numbers(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) as the head says."""
        return torch.as_tensor(self.number_head(self.head_vectors(entity), attribute))

    def head_vectors(self, entity: Tensor) -> Tensor:
        """(rows, dimension) what the head sees."""
        return embedding(entity, self.entities)

    def numbers_of_candidates(self, attribute: Tensor, candidates: Candidates) -> Tensor:
        """(rows, candidates) as the head says."""
        return self.number_head.of_candidates(candidate_rows(self.entities, candidates), attribute)

    def _directed(self, relation: Tensor, asks_head: Tensor) -> Tensor:
        if self.settings.directions == "shared":
            return relation
        return relation + asks_head * self.sizes.relations

    def _numeric_expert(self, question: TripleQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates): the known entity stands for the head, as in the released code."""
        mine = self.literals[question.entity]  # (rows, attributes)
        weight = embedding(self._directed(question.relation, question.asks_head), self.numeric)
        if self.settings.mask_missing:
            weight = weight * self.has[question.entity]
        by = question.relation if self.settings.per_relation_stats else torch.zeros_like(question.relation)
        centre, spread = self.centre[by], self.spread[by]
        if self.settings.directions == "reciprocal":
            centre = torch.where(question.asks_head.unsqueeze(1), -centre, centre)
        if isinstance(candidates, EntityIds):
            return self._of_chosen(candidates.ids, mine, weight, centre, spread)
        without = torch.exp(-(mine - centre).square() / spread)
        if self.settings.mask_missing:
            without = torch.zeros_like(without)
        start, end = candidates if isinstance(candidates, EntityRange) else (0, self.sizes.entities)
        here = slice(self._starts[start], self._starts[end])
        attribute = self.cell_attribute[here]
        # (cells, rows): one cell per row, so that the cells of an entity lie together and can be added up.
        apart = mine.t()[attribute] - self.cell_value[here].unsqueeze(1) - centre.t()[attribute]
        more = torch.exp(-apart.square() / spread.t()[attribute]) - without.t()[attribute]
        more = embedding(attribute, weight.t()) * more
        # Segment by segment: on a GPU adding at indices would add in another order each time.
        of_cells = torch.segment_reduce(more, "sum", lengths=self.cell_count[start:end], axis=0, unsafe=True)
        return (weight * without).sum(1, keepdim=True) + of_cells.t()

    def _of_chosen(self, ids: Tensor, mine: Tensor, weight: Tensor, centre: Tensor, spread: Tensor) -> Tensor:
        """The same for a few candidates, attribute by attribute."""
        ids = ids.expand(len(mine), -1)
        apart = mine.unsqueeze(1) - self.literals[ids] - centre.unsqueeze(1)
        like = torch.exp(-apart.square() / spread.unsqueeze(1))
        if self.settings.mask_missing:
            like = like * self.has[ids]
        return (like * weight.unsqueeze(1)).sum(2)


# How literals differ between head and tail of the training triplets: mean and variance for each attribute.

AT_ONCE = 1 << 16
SMALLEST_VARIANCE = 1e-6


class Differences(NamedTuple):
    """For all triplets together (1 row), or for each relation."""

    centre: Tensor  # (1 or relations, attributes) float32 mean of literal of the head minus that of the tail
    spread: Tensor  # (1 or relations, attributes) float32 variance, kept above 0


def literal_differences(facts: FactTensors, literals: Tensor, *, by_relation: bool) -> Differences:
    """From all triplets whose tail is an entity. `literals` (entities, attributes) reads 0 where there is none."""
    joined = ~facts.tail_is_number
    head, tail = facts.head[joined].long(), facts.tail_entity[joined].long()
    relation = facts.relation[joined].long() if by_relation else torch.zeros_like(head)
    groups = facts.sizes.relations if by_relation else 1
    total = torch.zeros(groups, literals.shape[1], dtype=torch.float64, device=literals.device)
    squares = torch.zeros_like(total)
    for start in range(0, len(head), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        apart = (literals[head[some]] - literals[tail[some]]).double()
        total.index_add_(0, relation[some], apart)
        squares.index_add_(0, relation[some], apart.square())
    times = torch.bincount(relation, minlength=groups).clamp(min=1).unsqueeze(1)
    centre = total / times
    variance = (squares / times - centre.square()).clamp(min=0) + SMALLEST_VARIANCE
    return Differences(centre.float(), variance.float())
