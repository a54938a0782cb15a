"""A transformer layer over a fact's nodes, whose attention is biased by the kind of edge between two nodes (GRAN)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

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
    node = torch.arange(3 + 2 * capacity, device=device)
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

        With `asked`, (rows,) numbers of nodes, one a fact: (rows, dimension) of these alone, which is all that the last
        layer need make.
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
