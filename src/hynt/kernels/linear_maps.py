"""Linear maps in the precision of their input.

On a GPU a bias's gradient is added up by a kernel, since PyTorch adds up the columns of a tall matrix some ten times
slower than the GPU reads it; and several maps of one input add their gradients inside the matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.kernels.availability import kernels_serve


class _Maps(torch.autograd.Function):
    """Several maps of one input, each of its first rows. Their gradients for it are added up by the products."""

    @staticmethod
    def forward(context: Any, x: Tensor, rows: tuple[int, ...], *parameters: Tensor | None) -> tuple[Tensor, ...]:
        weights, biases = parameters[::2], parameters[1::2]
        context.save_for_backward(x, *weights)
        context.rows, context.has_bias = rows, [bias is not None for bias in biases]
        # The map of all rows comes first on the way back, so that it can begin the sum.
        context.sequence = sorted(range(len(rows)), key=lambda number: -rows[number])
        return tuple(
            functional.linear(x[:count], weight, bias)
            for count, weight, bias in zip(rows, weights, biases, strict=True)
            if weight is not None
        )

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        from hynt.kernels.column_sum_kernel import column_sums

        x, *weights = context.saved_tensors
        of_x: Tensor | None = None
        found: list[Tensor | None] = [None] * (2 * len(weights))
        for number in context.sequence:
            count, weight, outer = context.rows[number], weights[number], gradients[number].contiguous()
            if not context.needs_input_grad[0]:
                pass
            elif of_x is None:
                of_x = outer @ weight if count == len(x) else torch.cat([outer @ weight, x.new_zeros(x[count:].shape)])
            else:
                of_x[:count].addmm_(outer, weight)
            found[2 * number] = outer.t() @ x[:count]
            if context.has_bias[number]:
                found[2 * number + 1] = column_sums(outer, weight.dtype)
        return of_x, None, *found


def apply_all(layers: Sequence[nn.Linear], x: Tensor, rows: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """(rows, outputs) of each map, of all rows of `x` (n, inputs) or of so many first ones."""
    counts = tuple(len(x) for _ in layers) if rows is None else tuple(rows)
    both = [one for layer in layers for one in (layer.weight, layer.bias)]
    parameters = [None if one is None else one.to(x.dtype) for one in both]
    if kernels_serve(x, x.shape[1]):
        found: tuple[Tensor, ...] = _Maps.apply(x, counts, *parameters)  # type: ignore[no-untyped-call]
        return found
    each = zip(counts, parameters[::2], parameters[1::2], strict=True)
    return tuple(functional.linear(x[:count], weight, bias) for count, weight, bias in each if weight is not None)


def apply(layer: nn.Linear, x: Tensor) -> Tensor:
    """(n, outputs) from (n, inputs)."""
    return apply_all([layer], x)[0]
