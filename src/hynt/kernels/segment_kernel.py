"""Triton kernels over segments of a sorted list: sums, whose plain twin is `segment_sums.summed`; items times rows of a
table, whose plain twin is `segment_sums.scaled`; and attention.

Attention is over nodes and the messages they receive, each way one kernel and a small one for long segments. A program
looks at one piece of a node's messages and gathers keys and values itself. Logits are clamped, so parts of a softmax
are simply added, in a fixed order. Import this module only where Triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hynt.batches.fact_slots import Links
from hynt.kernels.device import Aside

GROUP, SUM_BLOCK, SUM_WARPS = 4, 4, 2
"""Pieces of one program, since most rows have few items; items of each that are read at once; and its warps."""

PARTS = 32
"""Parts of a long row or segment that are added together."""

COLUMNS = 128


@triton.jit  # type: ignore[untyped-decorator]
def _sum_pieces(  # type: ignore[no-untyped-def]
    items, order, piece_row, piece_first, piece_last, piece_place, out, partial, pieces, rows, places,
    width: tl.constexpr, columns: tl.constexpr, group: tl.constexpr, block: tl.constexpr,
):
    piece = tl.program_id(0) * group + tl.arange(0, group)
    there = piece < pieces
    # All four at once, though not all are needed: to wait for one before asking for the next takes longer.
    row, place = tl.load(piece_row + piece, there, rows), tl.load(piece_place + piece, there, 0)
    first, last = tl.load(piece_first + piece, there, 0), tl.load(piece_last + piece, there, 0)
    there = there & (row < rows)
    last = tl.where(there, last, first)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    inside = column < width
    total = tl.zeros([group, columns], tl.float32)
    for start in range(0, tl.max(last - first, 0), block):
        at = first[:, None] + start + tl.arange(0, block)[None, :]
        mine = at < last[:, None]
        item = tl.load(order + at, mine, 0).to(tl.int64)
        where = items + item[:, :, None] * width + column[None, None, :]
        total += tl.sum(tl.load(where, mine[:, :, None] & inside[None, None, :], 0.0).to(tl.float32), 1)
    whole = there & (place == places)
    to = out + row.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(to, total.to(out.dtype.element_ty), whole[:, None] & inside[None, :])
    part = partial + place.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(part, total, (there & (place < places))[:, None] & inside[None, :])


@triton.jit  # type: ignore[untyped-decorator]
def _sum_parts(  # type: ignore[no-untyped-def]
    partial, long_row, long_first, long_last, out, rows,
    width: tl.constexpr, columns: tl.constexpr, parts: tl.constexpr,
):
    row = tl.load(long_row + tl.program_id(0))
    first, last = tl.load(long_first + tl.program_id(0)), tl.load(long_last + tl.program_id(0))
    if row < rows:
        column = tl.program_id(1) * columns + tl.arange(0, columns)
        inside = column < width
        total = tl.zeros([columns], tl.float32)
        for start in range(first, last, parts):
            at = start + tl.arange(0, parts)
            where = partial + at.to(tl.int64)[:, None] * width + column[None, :]
            total += tl.sum(tl.load(where, (at < last)[:, None] & inside[None, :], 0.0), 0)
        tl.store(out + row.to(tl.int64) * width + column, total.to(out.dtype.element_ty), inside)


def summed_by_kernel(items: Tensor, links: Links) -> Tensor:
    """(rows, width) in the precision of `items` (n, width), added up in float32."""
    items, pieces, width = items.contiguous(), links.cut(), items.shape[1]
    out = torch.empty(links.rows, width, dtype=items.dtype, device=items.device)
    partial = torch.empty(pieces.places, width, dtype=torch.float32, device=items.device)
    columns = min(COLUMNS, triton.next_power_of_2(width))
    count, across = len(pieces.row), triton.cdiv(width, columns)
    _sum_pieces[(triton.cdiv(count, GROUP), across)](
        items, links.order, pieces.row, pieces.first, pieces.last, pieces.place, out, partial,
        count, links.rows, pieces.places, width, columns, GROUP, SUM_BLOCK, num_warps=SUM_WARPS,
    )
    _sum_parts[(len(pieces.long_row), across)](
        partial, pieces.long_row, pieces.long_first, pieces.long_last, out, links.rows, width, columns, PARTS,
        num_warps=4,
    )
    return out


ITEMS = 16
"""Items that a program scales together."""


@triton.jit  # type: ignore[untyped-decorator]
def _scale(  # type: ignore[no-untyped-def]
    items, table, rows_of, more, out, count, every, rows, width: tl.constexpr, tile: tl.constexpr
):
    item, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    mine, behind = (item < count)[:, None], ((item >= count) & (item < every))[:, None]
    row = tl.minimum(tl.load(rows_of + item, item < count, 0), rows - 1).to(tl.int64)
    at = item.to(tl.int64)[:, None] * width + column[None, :]
    x = tl.load(items + at, mine, 0.0).to(tl.float32)
    factor = 1 + tl.load(table + row[:, None] * width + column[None, :], mine, 0.0).to(tl.float32)
    other = tl.load(more + (item.to(tl.int64) - count)[:, None] * width + column[None, :], behind, 0.0)
    tl.store(out + at, tl.where(mine, (x * factor).to(out.dtype.element_ty), other), mine | behind)


@triton.jit  # type: ignore[untyped-decorator]
def _scale_back(  # type: ignore[no-untyped-def]
    outer, items, table, rows_of, of_items, of_rows, count, rows, width: tl.constexpr, tile: tl.constexpr
):
    item, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    there = (item < count)[:, None]
    row = tl.minimum(tl.load(rows_of + item, item < count, 0), rows - 1).to(tl.int64)
    at = item.to(tl.int64)[:, None] * width + column[None, :]
    g, x = tl.load(outer + at, there, 0.0).to(tl.float32), tl.load(items + at, there, 0.0).to(tl.float32)
    factor = 1 + tl.load(table + row[:, None] * width + column[None, :], there, 0.0).to(tl.float32)
    kind = of_items.dtype.element_ty
    tl.store(of_items + at, (g * factor).to(kind), there)
    tl.store(of_rows + at, (g * x).to(kind), there)


class Scaled(torch.autograd.Function):
    """`apply(items, table, more, links)`: items times 1 + the row of each, and `more` behind them."""

    @staticmethod
    def forward(context: Any, items: Tensor, table: Tensor, more: Tensor, links: Links) -> Tensor:
        items, table, more = items.contiguous(), table.contiguous(), more.contiguous()
        (count, width), every = items.shape, len(items) + len(more)
        out = items.new_empty(every, width)
        _scale[(triton.cdiv(every, ITEMS),)](
            items, table, links.row, more, out, count, every, links.rows, width, ITEMS, num_warps=4
        )
        context.save_for_backward(items, table)
        context.links = links
        return out

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (items, table), links, outer = context.saved_tensors, context.links, gradients[0].contiguous()
        count, width = items.shape
        of_items, of_rows = torch.empty_like(items), torch.empty_like(items)
        if count:
            _scale_back[(triton.cdiv(count, ITEMS),)](
                outer, items, table, links.row, of_items, of_rows, count, links.rows, width, ITEMS, num_warps=4
            )
        return of_items, summed_by_kernel(of_rows, links), outer[count:], None


BLOCK, WARPS = 2, 1
"""Messages that a program looks at together, and its warps: most nodes receive few."""

BLOCK_BACK, WARPS_BACK = 2, 1
"""The same on the way back."""

CLAMP = 30.0


@triton.jit  # type: ignore[untyped-decorator]
def _said(  # type: ignore[no-untyped-def]
    key_value, first_table, second_table, item, context, mine, column, in_first,
    width: tl.constexpr, two: tl.constexpr,
):
    """(block, width) float32: keys or values of messages, whichever `column` points at."""
    said = tl.load(key_value + item[:, None] * (2 * width) + column[None, :], mine[:, None], 0.0).to(tl.float32)
    of_first = mine
    if two:
        of_second = mine & (context >= in_first)
        of_first = mine & (context < in_first)
        beyond = second_table + (context - in_first)[:, None] * (2 * width) + column[None, :]
        said += tl.load(beyond, of_second[:, None], 0.0).to(tl.float32)
    at = first_table + context[:, None] * (2 * width) + column[None, :]
    return said + tl.load(at, of_first[:, None], 0.0).to(tl.float32)


@triton.jit  # type: ignore[untyped-decorator]
def _attend(  # type: ignore[no-untyped-def]
    own, key_value, first_table, second_table, order, context_row,
    piece_row, piece_first, piece_last, piece_place, out, total, partial, partial_total,
    rows, places, in_first, scale, clamp: tl.constexpr,
    width: tl.constexpr, heads: tl.constexpr, block: tl.constexpr, two: tl.constexpr,
):
    piece = tl.program_id(0)
    row = tl.load(piece_row + piece)
    first, last, place = tl.load(piece_first + piece), tl.load(piece_last + piece), tl.load(piece_place + piece)
    if row < rows:
        column, head = tl.arange(0, width), tl.arange(0, heads)
        mine_at = own + row.to(tl.int64) * (3 * width) + column
        query = tl.load(mine_at).to(tl.float32)
        mixed = tl.zeros([heads, width // heads], tl.float32)
        weights = tl.zeros([heads], tl.float32)
        for start in range(first, last, block):
            at = start + tl.arange(0, block)
            mine = at < last
            item = tl.load(order + at, mine, 0).to(tl.int64)
            context = tl.load(context_row + at, mine, 0).to(tl.int64)
            key = _said(key_value, first_table, second_table, item, context, mine, column, in_first, width, two)
            value = _said(
                key_value, first_table, second_table, item, context, mine, width + column, in_first, width, two
            )
            logit = tl.sum(tl.reshape(key * query[None, :], (block, heads, width // heads)), 2) * scale
            raised = tl.where(mine[:, None], tl.exp(tl.minimum(tl.maximum(logit, -clamp), clamp)), 0.0)
            mixed += tl.sum(tl.reshape(value, (block, heads, width // heads)) * raised[:, :, None], 0)
            weights += tl.sum(raised, 0)
        if place == places:
            key, value = tl.load(mine_at + width).to(tl.float32), tl.load(mine_at + 2 * width).to(tl.float32)
            logit = tl.sum(tl.reshape(key * query, (heads, width // heads)), 1) * scale
            raised = tl.exp(tl.minimum(tl.maximum(logit, -clamp), clamp))
            weights += raised
            mixed = (mixed + tl.reshape(value, (heads, width // heads)) * raised[:, None]) / weights[:, None]
            tl.store(out + row.to(tl.int64) * width + column, tl.reshape(mixed, (width,)).to(out.dtype.element_ty))
            tl.store(total + row * heads + head, weights)
        else:
            tl.store(partial + place.to(tl.int64) * width + column, tl.reshape(mixed, (width,)))
            tl.store(partial_total + place * heads + head, weights)


@triton.jit  # type: ignore[untyped-decorator]
def _attend_long(  # type: ignore[no-untyped-def]
    own, partial, partial_total, long_row, long_first, long_last, out, total, rows, scale, clamp: tl.constexpr,
    width: tl.constexpr, heads: tl.constexpr, parts: tl.constexpr,
):
    row = tl.load(long_row + tl.program_id(0))
    first, last = tl.load(long_first + tl.program_id(0)), tl.load(long_last + tl.program_id(0))
    if row < rows:
        column, head = tl.arange(0, width), tl.arange(0, heads)
        mine_at = own + row.to(tl.int64) * (3 * width) + column
        query, key = tl.load(mine_at).to(tl.float32), tl.load(mine_at + width).to(tl.float32)
        value = tl.load(mine_at + 2 * width).to(tl.float32)
        sums = tl.zeros([width], tl.float32)
        weights = tl.zeros([heads], tl.float32)
        for start in range(first, last, parts):
            at = start + tl.arange(0, parts)
            there = (at < last)[:, None]
            sums += tl.sum(tl.load(partial + at.to(tl.int64)[:, None] * width + column[None, :], there, 0.0), 0)
            weights += tl.sum(tl.load(partial_total + at[:, None] * heads + head[None, :], there, 0.0), 0)
        logit = tl.sum(tl.reshape(key * query, (heads, width // heads)), 1) * scale
        raised = tl.exp(tl.minimum(tl.maximum(logit, -clamp), clamp))
        weights += raised
        mixed = tl.reshape(sums, (heads, width // heads)) + tl.reshape(value, (heads, width // heads)) * raised[:, None]
        mixed = tl.reshape(mixed / weights[:, None], (width,))
        tl.store(out + row.to(tl.int64) * width + column, mixed.to(out.dtype.element_ty))
        tl.store(total + row * heads + head, weights)


@triton.jit  # type: ignore[untyped-decorator]
def _own_back(  # type: ignore[no-untyped-def]
    mine_at, to_at, query, outer, delta, weights, of_query, scale, clamp: tl.constexpr,
    width: tl.constexpr, heads: tl.constexpr,
):
    """Adds the node's own key and value, and stores the gradients of its query, key and value."""
    key, value = tl.load(mine_at + width).to(tl.float32), tl.load(mine_at + 2 * width).to(tl.float32)
    logit = tl.sum(tl.reshape(key * query, (heads, width // heads)), 1) * scale
    share = tl.exp(tl.minimum(tl.maximum(logit, -clamp), clamp)) / weights
    of_share = tl.sum(tl.reshape(value * outer, (heads, width // heads)), 1)
    of_logit = tl.where((logit > -clamp) & (logit < clamp), share * (of_share - delta), 0.0) * scale
    by_head = tl.reshape(tl.broadcast_to(of_logit[:, None], (heads, width // heads)), (width,))
    shares = tl.reshape(tl.broadcast_to(share[:, None], (heads, width // heads)), (width,))
    kind = to_at.dtype.element_ty
    tl.store(to_at, (of_query + by_head * key).to(kind))
    tl.store(to_at + width, (by_head * query).to(kind))
    tl.store(to_at + 2 * width, (shares * outer).to(kind))


@triton.jit  # type: ignore[untyped-decorator]
def _attend_back(  # type: ignore[no-untyped-def]
    own, key_value, first_table, second_table, order, context_row,
    piece_row, piece_first, piece_last, piece_place, out, total, outer_all,
    of_own, of_key_value, partial, rows, places, in_first, scale, clamp: tl.constexpr,
    width: tl.constexpr, heads: tl.constexpr, block: tl.constexpr, two: tl.constexpr,
):
    piece = tl.program_id(0)
    row = tl.load(piece_row + piece)
    first, last, place = tl.load(piece_first + piece), tl.load(piece_last + piece), tl.load(piece_place + piece)
    if row <= rows:  # the messages that nobody receives come last: their gradient is 0
        column, head = tl.arange(0, width), tl.arange(0, heads)
        received = row < rows
        node = tl.where(received, row, 0).to(tl.int64)
        mine_at = own + node * (3 * width) + column
        query = tl.load(mine_at).to(tl.float32)
        outer = tl.load(outer_all + node * width + column).to(tl.float32)
        outcome = tl.load(out + node * width + column).to(tl.float32)
        weights = tl.load(total + node * heads + head)
        delta = tl.sum(tl.reshape(outer * outcome, (heads, width // heads)), 1)
        of_query = tl.zeros([width], tl.float32)
        for start in range(first, last, block):
            at = start + tl.arange(0, block)
            mine = at < last
            item = tl.load(order + at, mine, 0).to(tl.int64)
            reads = mine & received
            context = tl.load(context_row + at, reads, 0).to(tl.int64)
            key = _said(key_value, first_table, second_table, item, context, reads, column, in_first, width, two)
            value = _said(
                key_value, first_table, second_table, item, context, reads, width + column, in_first, width, two
            )
            logit = tl.sum(tl.reshape(key * query[None, :], (block, heads, width // heads)), 2) * scale
            share = tl.exp(tl.minimum(tl.maximum(logit, -clamp), clamp)) / weights[None, :]
            share = tl.where(reads[:, None], share, 0.0)
            of_share = tl.sum(tl.reshape(value * outer[None, :], (block, heads, width // heads)), 2)
            inside = (logit > -clamp) & (logit < clamp)
            of_logit = tl.where(inside, share * (of_share - delta[None, :]), 0.0) * scale
            by_head = tl.reshape(tl.broadcast_to(of_logit[:, :, None], (block, heads, width // heads)), (block, width))
            shares = tl.reshape(tl.broadcast_to(share[:, :, None], (block, heads, width // heads)), (block, width))
            of_query += tl.sum(by_head * key, 0)
            to = of_key_value + item[:, None] * (2 * width) + column[None, :]
            kind = of_key_value.dtype.element_ty
            tl.store(to, (by_head * query[None, :]).to(kind), mine[:, None])
            tl.store(to + width, (shares * outer[None, :]).to(kind), mine[:, None])
        if received:
            if place == places:
                to_at = of_own + node * (3 * width) + column
                _own_back(mine_at, to_at, query, outer, delta, weights, of_query, scale, clamp, width, heads)
            else:
                tl.store(partial + place.to(tl.int64) * width + column, of_query)


@triton.jit  # type: ignore[untyped-decorator]
def _attend_long_back(  # type: ignore[no-untyped-def]
    own, partial, long_row, long_first, long_last, out, total, outer_all, of_own, rows, scale, clamp: tl.constexpr,
    width: tl.constexpr, heads: tl.constexpr, parts: tl.constexpr,
):
    row = tl.load(long_row + tl.program_id(0))
    first, last = tl.load(long_first + tl.program_id(0)), tl.load(long_last + tl.program_id(0))
    if row < rows:
        column, head = tl.arange(0, width), tl.arange(0, heads)
        node = row.to(tl.int64)
        mine_at, to_at = own + node * (3 * width) + column, of_own + node * (3 * width) + column
        outer = tl.load(outer_all + node * width + column).to(tl.float32)
        outcome = tl.load(out + node * width + column).to(tl.float32)
        delta = tl.sum(tl.reshape(outer * outcome, (heads, width // heads)), 1)
        of_query = tl.zeros([width], tl.float32)
        for start in range(first, last, parts):
            at = start + tl.arange(0, parts)
            where = partial + at.to(tl.int64)[:, None] * width + column[None, :]
            of_query += tl.sum(tl.load(where, (at < last)[:, None], 0.0), 0)
        query, weights = tl.load(mine_at).to(tl.float32), tl.load(total + node * heads + head)
        _own_back(mine_at, to_at, query, outer, delta, weights, of_query, scale, clamp, width, heads)


class SegmentAttention(torch.autograd.Function):
    """`apply(own, key_value, first table, second table or None, context rows, receiver, context rows in its order,
    heads, aside)`: (nodes, d). `aside` says that others wait for the tables' gradients.
    """

    @staticmethod
    def forward(
        context: Any, own: Tensor, key_value: Tensor, table: Tensor, second: Tensor | None, rows: Links,
        receiver: Links, context_row: Tensor, heads: int, aside: bool,
    ) -> Tensor:
        own, key_value = own.contiguous(), key_value.contiguous()
        nodes, width, pieces = len(own), own.shape[1] // 3, receiver.cut()
        new, float32 = own.new_empty, torch.float32
        out, total = new(nodes, width), new(nodes, heads, dtype=float32)
        partial, partial_total = new(pieces.places, width, dtype=float32), new(pieces.places, heads, dtype=float32)
        scale = (width // heads) ** -0.5
        _attend[(len(pieces.row),)](
            own, key_value, table, table if second is None else second, receiver.order, context_row,
            pieces.row, pieces.first, pieces.last, pieces.place, out, total, partial, partial_total,
            nodes, pieces.places, len(table), scale, CLAMP, width, heads, BLOCK, second is not None, num_warps=WARPS,
        )
        _attend_long[(len(pieces.long_row),)](
            own, partial, partial_total, pieces.long_row, pieces.long_first, pieces.long_last, out, total, nodes,
            scale, CLAMP, width, heads, PARTS, num_warps=4,
        )
        context.save_for_backward(own, key_value, table, second, out, total, context_row)
        context.rows, context.receiver, context.heads, context.aside = rows, receiver, heads, aside
        return out

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        own, key_value, table, second, out, total, context_row = context.saved_tensors
        rows, receiver, heads = context.rows, context.receiver, context.heads
        outer, pieces = gradients[0].contiguous(), receiver.cut()
        nodes, width = out.shape
        of_own, of_key_value = torch.empty_like(own), torch.empty_like(key_value)
        partial = own.new_empty(pieces.places, width, dtype=torch.float32)
        scale = (width // heads) ** -0.5
        _attend_back[(len(pieces.row),)](
            own, key_value, table, table if second is None else second, receiver.order, context_row,
            pieces.row, pieces.first, pieces.last, pieces.place, out, total, outer, of_own, of_key_value, partial,
            nodes, pieces.places, len(table), scale, CLAMP, width, heads, BLOCK_BACK, second is not None,
            num_warps=WARPS_BACK,
        )
        _attend_long_back[(len(pieces.long_row),)](
            own, partial, pieces.long_row, pieces.long_first, pieces.long_last, out, total, outer, of_own, nodes,
            scale, CLAMP, width, heads, PARTS, num_warps=4,
        )
        with Aside.doing("tables", of_key_value, wanted=context.aside):
            of_tables = summed_by_kernel(of_key_value, rows)
        of_second = None if second is None else of_tables[len(table) :]
        return of_own, of_key_value, of_tables[: len(table)], of_second, None, None, None, None, None
