"""One round of messages of `hynt-inductive`, as a reader finds it in the model's description.

A message to a slot of a fact is made of the fact's other slots. Entities and relations attend to themselves and to the
messages they receive; a question attends to itself and to the one message to the slot it asks for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_slots import ROLES, Links
from hynt.batches.message_plan import MessagePlan
from hynt.kernels.dropout import Dropout
from hynt.kernels.other_slots import other_slots
from hynt.kernels.segment_sums import look_up, sum_up

HIGHEST_LOGIT = 30.0
"""Logits of attention are clamped to this: then no maximum need be found, and messages may come in parts."""


def norm(x: Tensor) -> Tensor:
    """Layer norm without parameters, in float32."""
    return functional.layer_norm(x.float(), x.shape[-1:])


def linear(inputs: int, outputs: int, gain: float = 1.0, bias: bool = True) -> nn.Linear:
    """A linear map whose weights start as N(0, gain² / inputs)."""
    made = nn.Linear(inputs, outputs, bias=bias)
    nn.init.normal_(made.weight, std=gain / math.sqrt(inputs))
    if bias:
        nn.init.zeros_(made.bias)
    return made


def apply(layer: nn.Linear, x: Tensor) -> Tensor:
    """(n, outputs) from (n, inputs), in the precision of `x`."""
    bias: Tensor | None = layer.bias
    return functional.linear(x, layer.weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


class Nodes(NamedTuple):
    """Whatever receives messages: entities, then questions for values; relations, then questions for relations."""

    value: Tensor  # (values, d) float32
    relation: Tensor  # (relations, d) float32


class Numbers(NamedTuple):
    """The numbers of a plan as the layers read them."""

    encoded: Tensor  # (numbers, d) X
    relation: Links  # numbers → relation nodes
    unknown: Tensor  # (1, d) what stands for a number of unknown relation


class Drop(NamedTuple):
    """The dropout of one pass."""

    node: Dropout
    message: Dropout


class _Tables(NamedTuple):
    """What slots and messages look up, made once a layer."""

    pair: Tensor  # (·, d) rows of entities by role, then of numbers: A_role LN(E), A'_role X
    relation_pair: Tensor  # (relation nodes × 3, d) B_role LN(R)
    context: Tensor  # (relation nodes × 3, 2d) C_role LN(R)
    own: Tensor  # (·, 2d) D_role of entities, then of numbers


class MessageLayer(nn.Module):
    """Values and relations are both updated from what came in."""

    def __init__(self, dimension: int, heads: int, feedforward: int) -> None:
        super().__init__()
        d, self.heads = dimension, heads
        # Maps that another map's bias or b_role always accompanies have none of their own.
        self.entity_pair = linear(d, 3 * d, bias=False)  # A_head, A_tail, A_qualifier
        self.number_pair = linear(d, 2 * d)  # A' of tails and qualifiers
        self.relation_pair = linear(d, 3 * d)  # B_head, B_tail, B_qualifier
        self.number_scale = linear(d, d)
        self.role_bias = nn.Parameter(torch.randn(ROLES, d) * 0.5 / math.sqrt(d))  # b_role
        self.message_in, self.message_out = linear(d, d, 1.4), linear(d, d, 0.02)
        self.to_value, self.to_relation = linear(d, 2 * d, bias=False), linear(d, 2 * d, bias=False)  # W_kv, W'_kv
        self.relation_context = linear(d, 6 * d, bias=False)  # C_head, C_tail, C_qualifier: a key and a value each
        self.entity_own = linear(d, 4 * d, bias=False)  # D_head, D_qualifier
        self.number_own = linear(d, 2 * d, bias=False)
        self.value_node, self.relation_node = (NodeUpdate(d, feedforward) for _ in range(2))

    def forward(
        self, nodes: Nodes, numbers: Numbers, plans: Sequence[MessagePlan], drop: Drop, kind: torch.dtype
    ) -> Nodes:
        """The nodes after this round, with matrix products in the precision `kind`. Facts may come in several plans
        over the same nodes, one after the other.
        """
        value, relation = norm(nodes.value).to(kind), norm(nodes.relation).to(kind)
        tables = self._tables(value[: plans[0].sizes.entities], relation, numbers)
        of_values = Attention(apply(self.value_node.query_key_value, value), self.heads)
        of_relations = Attention(apply(self.relation_node.query_key_value, relation), self.heads)
        for plan in plans:
            f = self._messages(tables, plan, drop.message)
            heard = apply(self.to_value, f) + look_up(tables.context, plan.context_rows)
            of_values.hear(heard, plan.to_values)
            heard = apply(self.to_relation, f[: plan.relation_messages]) + look_up(tables.own, plan.own_rows)
            of_relations.hear(heard, plan.to_relations)
        return Nodes(
            self.value_node(nodes.value, of_values.outcome(), drop.node),
            self.relation_node(nodes.relation, of_relations.outcome(), drop.node),
        )

    def _tables(self, entity: Tensor, relation: Tensor, numbers: Numbers) -> _Tables:
        d = relation.shape[1]
        scale = look_up(apply(self.number_scale, relation), numbers.relation)
        number = torch.cat([numbers.encoded * (1 + scale), numbers.unknown])
        pair = [apply(self.entity_pair, entity).view(-1, d), apply(self.number_pair, number).view(-1, d)]
        own = [apply(self.entity_own, entity).view(-1, 2 * d), apply(self.number_own, number)]
        return _Tables(
            torch.cat(pair),
            apply(self.relation_pair, relation).view(-1, d),
            apply(self.relation_context, relation).view(-1, 2 * d),
            torch.cat(own),
        )

    def _messages(self, tables: _Tables, plan: MessagePlan, drop: Dropout) -> Tensor:
        """(messages, d) f of each message."""
        kind = tables.pair.dtype
        pair = look_up(tables.pair, plan.value_rows) + look_up(tables.relation_pair, plan.relation_rows)
        role = functional.one_hot(plan.message_role.long(), ROLES).to(kind)
        f = drop((norm(other_slots(pair, plan)) + role @ self.role_bias.to(kind)).to(kind))
        return f + apply(self.message_out, drop(functional.gelu(apply(self.message_in, norm(f).to(kind)))))


class Attention:
    """Softmax over {self, messages} of each node, from its own query, key and value; messages may come in parts."""

    def __init__(self, own: Tensor, heads: int) -> None:
        """`own` (nodes, 3d)."""
        self.kind, self.heads, self.width = own.dtype, heads, own.shape[1] // 3
        self.query, key, value = self._by_head(own, 3)
        self.total = _raised(self.query, key)  # (nodes, heads)
        self.mixed = self.total.unsqueeze(2) * value  # (nodes, heads, d / heads)

    def hear(self, key_value: Tensor, receiver: Links) -> None:
        """Takes in messages with these keys and values, (messages, 2d)."""
        key, value = self._by_head(key_value, 2)
        weight = _raised(look_up(self.query.flatten(1), receiver).view_as(key), key)
        self.total = self.total + sum_up(weight, receiver)
        self.mixed = self.mixed + sum_up((weight.unsqueeze(2) * value).flatten(1), receiver).view_as(self.mixed)

    def outcome(self) -> Tensor:
        """(nodes, d)."""
        return (self.mixed / self.total.unsqueeze(2)).flatten(1).to(self.kind)

    def _by_head(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        return x.float().view(-1, parts, self.heads, self.width // self.heads).unbind(1)


def _raised(query: Tensor, key: Tensor) -> Tensor:
    """(n, heads) exp of scaled products of (n, heads, width)."""
    logit: Tensor = (query * key).sum(-1) * query.shape[-1] ** -0.5
    return logit.clamp(-HIGHEST_LOGIT, HIGHEST_LOGIT).exp()


class NodeUpdate(nn.Module):
    """What attention brings a node, and a feed-forward net, each with a residual connection."""

    def __init__(self, dimension: int, feedforward: int) -> None:
        super().__init__()
        self.query_key_value = linear(dimension, 3 * dimension)
        self.project = linear(dimension, dimension, 0.02)
        self.expand, self.contract = linear(dimension, feedforward, 1.4), linear(feedforward, dimension, 0.02)

    def forward(self, x: Tensor, mixed: Tensor, drop: Dropout) -> Tensor:
        """(nodes, d) float32 the nodes' new states."""
        x = x + drop(apply(self.project, mixed)).float()
        hidden = functional.gelu(apply(self.expand, norm(x).to(mixed.dtype)))
        return x + drop(apply(self.contract, hidden)).float()
