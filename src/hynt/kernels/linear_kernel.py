"""Triton kernels around linear maps: sums of the columns of a tall matrix, in a fixed order, whose plain twin is
`x.sum(0)`; the gradients of weights and biases of several maps of one input, whose plain twins are `outer.t() @ x` and
`outer.sum(0)`; and residual connection, dropout and layer norm in one visit, whose plain twin is the formula in
`linear_maps.added_and_normed`. Import this module only where Triton is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hynt.kernels.dropout_kernel import is_kept

COLUMNS, BLOCK = 128, 64
"""Columns of a program, and rows that it reads together."""

PROGRAMS = 528
"""Four for each processor of an H200."""


@triton.jit  # type: ignore[untyped-decorator]
def _add_rows(  # type: ignore[no-untyped-def]
    x, out, rows, each, width: tl.constexpr, columns: tl.constexpr, block: tl.constexpr
):
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    total = tl.zeros([block, columns], tl.float32)
    first = tl.program_id(0) * each
    for start in range(first, first + each, block):
        row = start + tl.arange(0, block)
        there = (row < rows) & (row < first + each)
        at = x + row.to(tl.int64)[:, None] * width + column[None, :]
        total += tl.load(at, there[:, None] & (column < width)[None, :], 0.0).to(tl.float32)
    found = tl.sum(total, 0).to(out.dtype.element_ty)
    tl.store(out + tl.program_id(0) * width + column, found, column < width)


def column_sums(x: Tensor, kind: torch.dtype = torch.float32) -> Tensor:
    """(width,) of this precision from (rows, width), contiguous; added up in float32."""
    rows, width = x.shape
    columns = min(COLUMNS, triton.next_power_of_2(width))
    across = triton.cdiv(width, columns)
    each = triton.cdiv(triton.cdiv(max(rows, 1) * across, PROGRAMS), BLOCK) * BLOCK
    parts = triton.cdiv(max(rows, 1), each)
    out = torch.empty(width, dtype=kind, device=x.device)
    if parts == 1:
        _add_rows[(1, across)](x, out, rows, each, width, columns, BLOCK, num_warps=4)
        return out
    partial = torch.empty(parts, width, dtype=torch.float32, device=x.device)
    _add_rows[(parts, across)](x, partial, rows, each, width, columns, BLOCK, num_warps=4)
    _add_rows[(1, across)](partial, out, parts, triton.cdiv(parts, BLOCK) * BLOCK, width, columns, BLOCK, num_warps=4)
    return out


MOST_MAPS = 4
"""How many maps one launch serves."""

OUTPUTS, INPUTS, ROWS = 64, 128, 64
"""Outputs and inputs of a program's part of a weight, and rows that it reads together."""

RESIDENT, FEWEST = 396, 8
"""Three programs for each processor of an H200; and so many times ROWS rows at least for each, or their partial sums
would be much of the work.
"""

PARTS, PLACES = 8, 256
"""Partial sums that are read together, and places of a program that adds them up."""


