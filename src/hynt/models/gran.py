"""GRAN (Wang, Wang, Lyu and Zhu, Findings of ACL 2021): a transformer over a fact's own graph.

A fact's nodes are its relation, head and tail, and the relation and value of each qualifier; one of them is hidden.
Attention between two nodes is biased by the kind of edge between them: relation–head, relation–tail, relation–qualifier
relation, or qualifier relation–value. Numbers are nodes by their literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Rate, check_heads
from hynt.graph.fact_table import HEAD, RELATION, TAIL, component_count, qualifier_of
from hynt.models.contract import (
    EVERYWHERE,
    READS_A_FACT,
    Candidates,
    Capability,
    EncodedQuestion,
    Part,
    Relations,
    ScaledNumber,
    Tokens,
)
from hynt.models.layers.tokens import LiteralValues, NumberReading, token_rows, token_scores
from hynt.objectives.masked_facts import MaskedComponents
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings, trainable

TINY = 1e-12
"""The authors' ε of layer norms."""


@dataclass(frozen=True)
class GranSettings:
    """The paper's form, in the width that the HyNT paper gave all models."""

    dimension: Count = 256
    layers: Count = 12
    heads: Count = 4
    feedforward: Count = 512
    dropout: Rate = 0.1
    """Of hidden states and of attention weights."""
    edges: Literal["typed", "alike", "none"] = "typed"
    """The paper's GRAN-hete, GRAN-homo (one bias for all kinds of edges) and GRAN-complete (no edges)."""
    instances: Count = 64
    """How many components of one fact are hidden in turn in an epoch; of longer facts so many are drawn."""
    numbers: NumberReading = "argmax"
    unseen: Literal["masked", "mean"] = "masked"
    """What a literal that training lacks is read as: the masked node, which training shows only where it is asked for,
    or the mean of all literals. In the authors' vocabulary it is a literal, of which training says what it is not.
    """

    def __post_init__(self) -> None:
        check_heads(self.dimension, self.heads)


class Gran(nn.Module):
    """One table of nodes serves as input and as output: entities, literals, relations, and the masked node."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (MaskedComponents,)
    reads_several_masks = True
    reads: ClassVar[frozenset[Part]] = READS_A_FACT
    answers: ClassVar[frozenset[Capability]] = EVERYWHERE

    def __init__(self, sizes: Sizes, settings: GranSettings, literals: LiteralValues) -> None:
        super().__init__()
        self.sizes, self.settings, self.literals = sizes, settings, literals
        d = settings.dimension
        self.tokens = sizes.entities + sizes.literals
        self.hidden = self.tokens + sizes.relations  # the row of the masked node
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

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Every component of every fact hidden in turn."""
        stream = MaskedComponents(
            train, settings.batch_size, settings.masking, settings.losses, self.settings.instances
        )
        return [Phase(stream, trainable(self), settings.epochs)]

    def entity_vectors(self) -> Tensor:
        """(nodes, d) what was learned about each entity, then about literals, relations and the masked node."""
        return self.node

    def read(self, batch: MaskedBatch) -> EncodedQuestion:
        """The masked node of each row, as the last layer sees it."""
        rate = self.settings.dropout if self.training else 0.0
        nodes, facts, asked = self._nodes(batch)
        vectors = functional.embedding(nodes, self.node)
        if self.settings.unseen == "mean" and self.sizes.literals and not self.training:
            is_unseen = (nodes == self.hidden).index_fill(0, asked, False)
            mean = self.node[self.sizes.entities : self.tokens].mean(0)
            vectors = torch.where(is_unseen.unsqueeze(1), mean, vectors)
        x = functional.dropout(self.node_norm(vectors), rate, rate > 0)
        for layer in self.layers[:-1]:
            x = layer(x, facts, self.edge_key, self.edge_value)
        x = self.layers[-1](x, facts, self.edge_key, self.edge_value, asked)
        encoded = self.output_norm(functional.gelu(self.transform(x)))
        return EncodedQuestion(encoded, batch.asked_relation())

    def _nodes(self, batch: MaskedBatch) -> tuple[Tensor, list[FactNodes], Tensor]:
        """(nodes,) rows of the table, end to end: relation, head, tail, qualifier relations, qualifier values of each
        fact; how they lie; and (rows,) which of them each row asks for.
        """
        head, tail, value = (
            token_rows(one, self.sizes, self.hidden) for one in (batch.head, batch.tail_entity, batch.qualifier_entity)
        )
        triplet = torch.stack([batch.relation + self.tokens, head, tail], 1)
        key = batch.qualifier_relation + self.tokens  # a masked relation's id leads to the masked node
        nodes, facts, asked, first = [], [], [], 0
        for span in batch.layout.spans():
            size, capacity = span.size, span.capacity
            pairs = [one[span.slots].view(size, capacity) for one in (key, value)]
            nodes.append(torch.cat([triplet[span.rows], *pairs], 1).flatten())
            present = batch.qualifier_present[span.slots].view(size, capacity)
            there = torch.cat([present.new_ones(size, 3), present, present], 1) if capacity else None
            position = batch.asked[span.rows]
            slot, is_value = qualifier_of(position), (position % 2 == 0).long()
            # Positions are head, relation, tail; nodes are relation, head, tail.
            place = torch.where(
                position > TAIL, 3 + slot + is_value * capacity, position - (position == RELATION).long()
            )
            place = torch.where(position == HEAD, 1, place)
            length = component_count(capacity)
            facts.append(FactNodes(size, length, there, self._edges(capacity, place.device), place))
            asked.append(first + torch.arange(size, device=place.device) * length + place)
            first += size * length
        return torch.cat(nodes), facts, torch.cat(asked)

    def _edges(self, capacity: int, device: torch.device) -> Edges | None:
        alike = self.settings.edges == "alike"
        if self.settings.edges == "none":
            return None
        return edges_of(capacity, device, alike=alike) if self.training else kept_edges(capacity, device, alike)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Logits of nodes of the right kind, or the number of a literal that the relation had in training."""
        match candidates:
            case Relations():
                rows, bias = self.node[self.tokens : self.hidden], self.output_bias[self.tokens :]
                return functional.linear(question.encoded, rows, bias)
            case ScaledNumber():
                scores = token_scores(question.encoded, self.node, Tokens(), self.sizes, self.output_bias)
                return self.literals.answer(scores, question.relation, self.settings.numbers)
        return token_scores(question.encoded, self.node, candidates, self.sizes, self.output_bias)


# A transformer layer over a fact's nodes, whose attention is biased by the kind of edge between two nodes (GRAN).

EDGE_KINDS = 4
"""Relation–head, relation–tail, relation–qualifier relation, qualifier relation–value: labels 1 to 4. 0: no edge."""


SHORT = 12
"""Up to so many nodes a GPU is quicker with sums than with matrix products of a few rows, of which it makes little."""


class Edges(NamedTuple):
    """The edges between a fact's nodes, which follow from its length alone."""

    labels: Tensor  # (length, length) int64 kinds of edges
    is_kind: Tensor  # (length, length, EDGE_KINDS) float32 1 where an edge is of a kind


