"""Scores Σ_f w_f·max(0, min(a_f + b_f, c_f + d_f)) of many questions (a, c) with many candidates (b, d).

Written out, every question and candidate have tens of thousands of features (HINGE), which would be written to memory
and read again several times. On a GPU the compiler makes one kernel of it that writes the sums alone. It is compiled
for one shape of block, so that nothing is compiled twice; a block is filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.buckets import BatchLayout

ROWS, CANDIDATES = 64, 2048
"""Questions and candidates of a block."""

BlockFunction = Callable[..., Tensor]


def block(weight: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """(rows, candidates) from (F,), (rows, F), (candidates, F), (rows, F) and (candidates, F)."""
    return (torch.relu(torch.minimum(a.unsqueeze(1) + b, c.unsqueeze(1) + d)) * weight).sum(-1)


def plain_block(weight: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The same where there is no c + d."""
    return (torch.relu(a.unsqueeze(1) + b) * weight).sum(-1)


@cache
def compiled(written: BlockFunction) -> BlockFunction:
    """The block as one kernel. Refuses, instead of running as it is written, where it cannot be compiled."""
    made: BlockFunction = torch.compile(written, dynamic=False, fullgraph=True)
    return made


class NotCompiledError(RuntimeError):
    """A block cannot be compiled on this machine."""


class SweptMinimum:
    """Sweeps candidates block by block, for a model whose `output` is linear in the rectified minima."""

    is_usable = True  # until a block turns out not to compile

    def __init__(self, output: nn.Linear) -> None:
        self.output = output

    def __call__(self, a: Tensor, b: Tensor, c: Tensor | None = None, d: Tensor | None = None) -> Tensor:
        """(rows, candidates), in the letters of `block`; raises `NotCompiledError` where it cannot."""
        weight = self.output.weight.squeeze(0)
        questions = [a] if c is None else [a, c]
        candidates = [b] if d is None else [b, d]
        run = self.made(plain_block if c is None else block)
        found = []
        for rows in range(0, len(a), ROWS):
            mine = [_filled(one[rows : rows + ROWS], ROWS) for one in questions]
            line = []
            for start in range(0, len(b), CANDIDATES):
                theirs = [_filled(one[start : start + CANDIDATES], CANDIDATES) for one in candidates]
                pairs = [one for pair in zip(mine, theirs, strict=True) for one in pair]
                line.append(self._run(run, weight, pairs))
            found.append(torch.cat(line, 1)[: len(a) - rows, : len(b)])
        return torch.cat(found) + self.output.bias

    def made(self, written: BlockFunction) -> BlockFunction:
        """What is run in a block's place."""
        return compiled(written)

    def _run(self, run: BlockFunction, weight: Tensor, pairs: list[Tensor]) -> Tensor:
        try:
            return run(weight, *pairs)
        except torch.cuda.OutOfMemoryError:
            raise
        except (RuntimeError, ImportError) as problem:
            self.is_usable = False
            raise NotCompiledError(str(problem)) from problem


def _filled(vectors: Tensor, count: int) -> Tensor:
    short = count - len(vectors)
    return functional.pad(vectors, (0, 0, 0, short)) if short else vectors.contiguous()


NOTHING = float("inf")
"""The minimum of nothing."""


def slot_minimum(features: Tensor, counted: Tensor, layout: BatchLayout) -> Tensor:
    """(rows, width) from (slots, width) features; `counted` (slots,) bool. Infinite for a row that has none."""
    held = torch.where(counted.unsqueeze(1), features, NOTHING)
    found = []
    for span in layout.spans():
        if span.capacity == 0:
            found.append(held.new_full((span.size, features.shape[1]), NOTHING))
        else:
            found.append(held[span.slots].view(span.size, span.capacity, -1).amin(1))
    return torch.cat(found)
