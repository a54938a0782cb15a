"""Adam in one sweep over a large table, or over many small tensors laid side by side, and a look at gradients before:
Triton kernels.

PyTorch's fused kernel gives 65,536 numbers to one processor: a table of millions leaves half the memory's speed
unused, and many small tensors leave most processors idle. Import this module only where Triton is installed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

BLOCK, LOOKED_AT = 1024, 4096
"""Numbers a program moves, and looks at. Tensors that lie side by side begin at multiples of the first, so that each
block has one owner.
"""


@triton.jit
def _complement(x):  # type: ignore[no-untyped-def]
    """1 − e^x for x < 0; near 0 by its series, where a plain difference would lose digits."""
    return tl.where(x > -0.03, -x * (1 + x * (1 / 2 + x * (1 / 6 + x / 24))), 1 - tl.exp(x))


@triton.jit  # type: ignore[untyped-decorator]
def _sweep(  # type: ignore[no-untyped-def]
    parameter, gradient, mean, square, owners, moves, steps, decays, rate, scale, failed, count,
    log1: tl.constexpr, log2: tl.constexpr, less1: tl.constexpr, less2: tl.constexpr, epsilon: tl.constexpr,
    block: tl.constexpr, shared: tl.constexpr,
):
    owner = 0
    moving = tl.load(failed) == 0
    if shared:
        owner = tl.load(owners + tl.program_id(0))
        moving = moving & (tl.load(moves + owner) > 0)
    if moving:
        at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        inside = at < count
        step = tl.load(steps + owner) + 1
        correction1 = _complement(step * log1)  # 1 − β1^step
        correction2 = _complement(step * log2)
        g = tl.load(gradient + at, inside).to(tl.float32) / tl.load(scale)
        m = tl.load(mean + at, inside)
        v = tl.load(square + at, inside)
        m = m + less1 * (g - m)
        v = v + less2 * (g * g - v)
        size = tl.load(rate) / correction1
        width = tl.sqrt(v) / tl.sqrt(correction2) + epsilon
        left = 1 - tl.load(rate) * tl.load(decays + owner)
        tl.store(parameter + at, tl.load(parameter + at, inside) * left - size * m / width, inside)
        tl.store(mean + at, m, inside)
        tl.store(square + at, v, inside)


@triton.jit  # type: ignore[untyped-decorator]
def _look(gradient, count, loss, failed, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    g = tl.load(gradient + at, at < count, 0.0).to(tl.float32)
    wrong = tl.sum(tl.where(tl.abs(g) < 1.8e19, 0, 1), 0)  # larger squares are infinite; NaN is not smaller either
    wrong += tl.where(tl.abs(tl.load(loss).to(tl.float32)) < float("inf"), 0, 1)
    if wrong > 0:
        tl.store(failed, 1.0)


def look_for_failure(gradients: Sequence[Tensor], loss: Tensor, failed: Tensor) -> None:
    """Raises the flag `failed`, (), if the loss, (), or a gradient's square is not finite. All are on one GPU.

    The plain twin asks for the norm of all gradients, a sum that nothing else needs, by a dozen small kernels.
    """
    for gradient in gradients:
        count = gradient.numel()
        _look[(triton.cdiv(count, LOOKED_AT),)](gradient.contiguous(), count, loss, failed, LOOKED_AT)


def update_table(
    parameter: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    steps: Tensor,
    decays: Tensor,
    rate: Tensor,
    scale: Tensor,
    failed: Tensor,
    betas: tuple[float, float],
    epsilon: float,
    owners: Tensor | None = None,
    moves: Tensor | None = None,
) -> None:
    """One step of Adam (Kingma and Ba, algorithm 1) in place: gradients divided by `scale`, nothing moves if `failed`.

    All tensors are contiguous and on one GPU; `rate`, `scale` and `failed` are () float32. `steps` () counts the steps
    so far; `decays` () is the decoupled decay of weights. Where several tensors lie side by side, `owners` (blocks,)
    int32 says whose each block is, `steps`, `decays` and `moves` (tensors,) float32 are by owner, and those whose entry
    in `moves` is 0 stay. The caller counts the steps.
    """
    count, shared = parameter.numel(), owners is not None
    _sweep[(triton.cdiv(count, BLOCK),)](
        parameter, gradient, mean, square, owners if shared else steps, moves if shared else steps, steps, decays, rate,
        scale, failed, count, math.log(betas[0]), math.log(betas[1]), 1 - betas[0], 1 - betas[1],
        epsilon, BLOCK, shared,
    )