@triton.jit  # type: ignore[untyped-decorator]
def _weights(  # type: ignore[no-untyped-def]
    x0, x1, x2, x3, outer0, outer1, outer2, outer3, rows0, rows1, rows2, rows3, partial, splits,
    outputs0: tl.constexpr, outputs1: tl.constexpr, outputs2: tl.constexpr, outputs3: tl.constexpr,
    inputs: tl.constexpr, out_tile: tl.constexpr, in_tile: tl.constexpr, block: tl.constexpr,
):
    """A part of one map's outerᵀ·x over a part of its rows, and the same part of the columns' sums of outer.

    Weights lie one after another, (outputs, inputs) each, then biases; `partial` holds all of them for each split.
    """
    across: tl.constexpr = (inputs + in_tile - 1) // in_tile
    tiles1: tl.constexpr = (outputs0 + out_tile - 1) // out_tile
    tiles2: tl.constexpr = tiles1 + (outputs1 + out_tile - 1) // out_tile
    tiles3: tl.constexpr = tiles2 + (outputs2 + out_tile - 1) // out_tile
    every: tl.constexpr = outputs0 + outputs1 + outputs2 + outputs3
    number, split = tl.program_id(0) // across, tl.program_id(1)
    x, outer, rows, outputs, first_tile, first_output = x0, outer0, rows0, outputs0, 0, 0
    if number >= tiles1:
        x, outer, rows, outputs, first_tile, first_output = x1, outer1, rows1, outputs1, tiles1, outputs0
    if number >= tiles2:
        x, outer, rows, outputs, first_tile, first_output = x2, outer2, rows2, outputs2, tiles2, outputs0 + outputs1
    if number >= tiles3:
        x, outer, rows, outputs, first_tile = x3, outer3, rows3, outputs3, tiles3
        first_output = outputs0 + outputs1 + outputs2
    output = (number - first_tile) * out_tile + tl.arange(0, out_tile)
    entry = (tl.program_id(0) % across) * in_tile + tl.arange(0, in_tile)
    each = tl.cdiv(tl.cdiv(rows, splits), block) * block
    first = split * each
    last = tl.minimum(first + each, rows)
    ones = tl.full([block, 16], 1.0, tl.float32).to(x0.dtype.element_ty)
    of_weight = tl.zeros([out_tile, in_tile], tl.float32)
    of_bias = tl.zeros([out_tile, 16], tl.float32)  # sixteen times the same, as a product is at least so wide
    for start in range(first, last, block):
        row = start + tl.arange(0, block)
        there = (row < last)[:, None]
        at = row.to(tl.int64)[:, None]
        o = tl.load(outer + at * outputs + output[None, :], there & (output < outputs)[None, :], 0.0)
        v = tl.load(x + at * inputs + entry[None, :], there & (entry < inputs)[None, :], 0.0)
        o = tl.trans(o)
        of_weight = tl.dot(o, v, of_weight, input_precision="ieee")
        of_bias = tl.dot(o, ones, of_bias, input_precision="ieee")
    mine = output < outputs
    place = partial + split.to(tl.int64) * (every * (inputs + 1))
    at = (first_output + output)[:, None] * inputs + entry[None, :]
    tl.store(place + at, of_weight, mine[:, None] & (entry < inputs)[None, :])
    if tl.program_id(0) % across == 0:
        tl.store(place + every * inputs + first_output + output, tl.sum(of_bias, 1) / 16, mine)


