"""GRAN (Wang, Wang, Lyu and Zhu, Findings of ACL 2021): a transformer over a fact's own graph.

A fact's nodes are its relation, head and tail, and the relation and value of each qualifier; one of them is hidden.
Attention between two nodes is biased by the kind of edge between them: relation–head, relation–tail, relation–qualifier
relation, or qualifier relation–value. Numbers are nodes by their literals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.constraints import Range
from hynt.models.contract import (
    EVERYWHERE,
    Candidates,
    Capability,
    ItemStream,
    Number,
    Part,
    Question,
    Relations,
    Tokens,
)
from hynt.models.layers.edge_attention import EDGE_KINDS, EdgeLayer, Edges, FactNodes, edges_of, kept_edges
from hynt.models.layers.literal_values import LiteralValues
from hynt.models.layers.token_scores import NumberAnswer, token_rows, token_scores

Count = Annotated[int, Range(1)]
TINY = 1e-12
"""The authors' ε of layer norms."""


@dataclass(frozen=True)
class GranSettings:
    """The paper's form, in the width that the HyNT paper gave all models."""

    dimension: Count = 256
    layers: Count = 12
    heads: Count = 4
    feedforward: Count = 512
    dropout: Annotated[float, Range(0, 1, below_maximum=True)] = 0.1
    """Of hidden states and of attention weights."""
    edges: Literal["typed", "alike", "none"] = "typed"
    """The paper's GRAN-hete, GRAN-homo (one bias for all kinds of edges) and GRAN-complete (no edges)."""
    instances: Count = 64
    """How many components of one fact are hidden in turn in an epoch; of longer facts so many are drawn."""
    numbers: NumberAnswer = "argmax"

    def __post_init__(self) -> None:
        if self.dimension % self.heads:
            raise ValueError(f"the dimension {self.dimension} cannot be shared among {self.heads} heads")


class Gran(nn.Module):
    """One table of nodes serves as input and as output: entities, literals, relations, and the hidden node."""

    item_stream: ClassVar[ItemStream] = ItemStream.MASKED_COMPONENTS
    reads: ClassVar[frozenset[Part]] = frozenset(Part)
    answers: ClassVar[frozenset[Capability]] = EVERYWHERE

    def __init__(self, sizes: Sizes, settings: GranSettings, literals: LiteralValues) -> None:
        super().__init__()
        self.sizes, self.settings, self.literals = sizes, settings, literals
        self.instances = settings.instances
        d = settings.dimension
        self.tokens = sizes.entities + sizes.literals
        self.hidden = self.tokens + sizes.relations  # the row of the hidden node
        self.node = nn.Parameter(torch.empty(self.hidden + 1, d))
        self.node_norm = nn.LayerNorm(d, eps=TINY)
        width = d // settings.heads
        # Shared by all layers and heads. Nodes without an edge get no bias, so there is no row for them.
        self.edge_key = nn.Parameter(torch.empty(EDGE_KINDS, width))
        self.edge_value = nn.Parameter(torch.empty(EDGE_KINDS, width))
        self.layers = nn.ModuleList(
            EdgeLayer(d, settings.heads, settings.feedforward, settings.dropout, TINY) for _ in range(settings.layers)
        )
        self.transform = nn.Linear(d, d)
        self.output_norm = nn.LayerNorm(d, eps=TINY)
        self.output_bias = nn.Parameter(torch.zeros(self.hidden))
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.trunc_normal_(parameter, std=0.02, a=-0.04, b=0.04)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: GranSettings) -> Gran:
        """A new model; of the training facts it keeps which literals each relation has."""
        return cls(sizes, settings, LiteralValues.of(train))

    def read(self, batch: MaskedBatch) -> Question:
        """The hidden node of each row, as the last layer sees it."""
        rate = self.settings.dropout if self.training else 0.0
        nodes, facts, asked = self._nodes(batch)
        x = functional.dropout(self.node_norm(functional.embedding(nodes, self.node)), rate, rate > 0)
        for layer in self.layers[:-1]:
            x = layer(x, facts, self.edge_key, self.edge_value)
        x = self.layers[-1](x, facts, self.edge_key, self.edge_value, asked)
        encoded = self.output_norm(functional.gelu(self.transform(x)))
        return Question(encoded, batch.asked_relation())

    def _nodes(self, batch: MaskedBatch) -> tuple[Tensor, list[FactNodes], Tensor]:
        """(nodes,) rows of the table, end to end: relation, head, tail, qualifier relations, qualifier values of each
        fact; how they lie; and (rows,) which of them each row asks for.
        """
        head, tail, value = (
            token_rows(one, self.sizes, self.hidden) for one in (batch.head, batch.tail_entity, batch.qualifier_entity)
        )
        triplet = torch.stack([batch.relation + self.tokens, head, tail], 1)
        key = batch.qualifier_relation + self.tokens  # a hidden relation's id leads to the hidden node
        nodes, facts, asked, first = [], [], [], 0
        for span in batch.layout.spans():
            size, capacity = span.size, span.capacity
            pairs = [one[span.slots].view(size, capacity) for one in (key, value)]
            nodes.append(torch.cat([triplet[span.rows], *pairs], 1).flatten())
            present = batch.qualifier_present[span.slots].view(size, capacity)
            there = torch.cat([present.new_ones(size, 3), present, present], 1) if capacity else None
            position = batch.asked[span.rows]
            slot, is_value = (position - 3) // 2, (position % 2 == 0).long()
            # Positions are head, relation, tail; nodes are relation, head, tail.
            place = torch.where(position > 2, 3 + slot + is_value * capacity, position - (position == 1).long())
            place = torch.where(position == 0, 1, place)
            facts.append(FactNodes(size, 3 + 2 * capacity, there, self._edges(capacity, place.device), place))
            asked.append(first + torch.arange(size, device=place.device) * (3 + 2 * capacity) + place)
            first += size * (3 + 2 * capacity)
        return torch.cat(nodes), facts, torch.cat(asked)

    def _edges(self, capacity: int, device: torch.device) -> Edges | None:
        alike = self.settings.edges == "alike"
        if self.settings.edges == "none":
            return None
        return edges_of(capacity, device, alike=alike) if self.training else kept_edges(capacity, device, alike)

    def score(self, question: Question, candidates: Candidates) -> Tensor:
        """Logits of nodes of the right kind, or the number of a literal that the relation had in training."""
        match candidates:
            case Relations():
                rows, bias = self.node[self.tokens : self.hidden], self.output_bias[self.tokens :]
                return functional.linear(question.encoded, rows, bias)
            case Number():
                scores = token_scores(question.encoded, self.node, Tokens(), self.sizes, self.output_bias)
                return self.literals.answer(scores, question.relation, self.settings.numbers)
        return token_scores(question.encoded, self.node, candidates, self.sizes, self.output_bias)
