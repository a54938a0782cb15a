"""One layer of `hynt-inductive`, as its description has it: messages, attention, feed-forward net.

A message to a slot of a fact is made from the other slots of the fact. Entities and relations attend to themselves and
to the messages they receive; a question attends to itself and to the one message to the slot it asks for. Numbers are
read as the value, its logarithm, its rank within its relation, and codes of all three. In addition, or instead where
the relation is asked for, they are read as they stand in the graph: by sign, magnitude and digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_slots import ROLES, Links, NumberRows
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.message_plan import MessagePlan, Received, plan_observed
from hynt.kernels.device import Beside, kernels_serve
from hynt.kernels.dropout import Dropout
from hynt.kernels.linear_maps import added_and_normed, apply, apply_all, is_lowered, norm_in
from hynt.kernels.segment_sums import look_up, other_slots, scaled, sum_up

VALUE_CODES, RANK_CODES, LOG_CODES, WAVES = 32, 16, 8, 6

FEATURES = 3 + VALUE_CODES + RANK_CODES + LOG_CODES + 2 * WAVES
"""How many numbers stand for a number."""

APART = 4.0
"""How far apart relations lie on the one line on which ranks are looked up; values are clamped to [−1, 2]."""


class NumberFeatures(nn.Module):
    """φ(v) of scaled numbers. Ranks are among the values that each relation had when this was made."""

    line: Tensor  # (values,) float64 relation × APART + value, sorted
    begin: Tensor  # (relations + 1,) int64 where each relation's values begin on the line

    def __init__(self, relations: int, relation: Tensor, value: Tensor) -> None:
        """From (values,) int64 relations and (values,) float32 scaled numbers."""
        super().__init__()
        line, _ = torch.sort(_on_line(relation, value))
        ends = torch.arange(relations + 1, device=value.device, dtype=torch.float64) * APART - APART / 2
        self.register_buffer("line", line, persistent=False)
        self.register_buffer("begin", torch.searchsorted(line, ends), persistent=False)

    def known(self, relation: Tensor) -> Tensor:
        """(n,) bool: relations whose numbers have been seen; others have no ranks."""
        return self.begin[relation + 1] > self.begin[relation]

    def forward(self, relation: Tensor, value: Tensor) -> Tensor:
        """(n, FEATURES) float32 from (n,) int64 and (n,) float32."""
        place = _on_line(relation, value)
        first, last = self.begin[relation], self.begin[relation + 1]
        left, right = torch.searchsorted(self.line, place), torch.searchsorted(self.line, place, right=True)
        rank = ((left + right - 2 * first) / (2 * (last - first)).clamp(min=1)).float().clamp(0, 1)
        logarithm = torch.log10(value.clamp(min=1e-6)) / 6 + 1
        angle = 2 * math.pi * value.unsqueeze(1) * 2 ** torch.arange(WAVES, device=value.device)
        waves = torch.stack([angle.sin(), angle.cos()], 2).flatten(1)
        plain = torch.stack([value, logarithm, rank], 1)
        codes = [_codes(value, VALUE_CODES), _codes(rank, RANK_CODES), _codes(logarithm, LOG_CODES)]
        return torch.cat([plain, *codes, waves], 1)


LEAST_POWER, POWERS, STEPS_OF_POWER = -4, 18, 4
"""Magnitudes from 10⁻⁴ to 10¹⁴, four codes per power of ten."""

DIGITS = 10
"""Whether 1,000 times the number is whole, 100 times, …, a millionth."""

PLAIN_WAVES = 6

PLAIN_FEATURES = 3 + DIGITS + POWERS * STEPS_OF_POWER + 2 * 40 + 2 * PLAIN_WAVES + 8
"""How many numbers stand for a number as it is in the graph."""


def plain_features(value: Tensor) -> Tensor:
    """(n, PLAIN_FEATURES) float32 from (n,) float64 numbers in the graph's unit: the same whatever their relation.

    Beside the magnitude these are steps of 10 from −200 to 200 (degrees, shares) and of 15 from 1450 to 2050 (years).
    """
    device, size = value.device, value.abs()
    power = torch.log10(size.clamp(min=10.0**LEAST_POWER, max=10.0 ** (LEAST_POWER + POWERS)))
    parts = value.unsqueeze(1) * 10.0 ** torch.arange(3, 3 - DIGITS, -1, device=device, dtype=torch.float64)
    whole = (parts - parts.round()).abs() <= 1e-9 * parts.abs().clamp(min=1e-3)
    angle = 2 * math.pi * power.unsqueeze(1) * 2.0 ** torch.arange(-2, PLAIN_WAVES - 2, device=device)
    turn = 2 * math.pi * value.clamp(-1e12, 1e12).unsqueeze(1) / 10.0 ** torch.arange(4, device=device)
    found = [
        torch.stack([value.sign(), value.sign() * (power - LEAST_POWER) / POWERS, power / 8], 1),
        whole,
        _codes((power - LEAST_POWER) / POWERS, POWERS * STEPS_OF_POWER),
        _codes(value.clamp(-1e3, 1e3) / 400 + 0.5, 40),
        _codes((value.clamp(0, 4e3) - 1450) / 600, 40),
        angle.sin(),
        angle.cos(),
        turn.sin(),
        turn.cos(),
    ]
    return torch.cat([one.float() for one in found], 1)


def _on_line(relation: Tensor, value: Tensor) -> Tensor:
    return relation.double() * APART + value.double().clamp(-1, 2) - 0.5


def _codes(x: Tensor, count: int) -> Tensor:
    """(n, count): code k rises from 0 to 1 while x does from k/count to (k + 1)/count."""
    return (x.unsqueeze(1) * count - torch.arange(count, device=x.device)).clamp(0, 1)


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


class Nodes(NamedTuple):
    """Whatever receives messages: entities, then questions for values; relations, then questions for relations."""

    value: Tensor  # (values, d) float32
    relation: Tensor  # (relations, d) float32

    def normed(self, kind: torch.dtype) -> Nodes:
        """The same after `norm`, in the precision `kind`."""
        return Nodes(norm_in(self.value, kind), norm_in(self.relation, kind))


class Numbers(NamedTuple):
    """The numbers of a plan as the layers read them."""

    encoded: Tensor  # (numbers, d) X
    relation: Links  # numbers → relation nodes
    bare: Tensor  # (bare + 1, d) numbers read without their relation, and last just "a number"


class Parts(Protocol):
    """Facts in parts, each with the numbers that it reads."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[MessagePlan, Numbers]]: ...