class FactNodes(NamedTuple):
    """Consecutive nodes: `size` facts of `length` nodes each."""

    size: int
    length: int
    present: Tensor | None  # (size, length) bool, false for padding; None where there is none
    edges: Edges | None  # None: no edges at all
    place: Tensor  # (size,) int64 which node of each fact is asked for


def edge_labels(capacity: int, device: torch.device) -> Tensor:
    """(n, n) int64 for the n = 3 + 2·capacity nodes relation, head, tail, qualifier relations, qualifier values."""
    node = torch.arange(component_count(capacity), device=device)
    role = torch.where(node < 3, node, torch.where(node < 3 + capacity, 3, 4))
    pair = torch.where(role == 4, node - capacity, node)  # a qualifier's two nodes share a number
    low = torch.minimum(role.unsqueeze(1), role)
    high = torch.maximum(role.unsqueeze(1), role)
    from_relation = torch.where((low == 0) & (high <= 3), high, 0)
    return torch.where((low == 3) & (high == 4) & (pair.unsqueeze(1) == pair), 4, from_relation)


def edges_of(capacity: int, device: torch.device, *, alike: bool) -> Edges:
    """The edges of facts with so many qualifiers; `alike` makes all kinds the first."""
    labels = edge_labels(capacity, device)
    labels = labels.clamp(max=1) if alike else labels
    kinds = torch.arange(1, EDGE_KINDS + 1, device=device)
    return Edges(labels, (labels.unsqueeze(2) == kinds).float())


@lru_cache(maxsize=16)
def kept_edges(capacity: int, device: torch.device, alike: bool) -> Edges:
    """The same, kept: for answering. A captured training step must own what it reads."""
    return edges_of(capacity, device, alike=alike)


