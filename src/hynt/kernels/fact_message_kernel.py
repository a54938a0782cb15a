"""Messages of facts: one kernel gathers and norms, one is the feed-forward net.

The first gathers the pairs of each message's other slots from the tables of entities, numbers and relations, so no pair
is ever stored, and what stands in the receiving slot is never read. The second works on tiles of messages. On the way
back it makes its inside again, and sums over facts and then over whoever looked into a row follow, sorted.
The plain twin is `MessageLayer._keys_and_values`. Import this module only where Triton is installed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from hynt.batches.message_plan import MessagePlan
from hynt.kernels.device import Aside
from hynt.kernels.dropout import limit_and_growth
from hynt.kernels.dropout_kernel import is_kept_pair
from hynt.kernels.linear_kernel import column_sums, gradients_of_maps
from hynt.kernels.linear_maps import go_together
from hynt.kernels.segment_kernel import summed_by_kernel


class NetShape(NamedTuple):
    """How the work of the net is cut."""

    tile: int  # messages of a program
    block: int  # hidden units that it looks at together
    warps: int
    stages: int


NET, NET_BACK = NetShape(64, 32, 4, 2), NetShape(64, 64, 4, 1)
"""In bf16; the best of those tried on an H200 at width 128."""

REGISTERS = 168
"""Of a thread of the net in bf16, at widths up to 128. Where the number of messages is no multiple of 16, the compiler
would take 193: then two programs fit a processor instead of three.
"""

EXACT, EXACT_BACK = NetShape(64, 32, 4, 1), NetShape(16, 16, 4, 1)
"""In float32. There products are made of three of shorter numbers each, which is as exact and twice as fast."""


SLOTS = 16
"""Messages or slots that a program looks at together where it only gathers."""

FEW = 4
"""Other slots that are read one after the other; beyond, so many are read at once."""

EPSILON = 1e-5


@triton.jit  # type: ignore[untyped-decorator]
def _normed(x, epsilon, width: tl.constexpr):  # type: ignore[no-untyped-def]
    """Layer norm without parameters, and the factor it took."""
    centred = x - (tl.sum(x, 1) / width)[:, None]
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, 1) / width + epsilon)
    return centred * inverse[:, None], inverse


@triton.jit  # type: ignore[untyped-decorator]
def _normed_back(outer, normed, inverse, width: tl.constexpr):  # type: ignore[no-untyped-def]
    along = (tl.sum(outer * normed, 1) / width)[:, None]
    return (outer - (tl.sum(outer, 1) / width)[:, None] - normed * along) * inverse[:, None]


@triton.jit
def _phi(x):  # type: ignore[no-untyped-def]
    """The share of a normal distribution below x, and exp(−x²/2).

    By Abramowitz and Stegun 7.1.26, within 1.5e-7: half the work of a library's, and both need the same power.
    """
    power = tl.exp2(-0.7213475204444817 * x * x)  # half the logarithm of e to base 2: e^(−x²/2)
    t = 1 / (1 + 0.23164189 * tl.abs(x))
    tail = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * power
    return tl.where(x > 0, 1 - 0.5 * tail, 0.5 * tail), power


@triton.jit  # type: ignore[untyped-decorator]
def _gather(  # type: ignore[no-untyped-def]
    entity_pair, number_pair, relation_pair, message_slot, slot_first, slot_stop, slot_value, slot_relation,
    summed, scale, messages, entity_rows, epsilon,
    width: tl.constexpr, tile: tl.constexpr, few: tl.constexpr, numbers: tl.constexpr,
):
    """The pairs of each message's other slots, added up in the fact's order and normed."""
    row, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    there = row < messages
    slot = tl.load(message_slot + row, there, 0)
    first, stop = tl.load(slot_first + slot, there, 0), tl.load(slot_stop + slot, there, 0)
    x = tl.zeros([tile, width], tl.float32)
    others = tl.max(stop - first, 0) - 1
    for nth in range(tl.minimum(others, few)):
        other = first + nth
        other += (other >= slot).to(tl.int32)  # all slots of the fact but its own
        reads = there & (other < stop)
        relation = tl.load(slot_relation + other, reads, 0).to(tl.int64)
        value = tl.load(slot_value + other, reads, 0).to(tl.int64)
        x += tl.load(relation_pair + relation[:, None] * width + column[None, :], reads[:, None], 0.0).to(tl.float32)
        of_entity = reads
        if numbers:
            of_number = reads & (value >= entity_rows)
            of_entity = reads & (value < entity_rows)
            at = number_pair + (value - entity_rows)[:, None] * width + column[None, :]
            x += tl.load(at, of_number[:, None], 0.0).to(tl.float32)
        x += tl.load(entity_pair + value[:, None] * width + column[None, :], of_entity[:, None], 0.0).to(tl.float32)
    for start in range(few, others, few):  # the rare long facts, several slots at once
        other = first[:, None] + start + tl.arange(0, few)[None, :]
        other += (other >= slot[:, None]).to(tl.int32)
        reads = there[:, None] & (other < stop[:, None])
        relation = tl.load(slot_relation + other, reads, 0).to(tl.int64)
        value = tl.load(slot_value + other, reads, 0).to(tl.int64)
        at = relation_pair + relation[:, :, None] * width + column[None, None, :]
        x += tl.sum(tl.load(at, reads[:, :, None], 0.0).to(tl.float32), 1)
        of_entity = reads
        if numbers:
            of_number = reads & (value >= entity_rows)
            of_entity = reads & (value < entity_rows)
            at = number_pair + (value - entity_rows)[:, :, None] * width + column[None, None, :]
            x += tl.sum(tl.load(at, of_number[:, :, None], 0.0).to(tl.float32), 1)
        at = entity_pair + value[:, :, None] * width + column[None, None, :]
        x += tl.sum(tl.load(at, of_entity[:, :, None], 0.0).to(tl.float32), 1)
    x, inverse = _normed(x, epsilon, width)
    at = row.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(summed + at, x.to(summed.dtype.element_ty), there[:, None])
    tl.store(scale + row, inverse, there)


@triton.jit  # type: ignore[untyped-decorator]
def _net(  # type: ignore[no-untyped-def]
    summed, message_role, role_bias, weight_in, bias_in, weight_out, bias_out, first_keys, second_keys,
    message, normed_out, inner_scale, messages, limit, grown, epsilon,
    width: tl.constexpr, tile: tl.constexpr, block: tl.constexpr, drops: tl.constexpr,
):
    """f + FFN(LN f), hidden units in blocks."""
    row, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    there = row < messages
    kind = message.dtype.element_ty
    at = row.to(tl.int64)[:, None] * width + column[None, :]
    role = tl.load(message_role + row, there, 0)
    f = tl.load(summed + at, there[:, None], 0.0).to(tl.float32)
    f += tl.load(role_bias + role[:, None] * width + column[None, :]).to(tl.float32)
    if drops:
        f = tl.where(is_kept_pair(row, 0, first_keys, limit, width, width), f * grown, 0.0)
    normed, inverse = _normed(f, epsilon, width)
    normed = normed.to(kind)
    tl.store(normed_out + at, normed, there[:, None])
    tl.store(inner_scale + row, inverse, there)
    f += tl.load(bias_out + column).to(tl.float32)[None, :]
    for start in range(0, width, block):
        unit = start + tl.arange(0, block)
        into = tl.load(weight_in + unit[None, :] * width + column[:, None])  # (width, block)
        hidden = tl.dot(normed, into, input_precision="tf32x3") + tl.load(bias_in + unit).to(tl.float32)[None, :]
        below, _ = _phi(hidden)
        hidden = hidden * below
        if drops:
            hidden = tl.where(is_kept_pair(row, start, second_keys, limit, width, block), hidden * grown, 0.0)
        out_of = tl.load(weight_out + column[None, :] * width + unit[:, None])  # (block, width)
        f = tl.dot(hidden.to(kind), out_of, f, input_precision="tf32x3")
    tl.store(message + at, f.to(kind), there[:, None])


@triton.jit  # type: ignore[untyped-decorator]
def _net_back(  # type: ignore[no-untyped-def]
    outer, normed_all, inner_scale, summed, scale, message_role, weight_in, bias_in, weight_out, first_keys,
    second_keys, hidden_out, of_hidden_out, of_sum, of_roles, messages, limit, grown,
    width: tl.constexpr, tile: tl.constexpr, block: tl.constexpr, drops: tl.constexpr,
):
    """The net's hidden units again, and their gradients; then back through both norms, and this program's part of the
    sums over the messages of each role.
    """
    row, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    there = row < messages
    at = row.to(tl.int64)[:, None] * width + column[None, :]
    kind = outer.dtype.element_ty
    normed = tl.load(normed_all + at, there[:, None], 0.0)
    g = tl.load(outer + at, there[:, None], 0.0)
    of_normed = tl.zeros([tile, width], tl.float32)
    for start in range(0, width, block):
        unit = start + tl.arange(0, block)
        into = tl.load(weight_in + unit[None, :] * width + column[:, None])  # (width, block)
        hidden = tl.dot(normed, into, input_precision="ieee") + tl.load(bias_in + unit).to(tl.float32)[None, :]
        below, power = _phi(hidden)
        slope = below + hidden * 0.3989422804014327 * power
        hidden = hidden * below
        if drops:
            kept = is_kept_pair(row, start, second_keys, limit, width, block)
            hidden = tl.where(kept, hidden * grown, 0.0)
            slope = tl.where(kept, slope * grown, 0.0)
        here = row.to(tl.int64)[:, None] * width + unit[None, :]
        tl.store(hidden_out + here, hidden.to(kind), there[:, None])
        out_of = tl.load(weight_out + column[:, None] * width + unit[None, :])  # (width, block)
        # 0 in rows that are not there, as g is.
        of_hidden = (tl.dot(g, out_of, input_precision="ieee") * slope).to(kind)
        tl.store(of_hidden_out + here, of_hidden, there[:, None])
        of_normed = tl.dot(of_hidden, tl.trans(into), of_normed, input_precision="ieee")
    inverse = tl.load(inner_scale + row, there, 0.0)
    of_f = g.to(tl.float32) + _normed_back(of_normed, normed.to(tl.float32), inverse, width)
    if drops:
        of_f = tl.where(is_kept_pair(row, 0, first_keys, limit, width, width), of_f * grown, 0.0)
    role = tl.load(message_role + row, there, 0)
    part = of_roles + tl.program_id(0) * (3 * width) + column
    for one in tl.static_range(3):
        tl.store(part + one * width, tl.sum(tl.where((role == one)[:, None], of_f, 0.0), 0))
    x = tl.load(summed + at, there[:, None], 0.0).to(tl.float32)
    of_x = _normed_back(of_f, x, tl.load(scale + row, there, 0.0), width)
    tl.store(of_sum + at, of_x.to(kind), there[:, None])


@triton.jit  # type: ignore[untyped-decorator]
def _spread(  # type: ignore[no-untyped-def]
    of_sum, slot_first, slot_stop, slot_message, of_pair, slots, messages,
    width: tl.constexpr, tile: tl.constexpr, few: tl.constexpr,
):
    """The gradient of each slot's pair: the sum over the messages to the other slots of its fact."""
    slot, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    there = slot < slots
    first, stop = tl.load(slot_first + slot, there, 0), tl.load(slot_stop + slot, there, 0)
    total = tl.zeros([tile, width], tl.float32)
    others = tl.max(stop - first, 0) - 1
    for nth in range(tl.minimum(others, few)):
        other = first + nth
        other += (other >= slot).to(tl.int32)
        message = tl.load(slot_message + other, there & (other < stop), messages).to(tl.int64)
        reads = (message < messages)[:, None]
        total += tl.load(of_sum + message[:, None] * width + column[None, :], reads, 0.0).to(tl.float32)
    for start in range(few, others, few):
        other = first[:, None] + start + tl.arange(0, few)[None, :]
        other += (other >= slot[:, None]).to(tl.int32)
        message = tl.load(slot_message + other, there[:, None] & (other < stop[:, None]), messages).to(tl.int64)
        at = of_sum + message[:, :, None] * width + column[None, None, :]
        total += tl.sum(tl.load(at, (message < messages)[:, :, None], 0.0).to(tl.float32), 1)
    at = slot.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(of_pair + at, total.to(of_pair.dtype.element_ty), there[:, None])