ReadNumbers = Callable[[Tensor, Tensor, Tensor, Links], Numbers]
"""From relations, scaled numbers, these as the graph has them, (n,) each, and the relation nodes of each."""


class FactParts:
    """The facts at some rows in parts, ready for a layer, each with its own numbers."""

    def __init__(self, read: ReadNumbers, facts: FactTensors, rows: Sequence[Tensor], kept: int) -> None:
        """`rows` (k,) int64 of each part, of which the first `kept` are made once; `read` makes the numbers."""
        self._read, self._facts, self._rows, self._numbers = read, facts, rows, NumberRows.of(facts)
        self._kept = [self._made(one) for one in rows[:kept]]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[MessagePlan, Numbers]]:
        yield from self._kept
        for rows in self._rows[len(self._kept) :]:
            yield self._made(rows)

    def _made(self, rows: Tensor) -> tuple[MessagePlan, Numbers]:
        numbers = self._numbers.of_facts(self._facts, rows)[0].distinct()
        nodes = Links.of(numbers.relation, self._facts.sizes.relations)
        read = self._read(numbers.relation, numbers.value, numbers.plain, nodes)
        return plan_observed(self._facts, numbers, rows), read


class Drop(NamedTuple):
    """The dropout of one pass."""

    node: Dropout
    message: Dropout


class Pairs(NamedTuple):
    """What each slot contributes to the messages of its fact: P = A_role LN(E) + B_role LN(R), the two halves apart."""

    entity: Tensor  # (entities, 3d) A_role LN(E)
    number: Tensor  # (numbers + bare + 1, 2d) A'_role X as tail, as qualifier
    relation: Tensor  # (relation nodes, 3d) B_role LN(R)


