"""What `convolved_minimum` and `swept_minimum` ask of a GPU: HINGE's scores, and their gradients, without features in
memory.

A fact has filters × columns features, a hundred thousand of them, each a product of nine or fifteen numbers: to make
them again is cheaper than to read them back. Import this module only where Triton is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

LANES = 32
"""Columns that a program takes, one for each thread of a warp. Each warp takes filters of its own."""
FACTS, WARPS_THERE, SPLITS = {0: 2}, 4, 2
"""Of the way there: facts that a program takes at once, by how many qualifiers they have room for (of others 1), its
warps, and among how many programs the filters are split.
"""
FILTERS, WARPS_BACK, PROGRAMS = {0: 4, 1: 2, 2: 2, 4: 2}, 4, 1024
"""Of the way back: filters that a warp takes at once, by the same (of others 1), warps, and about how many programs."""
HELD = 8
"""Qualifiers of a fact that a program adds up for. Where there is room for more, several programs find the minima."""


@triton.jit
def _and(found, one):  # type: ignore[no-untyped-def]
    """A tuple and one more."""
    return found + (one,)  # noqa: RUF005, the compiler of kernels takes no star


@triton.jit  # type: ignore[untyped-decorator]
def _windows(images, row, j, d: tl.constexpr, rows: tl.constexpr):  # type: ignore[no-untyped-def]
    """The 3·`rows` numbers of windows, each like the columns j: number k is column j + k % 3 of the row k // 3."""
    found = ()
    at = images + row.to(tl.int64) * rows * d + j
    for k in tl.static_range(rows * 3):
        found = _and(found, tl.load(at + (k // 3) * d + k % 3))
    return found


@triton.jit  # type: ignore[untyped-decorator]
def _filters(weight, f, first: tl.constexpr, count: tl.constexpr, of: tl.constexpr):  # type: ignore[no-untyped-def]
    """`count` numbers of each filter f, which has `of` in all, from number `first` on."""
    found = ()
    for k in tl.static_range(count):
        found = _and(found, tl.load(weight + f * of + first + k))
    return found


@triton.jit  # type: ignore[untyped-decorator]
def _zeros(count: tl.constexpr, like):  # type: ignore[no-untyped-def]
    found = ()
    for _ in tl.static_range(count):
        found = _and(found, tl.zeros_like(like))
    return found


@triton.jit  # type: ignore[untyped-decorator]
def _product(total, one, other, first: tl.constexpr, second: tl.constexpr, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """`total`, and the sum of products of `count` numbers of each from a place on."""
    for k in tl.static_range(count):
        total += one[first + k] * other[second + k]
    return total


@triton.jit  # type: ignore[untyped-decorator]
def _plus(sums, first: tl.constexpr, numbers, second: tl.constexpr, factor, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """`count` of the sums, from a place on, to which as many numbers times a factor are added."""
    found = ()
    for k in tl.static_range(count):
        found = _and(found, sums[first + k] + numbers[second + k] * factor)
    return found


@triton.jit  # type: ignore[untyped-decorator]
def _qualifiers(  # type: ignore[no-untyped-def]
    pairs, present, slot, j, d, count: tl.constexpr
):
    """Windows of `count` qualifiers from a slot on, 6 numbers each, and what they add: infinity if there is none."""
    windows, missing = (), ()
    for nth in tl.static_range(count):
        windows = windows + _windows(pairs, slot + nth, j, d, 2)
        missing = _and(missing, tl.where(tl.load(present + slot + nth) != 0, 0.0, float("inf")))
    return windows, missing


@triton.jit  # type: ignore[untyped-decorator]
def _lower(  # type: ignore[no-untyped-def]
    lowest, owner, base, of_pair, first: tl.constexpr, y, missing, at: tl.constexpr, nth
):
    """Minima and their owners, when a fact's qualifier `nth` is asked too: the one `at` of those in y."""
    beta = _product(base, of_pair, y, first, 6 * at, 6) + missing[at]
    return tl.minimum(beta, lowest), tl.where(beta < lowest, nth, owner)


@triton.jit  # type: ignore[untyped-decorator]
def _scores(  # type: ignore[no-untyped-def]
    images, pairs, present, weight, shift, weight_both, shift_both, output, score, to_images, to_pairs, first_row,
    rows, first_slot, all_rows, all_slots, d: tl.constexpr, columns: tl.constexpr, filters: tl.constexpr,
    splits: tl.constexpr, facts: tl.constexpr, warps: tl.constexpr, lanes: tl.constexpr, capacity: tl.constexpr,
    held: tl.constexpr,
):
    """Of some facts, columns and filters: their share of the score, and of its derivatives by the numbers of windows
    and of `held` qualifiers'.
    """
    column = tl.program_id(1) * lanes + tl.arange(0, lanes)
    j = tl.minimum(column, columns - 1)[None, :]  # what lies outside counts for nothing
    split, chunk = (tl.program_id(2) % splits).to(tl.int64), tl.program_id(2) // splits
    x, y, missing = (), (), ()
    for t in tl.static_range(facts):
        nth_row = tl.minimum(tl.program_id(0) * facts + t, rows - 1)  # where there is none, the last one again
        x = x + _windows(images, first_row + nth_row, j, d, 3)
        if held == capacity:
            found = _qualifiers(pairs, present, first_slot + nth_row * capacity, j, d, capacity)
            y, missing = y + found[0], missing + found[1]
    like = tl.zeros((warps, lanes), tl.float32)
    total, back, by_slot = _zeros(facts, like), _zeros(9 * facts, like), _zeros(6 * facts * held, like)
    for start in range(0, filters, splits * warps):
        f = start + tl.program_id(2) % splits * warps + tl.arange(0, warps)[:, None]
        factor = tl.load(output + f * columns + column[None, :], (f < filters) & (column < columns)[None, :], 0.0)
        f = tl.minimum(f, filters - 1)
        of_triplet, plus = _filters(weight, f, 0, 9, 9), tl.load(shift + f)
        if capacity > 0:
            of_both, of_pair = _filters(weight_both, f, 0, 9, 15), _filters(weight_both, f, 9, 6, 15)
            plus_both = tl.load(shift_both + f)
        new_total, new_back, new_by_slot = (), (), ()
        for t in tl.static_range(facts):
            lowest = _product(plus, of_triplet, x, 0, 9 * t, 9)
            if capacity > 0:
                base = _product(plus_both, of_both, x, 0, 9 * t, 9)
                owner = tl.full(lowest.shape, -1, tl.int32)
                if held == capacity:
                    for nth in tl.static_range(capacity):
                        lowest, owner = _lower(lowest, owner, base, of_pair, 0, y, missing, t * capacity + nth, nth)
                else:
                    slot = first_slot + tl.minimum(tl.program_id(0) * facts + t, rows - 1) * capacity
                    for nth in range(capacity):
                        found = _qualifiers(pairs, present, slot + nth, j, d, 1)
                        lowest, owner = _lower(lowest, owner, base, of_pair, 0, found[0], found[1], 0, nth)
                to = tl.where(lowest > 0, factor, 0.0)
                own = tl.where(owner < 0, to, 0.0)
                added = _plus(back, 9 * t, of_triplet, 0, own, 9)
                new_back = new_back + _plus(added, 0, of_both, 0, to - own, 9)
                for nth in tl.static_range(held):
                    mine = tl.where(owner == chunk * held + nth, to, 0.0)
                    new_by_slot = new_by_slot + _plus(by_slot, 6 * (t * held + nth), of_pair, 0, mine, 6)
            else:
                to = tl.where(lowest > 0, factor, 0.0)
                new_back = new_back + _plus(back, 9 * t, of_triplet, 0, to, 9)
            new_total = _and(new_total, total[t] + to * lowest)
        total, back, by_slot = new_total, new_back, new_by_slot
    for t in tl.static_range(facts):
        nth_row = tl.minimum(tl.program_id(0) * facts + t, rows - 1)
        row, slot = first_row + nth_row, first_slot + nth_row * capacity + chunk * held
        if chunk == 0:
            part = split * tl.num_programs(1) + tl.program_id(1)
            tl.store(score + part * all_rows + row, tl.sum(tl.sum(total[t], 1), 0))
            for k in tl.static_range(9):
                place = to_images + ((split * all_rows + row) * 9 + k) * columns + column
                tl.store(place, tl.sum(back[9 * t + k], 0), column < columns)
        for nth in tl.static_range(held):
            there = (column < columns) & (chunk * held + nth < capacity)
            for k in tl.static_range(6):
                place = to_pairs + ((split * all_slots + slot + nth) * 6 + k) * columns + column
                tl.store(place, tl.sum(by_slot[6 * (t * held + nth) + k], 0), there)


@triton.jit  # type: ignore[untyped-decorator]
def _gradients(  # type: ignore[no-untyped-def]
    outer, images, pairs, present, weight, shift, weight_both, shift_both, output, to_output, to_triplet, to_both,
    first_row, rows, first_slot, d: tl.constexpr, columns: tl.constexpr, filters: tl.constexpr, each: tl.constexpr,
    taken: tl.constexpr, warps: tl.constexpr, lanes: tl.constexpr, capacity: tl.constexpr, held: tl.constexpr,
):
    """Of some filters, columns and `each` facts: gradients of weights, and of shifts in the last number."""
    column = tl.program_id(1) * lanes + tl.arange(0, lanes)[None, :]
    j = tl.minimum(column, columns - 1)  # what lies outside counts for nothing
    like = tl.zeros((warps, lanes), tl.float32)
    of_triplet, of_both, of_pair, plus, plus_both, factor = (), (), (), (), (), ()
    for t in tl.static_range(taken):
        f = (tl.program_id(0) * taken + t) * warps + tl.arange(0, warps)[:, None]
        factor = _and(factor, tl.load(output + f * columns + column, (f < filters) & (column < columns), 0.0))
        f = tl.minimum(f, filters - 1)
        of_triplet, plus = of_triplet + _filters(weight, f, 0, 9, 9), _and(plus, tl.load(shift + f))
        if capacity > 0:
            of_both = of_both + _filters(weight_both, f, 0, 9, 15)
            of_pair = of_pair + _filters(weight_both, f, 9, 6, 15)
            plus_both = _and(plus_both, tl.load(shift_both + f))
    by_output, by_triplet, by_both, by_pair = _zeros(taken, like), _zeros(10 * taken, like), (), ()
    if capacity > 0:
        by_both, by_pair = _zeros(10 * taken, like), _zeros(6 * taken, like)
    for nth_row in range(each):
        at_row = tl.program_id(2) * each + nth_row
        is_real = at_row < rows  # else the last one again, which then counts for nothing
        at_row = tl.minimum(at_row, rows - 1)
        slot = first_slot + at_row * capacity
        g = tl.where(is_real, tl.load(outer + first_row + at_row), 0.0)
        x = _windows(images, first_row + at_row, j, d, 3)
        y, missing = _qualifiers(pairs, present, slot, j, d, held)
        new_output, new_triplet, new_both, new_pair = (), (), (), ()
        for t in tl.static_range(taken):
            lowest = _product(plus[t], of_triplet, x, 9 * t, 0, 9)
            if capacity > 0:
                base = _product(plus_both[t], of_both, x, 9 * t, 0, 9)
                owner = tl.full(lowest.shape, -1, tl.int32)
                for nth in tl.static_range(held):
                    lowest, owner = _lower(lowest, owner, base, of_pair, 6 * t, y, missing, nth, nth)
                for nth in range(held, capacity):
                    found = _qualifiers(pairs, present, slot + nth, j, d, 1)
                    lowest, owner = _lower(lowest, owner, base, of_pair, 6 * t, found[0], found[1], 0, nth)
            new_output = _and(new_output, by_output[t] + tl.maximum(lowest, 0.0) * g)
            to = tl.where(lowest > 0, factor[t] * g, 0.0)
            own = to
            if capacity > 0:
                own = tl.where(owner < 0, to, 0.0)
                new_both = new_both + _plus(by_both, 10 * t, x, 0, to - own, 9) + (by_both[10 * t + 9] + to - own,)
                of_slots = _plus(by_pair, 6 * t, y, 0, tl.where(owner == 0, to, 0.0), 6)
                for nth in tl.static_range(1, held):
                    of_slots = _plus(of_slots, 0, y, 6 * nth, tl.where(owner == nth, to, 0.0), 6)
                for nth in range(held, capacity):
                    found = _windows(pairs, slot + nth, j, d, 2)
                    of_slots = _plus(of_slots, 0, found, 0, tl.where(owner == nth, to, 0.0), 6)
                new_pair = new_pair + of_slots
            new_triplet = new_triplet + _plus(by_triplet, 10 * t, x, 0, own, 9) + (by_triplet[10 * t + 9] + own,)
        by_output, by_triplet, by_both, by_pair = new_output, new_triplet, new_both, new_pair
    part = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    for t in tl.static_range(taken):
        f = (tl.program_id(0) * taken + t) * warps + tl.arange(0, warps)[:, None]
        place = to_output + (tl.program_id(2) * filters + f) * columns + column
        tl.store(place, by_output[t], (f < filters) & (column < columns))
        f = (tl.program_id(0) * taken + t) * warps + tl.arange(0, warps)
        place = to_triplet + (part * filters + f) * 10
        for k in tl.static_range(10):
            tl.store(place + k, tl.sum(by_triplet[10 * t + k], 1), f < filters)
        if capacity > 0:
            place = to_both + (part * filters + f) * 16
            for k in tl.static_range(9):
                tl.store(place + k, tl.sum(by_both[10 * t + k], 1), f < filters)
            for k in tl.static_range(6):
                tl.store(place + 9 + k, tl.sum(by_pair[6 * t + k], 1), f < filters)
            tl.store(place + 15, tl.sum(by_both[10 * t + 9], 1), f < filters)


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


def scores_and_slopes(facts: Facts, weights: FilterWeights, layout: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """(n,) scores; their derivatives by windows of triplets (n, 9, columns) and of pairs (slots, 6, columns)."""
    (filters, columns), d, new = weights.output.shape, facts.images.shape[2], facts.images.new_empty
    rows, slots, blocks = len(facts.images), len(facts.pairs), triton.cdiv(columns, LANES)
    score = new(SPLITS * blocks, rows)
    to_images, to_pairs = new(SPLITS, rows, 9, columns), new(SPLITS, slots, 6, columns)
    for segment in _segments(layout):
        capacity, taken = segment.capacity, FACTS.get(segment.capacity, 1)
        chunks = max(1, triton.cdiv(capacity, HELD))
        _scores[(triton.cdiv(segment.rows, taken), blocks, SPLITS * chunks)](
            *facts, *weights, score, to_images, to_pairs, segment.first_row, segment.rows, segment.first_slot, rows,
            slots, d, columns, filters, SPLITS, taken, WARPS_THERE, LANES, capacity, min(capacity, HELD),
            num_warps=WARPS_THERE,
        )
    return score.sum(0), to_images.sum(0), to_pairs.sum(0)


def weight_gradients(outer: Tensor, facts: Facts, weights: FilterWeights, layout: Sequence[int]) -> FilterWeights:
    """The gradients of all weights from those of the scores, (n,)."""
    (filters, columns), d = weights.output.shape, facts.images.shape[2]
    blocks = triton.cdiv(columns, LANES)
    planned = []
    for segment in _segments(layout):
        parts = triton.cdiv(filters, FILTERS.get(segment.capacity, 1) * WARPS_BACK)
        each = triton.next_power_of_2(triton.cdiv(segment.rows * parts * blocks, PROGRAMS))  # few kernels
        planned.append((segment, each, (parts, blocks, triton.cdiv(segment.rows, each))))
    groups = sum(grid[2] for _, _, grid in planned)
    of_qualifiers = sum(grid[2] for segment, _, grid in planned if segment.capacity)
    to_output, to_triplet = outer.new_empty(groups, filters, columns), outer.new_empty(groups, blocks, filters, 10)
    to_both = outer.new_empty(of_qualifiers, blocks, filters, 16)
    begin = begin_both = 0
    for segment, each, grid in planned:
        capacity = segment.capacity
        _gradients[grid](
            outer, *facts, *weights, to_output[begin:], to_triplet[begin:], to_both[begin_both:], segment.first_row,
            segment.rows, segment.first_slot, d, columns, filters, each, FILTERS.get(capacity, 1), WARPS_BACK, LANES,
            capacity, min(capacity, HELD), num_warps=WARPS_BACK,
        )
        begin += grid[2]
        begin_both += grid[2] if capacity else 0
    triplet, both = to_triplet.sum((0, 1)), to_both.sum((0, 1))
    # Copies even of what would not need one: an operation's results must not share memory.
    split = (triplet[:, :9].clone(), triplet[:, 9].clone(), both[:, :15].clone(), both[:, 15].clone())
    return FilterWeights(*split, to_output.sum(0))


# All candidates of many questions: `swept_minimum`.

QUESTIONS, CANDIDATES, SHARES, WARPS = 64, 128, 16, 8
"""Questions and candidates of a program, among how many programs the features are split, and warps."""


@triton.jit  # type: ignore[untyped-decorator]
def _sweep(  # type: ignore[no-untyped-def]
    weight, a, b, c, d, out, questions, candidates, features, each: tl.constexpr, tall: tl.constexpr,
    wide: tl.constexpr, paired: tl.constexpr,
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
    out = a.new_empty(SHARES, questions, candidates)
    each = triton.cdiv(features, SHARES)
    turned = [one if one is None else one.t().contiguous() for one in (a, b, c, d)]
    one, two = turned[:2]
    _sweep[(triton.cdiv(candidates, CANDIDATES), triton.cdiv(questions, QUESTIONS), SHARES)](
        weight, one, two, turned[2] if c is not None else one, turned[3] if d is not None else two, out, questions,
        candidates, features, each, QUESTIONS, CANDIDATES, c is not None, num_warps=WARPS,
    )
    total = out[0]
    for part in out[1:]:
        total = total + part
    return total
