"""Adam on a large table in one sweep: a Triton kernel.

PyTorch's fused kernel is made for many small tensors and leaves half the memory's speed unused on a table of millions
of numbers. Import this module only where Triton is installed.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

from hynt.training.settings import Optimiser

BLOCK = 1024


@triton.jit  # type: ignore[untyped-decorator]
def _sweep(  # type: ignore[no-untyped-def] # noqa: ANN202 - Triton reads these names, not their types
    parameter, gradient, mean, square, step, rate, scale, failed, count,  # noqa: ANN001
    log1: tl.constexpr, log2: tl.constexpr, less1: tl.constexpr, less2: tl.constexpr, epsilon: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    if tl.load(failed) == 0:
        at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        inside = at < count
        steps = tl.load(step) + 1
        # 1 − β^steps, without the loss of digits that a plain difference has for β near 1.
        correction1 = -libdevice.expm1(steps * log1)
        correction2 = -libdevice.expm1(steps * log2)
        g = tl.load(gradient + at, inside).to(tl.float32) / tl.load(scale)
        m = tl.load(mean + at, inside)
        v = tl.load(square + at, inside)
        m = m + less1 * (g - m)
        v = v + less2 * (g * g - v)
        size = tl.load(rate) / correction1
        width = tl.sqrt(v) / tl.sqrt(correction2) + epsilon
        tl.store(parameter + at, tl.load(parameter + at, inside) - size * m / width, inside)
        tl.store(mean + at, m, inside)
        tl.store(square + at, v, inside)


def update_table(
    parameter: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    step: Tensor,
    rate: Tensor,
    scale: Tensor,
    failed: Tensor,
    settings: Optimiser,
) -> None:
    """One step of Adam (Kingma and Ba, algorithm 1) in place: gradients divided by `scale`, nothing moves if `failed`.

    All tensors are contiguous and on one GPU; `step`, `rate`, `scale` and `failed` are () float32. The caller counts
    the steps.
    """
    count = parameter.numel()
    _sweep[(triton.cdiv(count, BLOCK),)](
        parameter, gradient, mean, square, step, rate, scale, failed, count,
        math.log(settings.beta1), math.log(settings.beta2), 1 - settings.beta1, 1 - settings.beta2, settings.epsilon,
        BLOCK,
    )  # fmt: skip
