"""The loss of a row of scores and the gradient of these scores in one visit: Triton kernels.

The scores of all entities are by far the largest tensor of a step. A row is read once from memory to find its
normaliser; while it is still in the cache it is read again and overwritten by its gradient. Import this module only
where Triton is installed.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from hynt.kernels.entity_softmax import EntityQuestions

BLOCK, WARPS, LONG = 4096, 8, 2**15
"""Scores that a program looks at together, and its warps; twice as many of both for longer rows. Fewer programs, which
walk through several rows each so that rows stay in the cache for their second reading, took a quarter longer on an
H200; programs that hold a whole row in their registers, 6 to 15 % longer.
"""

FEW = 256
"""True answers that it looks at together: most questions have few."""


@triton.jit  # type: ignore[untyped-decorator]
def _rows(  # type: ignore[no-untyped-def]
    scores, answer, weight, starts, counts, true, loss, wide,
    last: tl.constexpr, block: tl.constexpr, few: tl.constexpr,
):
    log2_of_e: tl.constexpr = 1.4426950408889634
    row = tl.program_id(0).to(tl.int64)
    base = scores + row * wide
    right, factor = tl.load(answer + row), tl.load(weight + row)
    picked = tl.load(base + right).to(tl.float32)
    first, count = tl.load(starts + row), tl.load(counts + row)
    for start in range(0, count, few):
        nth = start + tl.arange(0, few)
        other = tl.load(true + first + nth, nth < count, 0)
        tl.store(base + other, tl.full([few], last, scores.dtype.element_ty), (nth < count) & (other != right))
    tl.debug_barrier()  # what was written is read below by other threads
    top = float("-inf")
    mass = tl.zeros([block], tl.float32)  # Σ exp(s − top), still apart by place in the block
    # Whatever is done here is done a billion times per step: what all rows share is in the scores already.
    for start in range(0, wide, block):
        at = start + tl.arange(0, block)
        s = tl.load(base + at, at < wide, float("-inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(s, 0))
        mass = mass * tl.exp(top - higher) + tl.exp2(s * log2_of_e - higher * log2_of_e)
        top = higher
    normaliser = top + tl.log(tl.sum(mass, 0))
    tl.store(loss + row, normaliser - picked)
    for start in range(0, wide, block):
        at = start + tl.arange(0, block)
        s = tl.load(base + at, at < wide, 0.0).to(tl.float32)
        share = tl.exp2(s * log2_of_e - normaliser * log2_of_e)
        tl.store(base + at, (share * factor).to(scores.dtype.element_ty), at < wide)
    tl.debug_barrier()  # the right answer's gradient was written as if it were another's
    tl.store(base + right, ((tl.exp(picked - normaliser) - 1) * factor).to(scores.dtype.element_ty))


def losses_then_gradients(scores: Tensor, asked: EntityQuestions, last: float) -> Tensor:
    """(k,) float32 cross entropies of (k, wide) contiguous scores. Those of what may be no answer are so low already;
    `last` becomes the score of other true answers. The scores become the gradients of Σ weight · cross entropy, in
    place.
    """
    loss = torch.empty(len(scores), dtype=torch.float32, device=scores.device)
    if len(scores):
        wide = scores.shape[1]
        times = 2 if wide > LONG else 1
        _rows[(len(scores),)](
            scores, asked.answer, asked.weight, asked.start, asked.known, asked.true, loss, wide,
            last, times * BLOCK, FEW, num_warps=times * WARPS,
        )
    return loss


SMOOTHED_BLOCK = 8192
"""Scores a program looks at together: the best of those tried on an H200, with eight warps."""


@triton.jit  # type: ignore[untyped-decorator]
def _smoothed_rows(  # type: ignore[no-untyped-def]
    scores, answer, loss, smoothing,
    columns: tl.constexpr, width: tl.constexpr, block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    base = scores + row * width
    right = tl.load(answer + row)
    picked = tl.load(base + right).to(tl.float32)
    top = float("-inf")
    mass = tl.zeros([block], tl.float32)  # Σ exp(s − top), still apart by place in the block
    total = tl.zeros([block], tl.float32)
    for start in range(0, columns, block):
        at = start + tl.arange(0, block)
        # The width is a multiple of a load's; the number of entities need not be, and would take numbers one by one.
        s = tl.load(base + at, at < width, 0.0).to(tl.float32)
        total += tl.where(at < columns, s, 0.0)
        s = tl.where(at < columns, s, float("-inf"))
        higher = tl.maximum(top, tl.max(s, 0))
        mass = mass * tl.exp(top - higher) + tl.exp(s - higher)
        top = higher
    normaliser = top + tl.log(tl.sum(mass, 0))
    even = smoothing / columns
    tl.store(loss + row, normaliser - (1 - smoothing) * picked - smoothing * (tl.sum(total, 0) / columns))
    # Every thread has read the answer's score before any overwrites it.
    tl.debug_barrier()
    for start in range(0, width, block):
        at = start + tl.arange(0, block)
        s = tl.load(base + at, at < width, 0.0).to(tl.float32)
        gradient = tl.exp(s - normaliser) - even - tl.where(at == right, 1 - smoothing, 0.0)
        # Columns beyond the last entity are there for alignment only.
        gradient = tl.where(at < columns, gradient, 0.0)
        tl.store(base + at, gradient.to(scores.dtype.element_ty), at < width)


def smoothed_losses_then_gradients(scores: Tensor, columns: int, answer: Tensor, smoothing: float) -> Tensor:
    """(k,) float32 cross entropy with target (1 − ε)·[answer] + ε/columns, from the first `columns` of (k, width)
    contiguous scores, which become its gradient, in place; further columns become 0.
    """
    loss = torch.empty(len(scores), dtype=torch.float32, device=scores.device)
    if len(scores):
        _smoothed_rows[(len(scores),)](
            scores, answer, loss, smoothing, columns, scores.shape[1], SMOOTHED_BLOCK, num_warps=8
        )
    return loss