class MessageLayer(nn.Module):
    """Values and relations are both updated, from the states before the layer."""

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

    def forward(self, nodes: Nodes, normed: Nodes, entities: int, parts: Parts, drop: Drop) -> tuple[Nodes, Nodes]:
        """The nodes after this round, and these normed. `normed` says in which precision matrix products are. Of the
        value nodes the first `entities` are read by facts, which may come in several parts, one after the other.
        """
        value_maps = [self.value_node.query_key_value, self.entity_pair, self.entity_own]
        counts = [len(normed.value), entities, entities]
        own_values, entity_pair, entity_own = apply_all(value_maps, normed.value, counts)
        own = self.relation_node.query_key_value
        relation_maps = [own, self.relation_pair, self.relation_context, self.number_scale]
        own_relations, relation_pair, context, scale = apply_all(relation_maps, normed.relation, waits=True)
        of_values, of_relations = (NodeAttention(one, self.heads, len(parts)) for one in (own_values, own_relations))
        # Relations are small work beside that on values; plain forms would let go of what a branch still reads.
        branch = Beside(own_relations.device, wanted=of_relations.by_kernel)
        for plan, numbers in parts:
            number = scaled(numbers.encoded, scale, numbers.relation, numbers.bare)
            number_pair, number_own = apply_all([self.number_pair, self.number_own], number)
            pairs = Pairs(entity_pair, number_pair, relation_pair)
            to_values, to_relations = self._keys_and_values(pairs, plan, drop.message)
            with branch.reading(to_relations, own_relations, entity_own, number_own):
                of_relations.receive(to_relations, (entity_own, number_own), plan.received_by_relations)
            of_values.receive(to_values, (context,), plan.received_by_values, is_lowered(self.message_in))
        with branch.reading(nodes.relation, self.relation_node.project.weight, drop.node.drawn, waits=False):
            relation, relation_normed = self.relation_node(nodes.relation, of_relations.outcome(), drop.node)
        value, value_normed = self.value_node(nodes.value, of_values.outcome(), drop.node)
        branch.join(relation, relation_normed)
        return Nodes(value, relation), Nodes(value_normed, relation_normed)

    def _keys_and_values(self, pairs: Pairs, plan: MessagePlan, drop: Dropout) -> tuple[Tensor, Tensor]:
        """W_kv f (messages, 2d) of all messages and W'_kv f of those that relations receive."""
        kind, d = pairs.relation.dtype, self.role_bias.shape[1]
        if kernels_serve(pairs.relation, d):
            return self._fast_keys_and_values(pairs, plan, drop)
        of_values = torch.cat([pairs.entity.view(-1, d), pairs.number.view(-1, d)])
        pair = look_up(of_values, plan.value_rows) + look_up(pairs.relation.view(-1, d), plan.relation_rows)
        role = functional.one_hot(plan.message_role.long(), ROLES).to(kind)
        f = drop((norm(other_slots(pair, plan)) + role @ self.role_bias.to(kind)).to(kind))
        f = f + apply(self.message_out, drop(functional.gelu(apply(self.message_in, norm(f).to(kind)))))
        return apply(self.to_value, f), apply(self.to_relation, f[: plan.relation_messages])

    def _fast_keys_and_values(self, pairs: Pairs, plan: MessagePlan, drop: Dropout) -> tuple[Tensor, Tensor]:
        from hynt.kernels.fact_message_kernel import KeysAndValues

        weights: list[Tensor] = [
            self.role_bias,
            self.message_in.weight,
            self.message_in.bias,
            self.message_out.weight,
            self.message_out.bias,
            self.to_value.weight,
            self.to_relation.weight,
        ]
        cast, aside = [one.to(pairs.relation.dtype) for one in weights], is_lowered(self.message_in)
        found: tuple[Tensor, Tensor] = KeysAndValues.apply(
            *pairs, *cast, plan, drop.keys(), drop.keys(), drop.rate, aside
        )  # type: ignore[no-untyped-call]
        return found


class NodeAttention:
    """Softmax over {self, messages} of each node, from its own query, key and value; messages may come in parts."""

    def __init__(self, own: Tensor, heads: int, parts: int) -> None:
        """`own` (nodes, 3d)."""
        self.own, self.heads, self.width = own, heads, own.shape[1] // 3
        self.by_kernel = parts == 1 and kernels_serve(own, self.width)
        if not self.by_kernel:
            self.query, key, value = self._by_head(own, 3)
            self.total = _raised(self.query, key)  # (nodes, heads)
            self.mixed = self.total.unsqueeze(2) * value  # (nodes, heads, d / heads)

    def receive(self, key_value: Tensor, context: tuple[Tensor, ...], received: Received, aside: bool = False) -> None:
        """Takes in messages (messages, 2d), each beside a row of the context: of one or two tables whose rows of 2d
        numbers are counted one after the other; `aside`: their gradients are waited for.
        """
        tables, receiver = [one.view(-1, 2 * self.width) for one in context], received.receiver
        if self.by_kernel:
            from hynt.kernels.segment_kernel import SegmentAttention

            both = (*tables, None)[:2]
            self.mixed = SegmentAttention.apply(self.own, key_value, *both, *received, self.heads, aside)  # type: ignore[no-untyped-call]
            return
        key, value = self._by_head(key_value + look_up(torch.cat(tables), received.rows), 2)
        weight = _raised(look_up(self.query.flatten(1), receiver).view_as(key), key)
        self.total = self.total + sum_up(weight, receiver)
        self.mixed = self.mixed + sum_up((weight.unsqueeze(2) * value).flatten(1), receiver).view_as(self.mixed)

    def outcome(self) -> Tensor:
        """(nodes, d)."""
        if self.by_kernel:
            return self.mixed
        return (self.mixed / self.total.unsqueeze(2)).flatten(1).to(self.own.dtype)

    def _by_head(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        return x.float().view(-1, parts, self.heads, self.width // self.heads).unbind(1)


def _raised(query: Tensor, key: Tensor) -> Tensor:
    """(n, heads) exp of scaled products of (n, heads, width)."""
    logit: Tensor = (query * key).sum(-1) * query.shape[-1] ** -0.5
    return logit.clamp(-HIGHEST_LOGIT, HIGHEST_LOGIT).exp()


class NodeUpdate(nn.Module):
    """Adds to a node what attention brings, then a feed-forward net, each with a residual connection."""

    def __init__(self, dimension: int, feedforward: int) -> None:
        super().__init__()
        self.query_key_value = linear(dimension, 3 * dimension)
        self.project = linear(dimension, dimension, 0.02)
        self.expand, self.contract = linear(dimension, feedforward, 1.4), linear(feedforward, dimension, 0.02)

    def forward(self, x: Tensor, mixed: Tensor, drop: Dropout) -> tuple[Tensor, Tensor]:
        """(nodes, d) the nodes' new states, float32, and these normed."""
        x, normed = added_and_normed(x, apply(self.project, mixed), drop)
        return added_and_normed(x, apply(self.contract, functional.gelu(apply(self.expand, normed))), drop)
