"""A transformer layer over a fact's nodes, whose attention is biased by the kind of edge between two nodes (GRAN)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

EDGE_KINDS = 4
"""Relation–head, relation–tail, relation–qualifier relation, qualifier relation–value: labels 1 to 4. 0: no edge."""


class FactNodes(NamedTuple):
    """Consecutive nodes: `size` facts of `length` nodes each."""

    size: int
    length: int
    present: Tensor | None  # (size, length) bool, false for padding; None where there is none
    labels: Tensor | None  # (length, length) int64 kinds of edges; None: no edges at all


def edge_labels(capacity: int, device: torch.device) -> Tensor:
    """(n, n) int64 for the n = 3 + 2·capacity nodes relation, head, tail, qualifier relations, qualifier values."""
    node = torch.arange(3 + 2 * capacity, device=device)
    role = torch.where(node < 3, node, torch.where(node < 3 + capacity, 3, 4))
    pair = torch.where(role == 4, node - capacity, node)  # a qualifier's two nodes share a number
    low = torch.minimum(role.unsqueeze(1), role)
    high = torch.maximum(role.unsqueeze(1), role)
    from_relation = torch.where((low == 0) & (high <= 3), high, 0)
    return torch.where((low == 3) & (high == 4) & (pair.unsqueeze(1) == pair), 4, from_relation)


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

    def forward(self, nodes: Tensor, facts: Sequence[FactNodes], edge_key: Tensor, edge_value: Tensor) -> Tensor:
        """(nodes, dimension) from the same; `edge_key` and `edge_value` (EDGE_KINDS, width of a head)."""
        rate = self.dropout if self.training else 0.0
        projected = self.projection(nodes)
        mixed, at = [], 0
        for fact in facts:
            end = at + fact.size * fact.length
            query, key, value = projected[at:end].view(fact.size, fact.length, 3, self.heads, -1).unbind(2)
            found = _attended(query, key, value, fact, edge_key, edge_value, rate)
            mixed.append(found.flatten(0, 1).flatten(1))
            at = end
        attended = self.output(torch.cat(mixed))
        middle = self.attention_norm(nodes + functional.dropout(attended, rate, rate > 0))
        changed = self.contract(functional.gelu(self.expand(middle)))
        result: Tensor = self.feedforward_norm(middle + functional.dropout(changed, rate, rate > 0))
        return result


def _attended(
    query: Tensor, key: Tensor, value: Tensor, fact: FactNodes, edge_key: Tensor, edge_value: Tensor, rate: float
) -> Tensor:
    """(size, length, heads, width) from the same: weights by q·(k + E_key), outcome Σ weight·(v + E_value).

    A node has few kinds of edges, so q·E_key is computed once a kind and looked up, and weights are summed by kind
    before they meet E_value: nothing of the size length² × width is ever made.
    """
    scores = torch.einsum("nqhw,nkhw->nhqk", query, key)
    if fact.labels is not None:
        by_kind = functional.pad(torch.einsum("nqhw,lw->nhql", query, edge_key.to(query.dtype)), (1, 0))
        scores = scores + by_kind.gather(3, fact.labels.expand(*by_kind.shape[:3], -1))
    scores = scores.float() * query.shape[-1] ** -0.5
    if fact.present is not None:
        scores = scores.masked_fill(~fact.present[:, None, None, :], float("-inf"))
    weights = functional.dropout(scores.softmax(-1), rate, rate > 0).to(value.dtype)
    mixed = torch.einsum("nhqk,nkhw->nqhw", weights, value)
    if fact.labels is None:
        return mixed
    kinds = torch.arange(1, EDGE_KINDS + 1, device=weights.device)
    is_kind = (fact.labels.unsqueeze(2) == kinds).to(weights.dtype)  # (length, length, kinds)
    shares = torch.einsum("nhqk,qkl->nqhl", weights, is_kind)
    return mixed + shares @ edge_value.to(weights.dtype)
