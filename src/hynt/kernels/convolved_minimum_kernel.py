"""What `convolved_minimum` and `swept_minimum` ask of a GPU: HINGE's scores, and their gradients, without features in
memory.

A fact has filters × columns features, a hundred thousand of them, each a product of nine or fifteen numbers: to make
them again is cheaper than to read them back. Import this module only where Triton is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

NUMBERS = 16
"""Of a window, with filler: no matrix product may be smaller. The way there takes as many filters at once."""
TILE = 64
"""Filters and columns that a program of the way back takes: these of some facts, and what all found is added up."""
PROGRAMS = 512
"""Of the way back, about."""
WARPS = 8


@triton.jit  # type: ignore[untyped-decorator]
def _windows(  # type: ignore[no-untyped-def]
    images, row, j, d, columns, rows: tl.constexpr, numbers: tl.constexpr, ones: tl.constexpr,
):
    """(numbers, columns j): number k of a window is column j + k % 3 of the image's row k // 3; with `ones`, the last
    is 1.
    """
    k = tl.arange(0, numbers)
    at = (k // 3)[:, None] * d + (k % 3)[:, None] + j[None, :]
    there = (k < rows * 3)[:, None] & (j < columns)[None, :]
    found = tl.load(images + row.to(tl.int64) * rows * d + at, there, 0.0)
    if ones:
        found = tl.where((k == numbers - 1)[:, None] & (j < columns)[None, :], 1.0, found)
    return found


@triton.jit  # type: ignore[untyped-decorator]
def _filters(  # type: ignore[no-untyped-def]
    weight, f, filters, first: tl.constexpr, count: tl.constexpr, of: tl.constexpr, numbers: tl.constexpr,
):
    """(filters f, numbers): `count` numbers of each filter, which has `of` in all, from number `first` on."""
    k = tl.arange(0, numbers)
    return tl.load(weight + f[:, None] * of + first + k[None, :], (f < filters)[:, None] & (k < count)[None, :], 0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _lowest(  # type: ignore[no-untyped-def]
    x, of_triplet, shift, of_both, of_pair, shift_both, pairs, present, begin, j, d, columns,
    numbers: tl.constexpr, precision: tl.constexpr, capacity: tl.constexpr,
):
    """(filters, columns j) minima before the rectifier, and whose they are: a slot's, or −1 for the triplet's own."""
    lowest = tl.dot(of_triplet, x, input_precision=precision) + shift[:, None]
    owner = tl.full(lowest.shape, -1, tl.int32)
    if capacity > 0:
        base = tl.dot(of_both, x, input_precision=precision) + shift_both[:, None]
        for nth in range(capacity):
            slot = begin + nth
            y = _windows(pairs, slot, j, d, columns, 2, numbers, False)
            beta = base + tl.dot(of_pair, y, input_precision=precision)
            beta = tl.where(tl.load(present + slot) != 0, beta, float("inf"))
            owner = tl.where(beta < lowest, slot, owner)
            lowest = tl.minimum(beta, lowest)
    return lowest, owner


@triton.jit  # type: ignore[untyped-decorator]
def _scores(  # type: ignore[no-untyped-def]
    images, pairs, present, weight, shift, weight_both, shift_both, output,
    score, to_images, to_pairs, first_row, first_slot, d, columns, filters: tl.constexpr,
    wide: tl.constexpr, numbers: tl.constexpr, precision: tl.constexpr, capacity: tl.constexpr,
):
    """Of one fact: its score, and the score's derivatives by the numbers of its windows and of its qualifiers'."""
    row = first_row + tl.program_id(0)
    k, j = tl.arange(0, numbers), tl.arange(0, wide)
    x = _windows(images, row, j, d, columns, 3, numbers, False)
    begin = first_slot + tl.program_id(0) * capacity
    total = tl.zeros((numbers, wide), tl.float32)
    back = tl.zeros((numbers, wide), tl.float32)
    for start in range(0, filters, numbers):
        f = start + tl.arange(0, numbers)
        of_triplet = _filters(weight, f, filters, 0, 9, 9, numbers)
        of_both = _filters(weight_both, f, filters, 0, 9, 15, numbers)
        of_pair = _filters(weight_both, f, filters, 9, 6, 15, numbers)
        plus, plus_both = tl.load(shift + f, f < filters, 0.0), tl.load(shift_both + f, f < filters, 0.0)
        lowest, owner = _lowest(
            x, of_triplet, plus, of_both, of_pair, plus_both, pairs, present, begin, j, d, columns,
            numbers, precision, capacity,
        )
        there = (f < filters)[:, None] & (j < columns)[None, :]
        factor = tl.load(output + f[:, None] * columns + j[None, :], there, 0.0)
        to = tl.where(lowest > 0, factor, 0.0)
        total += to * lowest
        if capacity > 0:
            own = tl.where(owner < 0, to, 0.0)
            back += tl.dot(tl.trans(of_triplet), own, input_precision=precision)
            back += tl.dot(tl.trans(of_both), to - own, input_precision=precision)
            for nth in range(capacity):
                slot = begin + nth
                mine = tl.where(owner == slot, to, 0.0)
                added = tl.dot(tl.trans(of_pair), mine, input_precision=precision)
                place = to_pairs + slot.to(tl.int64) * 6 * columns + k[:, None] * columns + j[None, :]
                inside = (k < 6)[:, None] & (j < columns)[None, :]
                if start > 0:
                    added += tl.load(place, inside, 0.0)
                tl.store(place, added, inside)
        else:
            back += tl.dot(tl.trans(of_triplet), to, input_precision=precision)
    tl.store(score + row, tl.sum(tl.sum(total, 1), 0))
    place = to_images + row.to(tl.int64) * 9 * columns + k[:, None] * columns + j[None, :]
    tl.store(place, back, (k < 9)[:, None] & (j < columns)[None, :])


@triton.jit  # type: ignore[untyped-decorator]
def _gradients(  # type: ignore[no-untyped-def]
    outer, images, pairs, present, weight, shift, weight_both, shift_both, output,
    to_output, to_triplet, to_both, to_pair, first_row, rows, first_slot, d, columns, filters, each: tl.constexpr,
    tile: tl.constexpr, wide: tl.constexpr, numbers: tl.constexpr, precision: tl.constexpr, capacity: tl.constexpr,
):
    """Of some filters, columns and `each` facts: gradients of weights, and of shifts in the last number."""
    k, j = tl.arange(0, numbers), tl.program_id(1) * wide + tl.arange(0, wide)
    f = tl.program_id(0) * tile + tl.arange(0, tile)
    of_triplet = _filters(weight, f, filters, 0, 9, 9, numbers)
    of_both = _filters(weight_both, f, filters, 0, 9, 15, numbers)
    of_pair = _filters(weight_both, f, filters, 9, 6, 15, numbers)
    plus, plus_both = tl.load(shift + f, f < filters, 0.0), tl.load(shift_both + f, f < filters, 0.0)
    there = (f < filters)[:, None] & (j < columns)[None, :]
    factor = tl.load(output + f[:, None] * columns + j[None, :], there, 0.0)
    by_output = tl.zeros((tile, wide), tl.float32)
    by_triplet = tl.zeros((tile, numbers), tl.float32)
    by_both = tl.zeros((tile, numbers), tl.float32)
    by_pair = tl.zeros((tile, numbers), tl.float32)
    for nth_row in range(each):
        at_row = tl.program_id(2) * each + nth_row
        is_real = at_row < rows  # else the last one again, which then counts for nothing
        at_row = tl.minimum(at_row, rows - 1)
        row, begin = first_row + at_row, first_slot + at_row * capacity
        x = _windows(images, row, j, d, columns, 3, numbers, True)
        g = tl.where(is_real, tl.load(outer + row), 0.0)
        lowest, owner = _lowest(
            x, of_triplet, plus, of_both, of_pair, plus_both, pairs, present, begin, j, d, columns,
            numbers, precision, capacity,
        )
        by_output += tl.maximum(lowest, 0.0) * g
        to = tl.where(lowest > 0, factor * g, 0.0)
        if capacity > 0:
            own = tl.where(owner < 0, to, 0.0)
            by_triplet += tl.dot(own, tl.trans(x), input_precision=precision)
            by_both += tl.dot(to - own, tl.trans(x), input_precision=precision)
            for nth in range(capacity):
                slot = begin + nth
                y = _windows(pairs, slot, j, d, columns, 2, numbers, False)
                mine = tl.where(owner == slot, to, 0.0)
                by_pair += tl.dot(mine, tl.trans(y), input_precision=precision)
        else:
            by_triplet += tl.dot(to, tl.trans(x), input_precision=precision)
    tl.store(to_output + (tl.program_id(2) * filters + f)[:, None] * columns + j[None, :], by_output, there)
    part = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    at = (part * filters + f)[:, None] * numbers + k[None, :]
    inside = (f < filters)[:, None] & (k < numbers)[None, :]
    tl.store(to_triplet + at, by_triplet, inside)
    if capacity > 0:
        tl.store(to_both + at, by_both, inside)
        tl.store(to_pair + at, by_pair, inside)


class Facts(NamedTuple):
    """Facts as images, in segments of rows with as many places for qualifiers each. All tensors are contiguous."""

    images: Tensor  # (n, 3, d) float32 head, relation, tail
    pairs: Tensor  # (slots, 2, d) float32 relation and value of each place for a qualifier
    present: Tensor  # (slots,) bool whether there is one


class FilterWeights(NamedTuple):
    """Normalised filters, what is added to what they find, and what each feature counts for."""

    triplet: Tensor  # (filters, 9) float32
    shift: Tensor  # (filters,)
    both: Tensor  # (filters, 15)
    shift_both: Tensor  # (filters,)
    output: Tensor  # (filters, columns)


class _Segment(NamedTuple):
    first_row: int
    rows: int
    first_slot: int
    capacity: int


def _segments(layout: Sequence[int]) -> Iterator[_Segment]:
    """Those that have rows, from rows and capacity of each in turn."""
    row = slot = 0
    for rows, capacity in zip(layout[::2], layout[1::2], strict=True):
        if rows:
            yield _Segment(row, rows, slot, capacity)
        row, slot = row + rows, slot + rows * capacity


def _fixed(capacity: int) -> dict[str, int | str]:
    precision = "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
    return {"numbers": NUMBERS, "precision": precision, "capacity": capacity, "num_warps": WARPS}


def scores_and_slopes(facts: Facts, weights: FilterWeights, layout: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """(n,) scores; their derivatives by windows of triplets (n, 9, columns) and of pairs (slots, 6, columns)."""
    (filters, columns), d = weights.output.shape, facts.images.shape[2]
    score = facts.images.new_empty(len(facts.images))
    to_images = facts.images.new_empty(len(facts.images), 9, columns)
    to_pairs = facts.images.new_empty(len(facts.pairs), 6, columns)
    wide = max(NUMBERS, triton.next_power_of_2(columns))
    for first_row, rows, first_slot, capacity in _segments(layout):
        _scores[(rows,)](
            *facts, *weights, score, to_images, to_pairs, first_row, first_slot, d, columns, filters, wide,
            **_fixed(capacity),
        )
    return score, to_images, to_pairs


def weight_gradients(outer: Tensor, facts: Facts, weights: FilterWeights, layout: Sequence[int]) -> FilterWeights:
    """The gradients of all weights from those of the scores, (n,)."""
    (filters, columns), d = weights.output.shape, facts.images.shape[2]
    tile, wide = (max(NUMBERS, min(TILE, triton.next_power_of_2(size))) for size in (filters, columns))
    parts, bands = triton.cdiv(filters, tile), triton.cdiv(columns, wide)
    output, triplet = [outer.new_zeros(filters, columns)], [outer.new_zeros(filters, NUMBERS)]
    both, pair = triplet.copy(), triplet.copy()
    for first_row, rows, first_slot, capacity in _segments(layout):
        each = triton.next_power_of_2(triton.cdiv(rows * parts * bands, PROGRAMS))  # few kernels, however many rows
        groups = triton.cdiv(rows, each)
        to_output = outer.new_empty(groups, filters, columns)
        to_triplet, to_both, to_pair = (outer.new_empty(groups * bands, filters, NUMBERS) for _ in range(3))
        _gradients[(parts, bands, groups)](
            outer, *facts, *weights, to_output, to_triplet, to_both, to_pair, first_row, rows, first_slot,
            d, columns, filters, each, tile, wide, **_fixed(capacity),
        )
        output.append(to_output.sum(0))
        triplet.append(to_triplet.sum(0))
        if capacity:
            both.append(to_both.sum(0))
            pair.append(to_pair.sum(0))
    of_triplet, of_both, of_pair, of_output = (torch.stack(found).sum(0) for found in (triplet, both, pair, output))
    joined = torch.cat([of_both[:, :9], of_pair[:, :6]], 1)
    return FilterWeights(
        of_triplet[:, :9].contiguous(), of_triplet[:, -1].contiguous(), joined, of_both[:, -1].contiguous(), of_output
    )


# All candidates of many questions: `swept_minimum`.

QUESTIONS, CANDIDATES, SPLITS = 64, 128, 16
"""Questions and candidates of a program, and among how many programs the features are split."""


@triton.jit  # type: ignore[untyped-decorator]
def _sweep(  # type: ignore[no-untyped-def]
    weight, a, b, c, d, out, questions, candidates, features, each: tl.constexpr,
    tall: tl.constexpr, wide: tl.constexpr, paired: tl.constexpr,
):
    """Sums over `each` features for some questions and candidates, whose features lie in columns."""
    q = tl.program_id(1) * tall + tl.arange(0, tall)
    k = tl.program_id(0) * wide + tl.arange(0, wide)
    total = tl.zeros((tall, wide), tl.float32)
    for nth in range(each):
        f = (tl.program_id(2) * each + nth).to(tl.int64)
        is_feature = f < features
        asks, offered = (q < questions) & is_feature, (k < candidates) & is_feature
        found = tl.load(a + f * questions + q, asks, 0.0)[:, None]
        found += tl.load(b + f * candidates + k, offered, 0.0)[None, :]
        if paired:
            other = tl.load(c + f * questions + q, asks, 0.0)[:, None]
            found = tl.minimum(found, other + tl.load(d + f * candidates + k, offered, 0.0)[None, :])
        total += tl.maximum(found, 0.0) * tl.load(weight + f, is_feature, 0.0)
    place = (tl.program_id(2) * questions + q).to(tl.int64)[:, None] * candidates + k[None, :]
    tl.store(out + place, total, (q < questions)[:, None] & (k < candidates)[None, :])


def swept_scores(weight: Tensor, a: Tensor, b: Tensor, c: Tensor | None, d: Tensor | None) -> Tensor:
    """(questions, candidates) `swept_minimum.block`; each is added up in the same order, whatever else is asked."""
    questions, candidates, features = len(a), len(b), len(weight)
    out = a.new_empty(SPLITS, questions, candidates)
    each = triton.cdiv(features, SPLITS)
    turned = [one if one is None else one.t().contiguous() for one in (a, b, c, d)]
    one, two = turned[:2]
    _sweep[(triton.cdiv(candidates, CANDIDATES), triton.cdiv(questions, QUESTIONS), SPLITS)](
        weight, one, two, turned[2] if c is not None else one, turned[3] if d is not None else two, out,
        questions, candidates, features, each, QUESTIONS, CANDIDATES, c is not None, num_warps=WARPS,
    )
    total = out[0]
    for part in out[1:]:
        total = total + part
    return total
