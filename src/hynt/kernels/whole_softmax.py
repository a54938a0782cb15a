"""Cross entropy over all entities on a GPU: scores, loss and gradients as one operation.

Scores are s = x·Wᵀ + b; the gradient of a question's loss with respect to its scores is p − target, up to the factor
that the loss has in the step's total. So the way there can already leave p − target where the scores were, and the way
back is three matrix products that put the factor on the small side. The compiler sees one operation each way.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor

ALIGNMENT = 8
"""Rows of other lengths keep a GPU from its fast matrix products."""


def whole_cross_entropy(x: Tensor, weight: Tensor, bias: Tensor, answer: Tensor, smoothing: float) -> Tensor:
    """(k,) float32 from encoded questions x (k, width), W (n, width), b (n,) and answers (k,) int64.

    The products are in bf16 where autocast is on, else in the precision of x.
    """
    kind = x.device.type
    x = x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x
    loss: Tensor = _forward(x, weight, bias, answer, smoothing)[0]
    return loss


@torch.library.custom_op("hynt::whole_cross_entropy", mutates_args=())
def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, answer: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(k,) losses; (k, n + filler) gradients of the scores, each for a factor of 1; (n + filler, width) W as used."""
    from hynt.kernels.softmax_rows import losses_then_gradients  # here: importing triton takes long

    filler = -len(bias) % ALIGNMENT
    table = x.new_empty(len(bias) + filler, x.shape[1])
    table[: len(bias)].copy_(weight)
    table[len(bias) :].zero_()
    scores = functional.linear(x, table, functional.pad(bias.to(x.dtype), (0, filler)))
    loss = losses_then_gradients(scores, len(bias), answer, smoothing)
    return loss, scores, table


@_forward.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, answer: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    wide = len(bias) + -len(bias) % ALIGNMENT
    return x.new_empty(len(x), dtype=torch.float32), x.new_empty(len(x), wide), x.new_empty(wide, x.shape[1])


@torch.library.custom_op("hynt::whole_cross_entropy_backward", mutates_args=())
def _backward(
    outer: Tensor, x: Tensor, gradients: Tensor, table: Tensor, entities: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x (k, width) in its own precision, of W (n, width) and of b (n,), both float32."""
    factor = outer.unsqueeze(1)  # (k, 1) float32
    of_x = (gradients @ table).float() * factor
    backward = gradients.t()  # filler and all: a whole number of tiles takes faster kernels
    of_weight = _product(backward, (x * factor).to(x.dtype))[:entities]
    # All factors are alike, or 0 for filler: in units of the largest they lose nothing to a short format.
    unit = outer.abs().amax().clamp(min=1e-30)
    columns = functional.pad((factor / unit).to(x.dtype), (0, ALIGNMENT - 1))
    return of_x.to(x.dtype), of_weight, _product(backward, columns)[:entities, 0] * unit


@_backward.register_fake
def _(outer: Tensor, x: Tensor, gradients: Tensor, table: Tensor, entities: int) -> tuple[Tensor, Tensor, Tensor]:
    of_weight = x.new_empty(entities, x.shape[1], dtype=torch.float32)
    return torch.empty_like(x), of_weight, x.new_empty(entities, dtype=torch.float32)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """float32 left·right; a GPU adds up products of bf16 in float32 anyway, so that nothing is rounded on the way."""
    if left.is_cuda and left.dtype != torch.float32:
        return torch.mm(left, right, out_dtype=torch.float32)
    return (left @ right).float()


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight = inputs[0], inputs[1]
    ctx.save_for_backward(x, output[1], output[2])
    ctx.entities = len(weight)


def _return(ctx: Any, outer: Tensor, *unused: Any) -> tuple[Any, ...]:
    x, gradients, table = ctx.saved_tensors
    return (*_backward(outer, x, gradients, table, ctx.entities), None, None)


torch.library.register_autograd("hynt::whole_cross_entropy", _return, setup_context=_remember)