def gradients_of_maps(given: Sequence[Tensor], outers: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The gradients of weights (outputs, inputs) and of biases (outputs,) of up to four maps of the first rows of what
    each was given, (n, inputs), from those of what it made, (rows, outputs); in that precision, added up in float32.
    """
    given = [one.contiguous() for one in given]
    x = given[0]
    outputs, inputs = [outer.shape[1] for outer in outers], x.shape[1]
    more = MOST_MAPS - len(outers)
    tiles = sum(triton.cdiv(count, OUTPUTS) for count in outputs) * triton.cdiv(inputs, INPUTS)
    longest = max([1, *(len(outer) for outer in outers)])
    splits = max(1, min(RESIDENT // tiles, triton.cdiv(longest, FEWEST * ROWS)))
    every = sum(outputs)
    room = every * (inputs + 1)
    partial = torch.empty(splits, room, dtype=torch.float32, device=x.device)
    _weights[(tiles, splits)](
        *given, *([x] * more), *outers, *([outers[0]] * more), *(len(outer) for outer in outers), *([0] * more),
        partial, splits, *outputs, *([0] * more), inputs, OUTPUTS, INPUTS, ROWS, num_warps=4, num_stages=3,
    )
    found = torch.empty(room, dtype=x.dtype, device=x.device)
    _add_rows[(1, triton.cdiv(room, PLACES))](
        partial, found, splits, triton.cdiv(splits, PARTS) * PARTS, room, PLACES, PARTS, num_warps=4
    )
    weights, biases = found[: every * inputs].view(every, inputs), found[every * inputs :]
    return list(torch.split(weights, outputs)), list(torch.split(biases, outputs))


TILE = 8
EPSILON = 1e-5


@triton.jit  # type: ignore[untyped-decorator]
def _add(  # type: ignore[no-untyped-def]
    x, added, keys, out, normed, scale, rows, limit, grown, epsilon,
    width: tl.constexpr, tile: tl.constexpr, drops: tl.constexpr, adds: tl.constexpr,
):
    row, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    there = (row < rows)[:, None]
    at = row.to(tl.int64)[:, None] * width + column[None, :]
    new = tl.load(x + at, there, 0.0).to(tl.float32)
    if adds:
        plus = tl.load(added + at, there, 0.0).to(tl.float32)
        if drops:
            plus = tl.where(is_kept(at, keys, limit), plus * grown, 0.0)
        new += plus
        tl.store(out + at, new, there)
    centred = new - (tl.sum(new, 1) / width)[:, None]
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, 1) / width + epsilon)
    tl.store(normed + at, (centred * inverse[:, None]).to(normed.dtype.element_ty), there)
    tl.store(scale + row, inverse, row < rows)


@triton.jit  # type: ignore[untyped-decorator]
def _add_back(  # type: ignore[no-untyped-def]
    of_out, of_normed, normed, scale, keys, of_x, of_added, rows, limit, grown,
    width: tl.constexpr, tile: tl.constexpr, drops: tl.constexpr, has_out: tl.constexpr, has_normed: tl.constexpr,
    adds: tl.constexpr,
):
    row, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    there = (row < rows)[:, None]
    at = row.to(tl.int64)[:, None] * width + column[None, :]
    total = tl.zeros([tile, width], tl.float32)
    if has_out:
        total += tl.load(of_out + at, there, 0.0)
    if has_normed:
        g = tl.load(of_normed + at, there, 0.0).to(tl.float32)
        n = tl.load(normed + at, there, 0.0).to(tl.float32)
        g = g - (tl.sum(g, 1) / width)[:, None] - n * (tl.sum(g * n, 1) / width)[:, None]
        total += g * tl.load(scale + row, row < rows, 0.0)[:, None]
    tl.store(of_x + at, total.to(of_x.dtype.element_ty), there)
    if drops:
        total = tl.where(is_kept(at, keys, limit), total * grown, 0.0)
    if adds:
        tl.store(of_added + at, total.to(of_added.dtype.element_ty), there)


class AddedAndNormed(torch.autograd.Function):
    """`apply(x, added, keys, rate)`: x + dropout(added), float32, and its norm in the precision of `added`."""

    @staticmethod
    def forward(context: Any, x: Tensor, added: Tensor, keys: Tensor | None, rate: float) -> tuple[Tensor, Tensor]:
        x, added = x.contiguous(), added.contiguous()
        rows, width = x.shape
        out, normed = torch.empty_like(x), torch.empty_like(added)
        scale = torch.empty(rows, dtype=torch.float32, device=x.device)
        _add[(triton.cdiv(rows, TILE),)](
            x, added, x if keys is None else keys, out, normed, scale, rows, int(rate * 2**31), 1 / (1 - rate),
            EPSILON, width, TILE, keys is not None, True, num_warps=4,
        )
        context.save_for_backward(normed, scale, keys)
        context.rate = rate
        context.set_materialize_grads(False)
        return out, normed

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        of_out, of_normed = (None if one is None else one.contiguous() for one in gradients)
        normed, scale, keys = context.saved_tensors
        rows, width = normed.shape
        of_x, of_added = torch.empty(rows, width, dtype=torch.float32, device=normed.device), torch.empty_like(normed)
        _add_back[(triton.cdiv(rows, TILE),)](
            normed if of_out is None else of_out, normed if of_normed is None else of_normed, normed, scale,
            normed if keys is None else keys, of_x, of_added, rows, int(context.rate * 2**31),
            1 / (1 - context.rate), width, TILE, keys is not None, of_out is not None, of_normed is not None, True,
            num_warps=4,
        )
        return of_x, of_added, None, None


class Normed(torch.autograd.Function):
    """`apply(x, kind)`: the norm of x in the precision `kind`."""

    @staticmethod
    def forward(context: Any, x: Tensor, kind: torch.dtype) -> Tensor:
        x = x.contiguous()
        rows, width = x.shape
        normed = torch.empty_like(x, dtype=kind)
        scale = torch.empty(rows, dtype=torch.float32, device=x.device)
        if rows:
            _add[(triton.cdiv(rows, TILE),)](
                x, x, x, x, normed, scale, rows, 0, 1.0, EPSILON, width, TILE, False, False, num_warps=4
            )
        context.save_for_backward(normed, scale)
        context.kind = x.dtype
        return normed

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (normed, scale), outer = context.saved_tensors, gradients[0].contiguous()
        rows, width = normed.shape
        of_x = torch.empty_like(normed, dtype=context.kind)
        if rows:
            _add_back[(triton.cdiv(rows, TILE),)](
                outer, outer, normed, scale, outer, of_x, of_x, rows, 0, 1.0, width, TILE, False, False, True, False,
                num_warps=4,
            )
        return of_x, None