class KeysAndValues(torch.autograd.Function):
    """`apply(pairs of entities, of numbers, of relations, role bias, W_in, b_in, W_out, b_out, W_kv, W'_kv, plan,
    keys, keys, rate, aside)`: (messages, 2d) and (first messages, 2d). All tensors have one precision. `aside` says
    that others wait for the gradients of weights and of the relations' pairs.
    """

    @staticmethod
    def forward(
        context: Any, entity: Tensor, number: Tensor, relation: Tensor, role_bias: Tensor, weight_in: Tensor,
        bias_in: Tensor, weight_out: Tensor, bias_out: Tensor, to_value: Tensor, to_relation: Tensor,
        plan: MessagePlan, first_keys: Tensor | None, second_keys: Tensor | None, rate: float, aside: bool,
    ) -> tuple[Tensor, Tensor]:
        d, kind, messages, first = role_bias.shape[1], relation.dtype, len(plan.message_slot), plan.relation_messages
        message, summed = relation.new_empty(messages, d), relation.new_empty(messages, d)
        normed = torch.empty_like(message)
        scale, inner_scale = relation.new_empty(2, messages, dtype=torch.float32).unbind()
        weight_in, weight_out = weight_in.contiguous(), weight_out.contiguous()
        keys = (message, message) if first_keys is None else (first_keys, second_keys)
        _gather[(triton.cdiv(messages, SLOTS),)](
            entity.contiguous(), number.contiguous(), relation.contiguous(), plan.message_slot, plan.slot_first,
            plan.slot_stop, plan.value_rows.row, plan.relation_rows.row, summed, scale, messages,
            3 * plan.sizes.entities, EPSILON, d, SLOTS, FEW, plan.sizes.numbers > 0, num_warps=4,
        )
        shape = NET if kind == torch.bfloat16 else EXACT
        registers = REGISTERS if kind == torch.bfloat16 and d <= 128 else None
        _net[(triton.cdiv(messages, shape.tile),)](
            summed, plan.message_role, role_bias, weight_in, bias_in, weight_out, bias_out, *keys, message, normed,
            inner_scale, messages, *limit_and_growth(rate), EPSILON, d, shape.tile, min(shape.block, d),
            first_keys is not None, num_warps=shape.warps, num_stages=shape.stages, maxnreg=registers,
        )
        context.save_for_backward(
            message, summed, scale, normed, inner_scale, weight_in, bias_in, weight_out, to_value, to_relation,
            first_keys, second_keys,
        )
        context.plan, context.rate, context.entities, context.aside = plan, rate, len(entity), aside
        return message @ to_value.t(), message[:first] @ to_relation.t()

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        message, summed, scale, normed, inner_scale, weight_in, bias_in, weight_out, to_value, to_relation, *both = (
            context.saved_tensors
        )
        of_values, of_relations = (one.contiguous() for one in gradients)
        plan: MessagePlan = context.plan
        (messages, d), kind, first = message.shape, message.dtype, plan.relation_messages
        outer = of_values @ to_value
        outer[:first].addmm_(of_relations, to_relation)
        of_sum, hidden, of_hidden = (torch.empty_like(message) for _ in range(3))
        keys = (message, message) if both[0] is None else both
        shape = NET_BACK if kind == torch.bfloat16 else EXACT_BACK
        programs = triton.cdiv(messages, shape.tile)
        of_roles = message.new_empty(programs, 3 * d, dtype=torch.float32)
        _net_back[(programs,)](
            outer, normed, inner_scale, summed, scale, plan.message_role, weight_in, bias_in, weight_out, *keys, hidden,
            of_hidden, of_sum, of_roles, messages, *limit_and_growth(context.rate), d, shape.tile, min(shape.block, d),
            both[0] is not None, num_warps=shape.warps, num_stages=shape.stages,
        )
        slots = len(plan.slot_first)
        of_pair = message.new_empty(slots, d)
        _spread[(triton.cdiv(slots, SLOTS),)](
            of_sum, plan.slot_first, plan.slot_stop, plan.slot_message, of_pair, slots, messages, d, SLOTS, FEW,
            num_warps=4,
        )
        with Aside.doing("tables", of_pair, wanted=context.aside):
            of_relation_rows = summed_by_kernel(of_pair, plan.relation_rows)
        of_value_rows = summed_by_kernel(of_pair, plan.value_rows)
        entity_rows = 3 * context.entities
        given, outers = [normed, hidden, message, message[:first]], [of_hidden, outer, of_values, of_relations]
        with Aside.doing("weights", of_roles, *given, *outers, wanted=context.aside):
            of_role_bias = column_sums(of_roles, kind).view(3, d)
            if go_together(message, outers):
                weights, (of_bias_in, of_bias_out, _, _) = gradients_of_maps(given, outers)
            else:
                weights = [one.t() @ x for one, x in zip(outers, given, strict=True)]
                of_bias_in, of_bias_out = column_sums(of_hidden, kind), column_sums(outer, kind)
        return (
            of_value_rows[:entity_rows].view(-1, 3 * d), of_value_rows[entity_rows:].view(-1, 2 * d),
            of_relation_rows.view(-1, 3 * d), of_role_bias, weights[0], of_bias_in, weights[1], of_bias_out,
            weights[2], weights[3], None, None, None, None, None,
        )
