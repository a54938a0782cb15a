"""LiteralE (Kristiadi et al., 2019): entity vectors enriched with their literals, g(e, l), behind any model of links.

Whatever the model behind, a score is a product of a query and a candidate's vector:

    distmult   g(h)∘r · g(t)        complex   Re⟨g(h), r, conj g(t)⟩        conve   convolution(g(h), r) · g(t) + b_t
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Positive, Rate
from hynt.models.contract import Candidates
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

# LiteralE's module g: an entity's vector and its literals become one vector of the same width.

GateKind = Literal["gated", "linear"]


class LiteralGate(nn.Module):
    """z = σ(W₁e + W₂l + b), c = tanh(W₃[e; l] + b₃), g = (1 − z)∘e + z∘c."""

    def __init__(self, dimension: int, literals: int) -> None:
        super().__init__()
        self.of_entity = nn.Linear(dimension, dimension, bias=False)
        self.of_literals = nn.Linear(literals, dimension, bias=False)
        self.bias = nn.Parameter(torch.zeros(dimension))
        self.changed = nn.Linear(dimension + literals, dimension)

    def forward(self, entities: Tensor, literals: Tensor) -> Tensor:
        """(n, dimension) from (n, dimension) and (n, literals)."""
        gate = torch.sigmoid(self.of_entity(entities) + self.of_literals(literals) + self.bias)
        changed = torch.tanh(self.changed(torch.cat([entities, literals], 1)))
        return (1 - gate) * entities + gate * changed


class LinearGate(nn.Module):
    """A single linear map of both, for ComplEx and ConvE with a tanh behind it."""

    def __init__(self, dimension: int, literals: int, *, bounded: bool) -> None:
        super().__init__()
        self.changed = nn.Linear(dimension + literals, dimension)
        self.bounded = bounded

    def forward(self, entities: Tensor, literals: Tensor) -> Tensor:
        """(n, dimension) from (n, dimension) and (n, literals)."""
        changed: Tensor = self.changed(torch.cat([entities, literals], 1))
        return torch.tanh(changed) if self.bounded else changed


def literal_gate(kind: GateKind, dimension: int, literals: int, *, bounded: bool) -> nn.Module:
    """The gate by name; `bounded` asks a linear one for its tanh."""
    return LiteralGate(dimension, literals) if kind == "gated" else LinearGate(dimension, literals, bounded=bounded)


@dataclass(frozen=True)
class LiteraleSettings:
    """Defaults are the released script's, but for the width, which is the HyNT paper's."""

    dimension: Count = 256
    base: Literal["distmult", "complex", "conve"] = "distmult"
    """The model behind. The paper's searched settings name ConvE's dropouts, so its row is likely "conve"."""
    gate: GateKind = "gated"
    dropout: Rate = 0.2
    feature_map_dropout: Rate = 0.2
    projection_dropout: Rate = 0.3
    """The last two belong to ConvE alone."""
    directions: Literal["shared", "reciprocal"] = "shared"
    """"reciprocal" gives each relation a second vector for questions about its head; ComplEx and ConvE need it."""
    missing: Literal["zero", "mean", "mask-channel"] = "zero"
    """What stands for a literal that an entity lacks; "mask-channel" tells the gate which are there."""
    cell_reduce: CellReduce = "last"
    """What an entity with several values of an attribute has: the last one, or their mean."""
    head_input: Literal["raw", "gated"] = "raw"
    """What the head for numbers sees. "gated" holds the very number it is fitted to, and learns to copy it."""
    head_rate: Positive = 1e-2
    head_epochs: Count = 100
    """How the head for numbers is fitted once links are learned."""

    def __post_init__(self) -> None:
        if self.base == "conve" and not can_convolve(self.dimension):
            raise ValueError(f"a vector of {self.dimension} numbers makes no picture that ConvE could look at")


class Literale(TripleModel):
    """Tables, gates, the model behind, and the head for numbers."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (GroupedQuestions, NumberHeadFit)
    settings: LiteraleSettings
    literals: Tensor  # (entities, literal width) float32

    def __init__(
        self, sizes: Sizes, attributes: Attributes, triples: AttributeTriples, settings: LiteraleSettings
    ) -> None:
        super().__init__(sizes, attributes, settings)
        dimension, base = settings.dimension, settings.base
        self.parts = 2 if base == "complex" else 1  # real and imaginary
        rows = sizes.relations * (2 if settings.directions == "reciprocal" else 1)
        self.register_buffer("literals", _literals(triples, settings), persistent=False)
        width = self.literals.shape[1]
        self.entities = _tables(self.parts, sizes.entities, dimension)
        self.relations = _tables(self.parts, rows, dimension)
        bounded = base != "distmult"
        self.gates = nn.ModuleList(
            literal_gate(settings.gate, dimension, width, bounded=bounded) for _ in range(self.parts)
        )
        self.dropout = nn.Dropout(settings.dropout)
        if base == "conve":
            self.convolution = ConvolutionQuery(
                dimension, settings.dropout, settings.feature_map_dropout, settings.projection_dropout
            )
            self.entity_bias = nn.Parameter(torch.zeros(sizes.entities))
        self.number_head = NumberHead(self.parts * dimension, triples.means())
        self._kept: tuple[tuple[int, ...], Tensor] | None = None

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: LiteraleSettings) -> Literale:
        """Takes the literals from the training facts."""
        triples = AttributeTriples.of(train)
        return cls(sizes, Attributes(triples, train), triples, settings).to(train.device)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Links, and then the head for numbers."""
        check_links(train, "literale")
        own = self.settings
        return links_then_numbers(self, self.number_head, train, settings, own.head_epochs, own.head_rate)

    def train(self, mode: bool = True) -> Literale:
        """Weights are about to change or have changed, perhaps unseen by Python: nothing computed from them is kept."""
        self._kept = None
        return super().train(mode)

    def entity_vectors(self) -> Tensor:
        """(entities, parts × d) what was learned about each entity, without its literals."""
        return torch.cat(list(self.entities), 1)

    def read(self, batch: MaskedBatch) -> TripleQuestion:
        """The query: what a candidate's vector is multiplied with."""
        entity, relation, asks_head = known_parts(batch)
        if self.settings.directions == "reciprocal":
            relation = relation + asks_head * self.sizes.relations
        heads = self._gated(entity)
        relations = [embedding(relation, table) for table in self.relations]
        if self.settings.base == "conve":
            query = self.convolution(heads[0], relations[0])
            return triple_question(batch, torch.cat([query, torch.ones_like(query[:, :1])], 1))
        heads = [self.dropout(head) for head in heads]
        relations = [self.dropout(one) for one in relations]
        if self.settings.base == "distmult":
            return triple_question(batch, heads[0] * relations[0])
        (real, imaginary), (relation_real, relation_imaginary) = heads, relations
        query = torch.cat(
            [
                real * relation_real - imaginary * relation_imaginary,
                real * relation_imaginary + imaginary * relation_real,
            ],
            1,
        )
        return triple_question(batch, query)

    def links(self, question: TripleQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) products with the enriched vectors of the candidates."""
        return products(question.encoded, candidate_rows(self._candidate_table(), candidates))

    def numbers(self, entity: Tensor, attribute: Tensor) -> Tensor:
        """(rows,) as the head says."""
        return torch.as_tensor(self.number_head(self.head_vectors(entity), attribute))

    def head_vectors(self, entity: Tensor) -> Tensor:
        """(rows, width) what the head sees."""
        gated = self.settings.head_input == "gated"
        return torch.cat(self._gated(entity) if gated else [embedding(entity, table) for table in self.entities], 1)

    def numbers_of_candidates(self, attribute: Tensor, candidates: Candidates) -> Tensor:
        """(rows, candidates) as the head says."""
        if self.settings.head_input == "gated":
            table = self._candidate_table()[:, : self.parts * self.settings.dimension]
        else:
            table = self.entity_vectors()
        return self.number_head.of_candidates(candidate_rows(table, candidates), attribute)

    def _gated(self, entity: Tensor) -> list[Tensor]:
        """(rows, dimension) each: enriched vectors, real and imaginary or just one."""
        pairs = zip(self.gates, self.entities, strict=True)
        return [gate(embedding(entity, table), self.literals[entity]) for gate, table in pairs]

    def _candidate_table(self) -> Tensor:
        """(entities, width) the enriched vector of every entity; kept between the questions of an evaluation."""
        if self.training or torch.is_grad_enabled():
            return self._made_table()
        versions = tuple(parameter._version for parameter in self.parameters())
        if self._kept is None or self._kept[0] != versions or self._kept[1].device != self.literals.device:
            self._kept = (versions, self._made_table())
        return self._kept[1]

    def _made_table(self) -> Tensor:
        pairs = zip(self.gates, self.entities, strict=True)
        columns = [gate(table, self.literals) for gate, table in pairs]
        if self.settings.base == "conve":
            columns.append(self.entity_bias.unsqueeze(1))
        return torch.cat(columns, 1)


def _tables(parts: int, rows: int, dimension: int) -> nn.ParameterList:
    return nn.ParameterList(nn.Parameter(nn.init.xavier_normal_(torch.empty(rows, dimension))) for _ in range(parts))


def _literals(triples: AttributeTriples, settings: LiteraleSettings) -> Tensor:
    """(entities, width) what the gates see of the literals."""
    values, has = triples.table(triples.cells(settings.cell_reduce))
    if settings.missing == "mean":
        return torch.where(has, values, triples.means())
    return torch.cat([values, has.float()], 1) if settings.missing == "mask-channel" else values


# ConvE's query: the vectors of entity and relation as one small picture, convolved and projected back.

FILTERS, SIDE = 32, 3


def picture_shape(dimension: int) -> tuple[int, int]:
    """(height, width) of a vector laid out as a rectangle that is as square as it can be, and not higher than wide."""
    height = next(side for side in range(math.isqrt(dimension), 0, -1) if dimension % side == 0)
    return height, dimension // height


def can_convolve(dimension: int) -> bool:
    """Whether two such pictures, one above the other, are as large as a filter."""
    height, width = picture_shape(dimension)
    return 2 * height >= SIDE and width >= SIDE


class ConvolutionQuery(nn.Module):
    """Two pictures one above the other → normalise → convolve → project."""

    def __init__(self, dimension: int, dropout: float, map_dropout: float, projection_dropout: float) -> None:
        super().__init__()
        self.shape = picture_shape(dimension)
        height, width = self.shape
        self.before = nn.BatchNorm2d(1)
        self.dropout = nn.Dropout(dropout)
        self.convolution = nn.Conv2d(1, FILTERS, SIDE)
        self.of_maps = nn.BatchNorm2d(FILTERS)
        self.map_dropout = nn.Dropout2d(map_dropout)
        self.projection = nn.Linear(FILTERS * (2 * height - SIDE + 1) * (width - SIDE + 1), dimension)
        self.projection_dropout = nn.Dropout(projection_dropout)
        self.after = nn.BatchNorm1d(dimension)

    def forward(self, entity: Tensor, relation: Tensor) -> Tensor:
        """(rows, dimension) from two (rows, dimension)."""
        picture = torch.cat([entity.view(-1, 1, *self.shape), relation.view(-1, 1, *self.shape)], 2)
        maps = self.convolution(self.dropout(self.before(picture)))
        maps = self.map_dropout(torch.relu(self.of_maps(maps)))
        projected = self.projection_dropout(self.projection(maps.flatten(1)))
        return torch.relu(self.after(projected))