class EdgeLayer(nn.Module):
    """Attention, then a feed-forward net; after each a residual connection and a layer norm."""

    def __init__(self, dimension: int, heads: int, feedforward: int, dropout: float, epsilon: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.projection = nn.Linear(dimension, 3 * dimension)  # queries, keys, values
        self.output = nn.Linear(dimension, dimension)
        self.expand = nn.Linear(dimension, feedforward)
        self.contract = nn.Linear(feedforward, dimension)
        self.attention_norm = nn.LayerNorm(dimension, eps=epsilon)
        self.feedforward_norm = nn.LayerNorm(dimension, eps=epsilon)

    def forward(
        self,
        nodes: Tensor,
        facts: Sequence[FactNodes],
        edge_key: Tensor,
        edge_value: Tensor,
        asked: Tensor | None = None,
    ) -> Tensor:
        """(nodes, dimension) from the same; `edge_key` and `edge_value` (EDGE_KINDS, width of a head).

        With `asked`, (rows,) numbers of nodes, one per fact: (rows, dimension) of these alone, which is all that the
        last layer need make.
        """
        rate = self.dropout if self.training else 0.0
        projected = self.projection(nodes)
        mixed, at, row = [], 0, 0
        for fact in facts:
            end = at + fact.size * fact.length
            query, key, value = projected[at:end].view(fact.size, fact.length, 3, self.heads, -1).unbind(2)
            edges = fact.edges
            if asked is not None:
                mine = projected[asked[row : row + fact.size]].view(fact.size, 1, 3, self.heads, -1)
                query, row = mine[:, :, 0], row + fact.size
                edges = None if edges is None else Edges(*(one[fact.place].unsqueeze(1) for one in edges))
            attended_by = attended_written_out if nodes.is_cuda and fact.length <= SHORT else attended
            found = attended_by(query, key, value, fact.present, edges, edge_key, edge_value, rate)
            mixed.append(found.flatten(0, 1).flatten(1))
            at = end
        outcome = self.output(torch.cat(mixed))
        source = nodes if asked is None else nodes[asked]
        middle = self.attention_norm(source + functional.dropout(outcome, rate, rate > 0))
        changed = self.contract(functional.gelu(self.expand(middle)))
        result: Tensor = self.feedforward_norm(middle + functional.dropout(changed, rate, rate > 0))
        return result


def attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    present: Tensor | None,
    edges: Edges | None,
    edge_key: Tensor,
    edge_value: Tensor,
    rate: float,
) -> Tensor:
    """(size, queries, heads, width) from queries of that shape: weights by q·(k + E_key), outcome Σ weight·(v + E_val).

    A node has few kinds of edges, so q·E_key is computed once a kind and looked up, and weights are summed by kind
    before they meet E_value: nothing of the size length² × width is ever made. `edges` are of all nodes, or of the one
    node that each fact asks for, with facts first.
    """
    scores = torch.einsum("nqhw,nkhw->nhqk", query, key)
    if edges is not None:
        by_kind = functional.pad(torch.einsum("nqhw,lw->nhql", query, edge_key.to(query.dtype)), (1, 0))
        labels = edges.labels if edges.labels.dim() == 2 else edges.labels.unsqueeze(1)
        scores = scores + by_kind.gather(3, labels.expand(*by_kind.shape[:3], -1))
    scores = scores.float() * query.shape[-1] ** -0.5
    if present is not None:
        scores = scores.masked_fill(~present[:, None, None, :], float("-inf"))
    weights = functional.dropout(scores.softmax(-1), rate, rate > 0).to(value.dtype)
    mixed = torch.einsum("nhqk,nkhw->nqhw", weights, value)
    if edges is None:
        return mixed
    is_kind = edges.is_kind.to(weights.dtype)
    shares = torch.einsum("nhqk,qkl->nqhl" if is_kind.dim() == 3 else "nhqk,nqkl->nqhl", weights, is_kind)
    return mixed + shares @ edge_value.to(weights.dtype)


def attended_written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    present: Tensor | None,
    edges: Edges | None,
    edge_key: Tensor,
    edge_value: Tensor,
    rate: float,
) -> Tensor:
    """The same for short facts, by plain sums over pairs of nodes, which a compiler makes a few kernels of. Where
    nothing is compiled, all pairs are held: length² × width for each fact.
    """
    keys, values = key.unsqueeze(1), value.unsqueeze(1)  # (size, 1, length, heads, width)
    if edges is not None:
        # Rows of label 0, no edge, are zero. (…, queries, length, 1, width) for all heads alike.
        of_key, of_value = (
            functional.pad(one, (0, 0, 1, 0))[edges.labels].unsqueeze(-2).to(key.dtype)
            for one in (edge_key, edge_value)
        )
        keys, values = keys + of_key, values + of_value
    scores = (query.unsqueeze(2) * keys).sum(-1).float() * query.shape[-1] ** -0.5  # (size, queries, length, heads)
    if present is not None:
        scores = scores.masked_fill(~present[:, None, :, None], float("-inf"))
    weights = functional.dropout(scores.softmax(2), rate, rate > 0).to(value.dtype)
    return (weights.unsqueeze(-1) * values).sum(2)
